SELECT p.id, l.title, p.status, p.bought_at_ms AS sold_at,
  CAST(iif(p.mode = 'instant', p.price_lovelace, p.creator_lovelace) AS TEXT) AS amount,
  CASE p.mode WHEN 'instant' THEN p.id ELSE coalesce(s.tx_id, o.tx_id) END AS paid_by,
  CASE p.mode WHEN 'instant' THEN p.bought_at_ms ELSE coalesce(s.at_ms, o.block_time_ms) END AS paid_at
FROM purchases p JOIN listings l ON l.id = p.listing_id
LEFT JOIN escrow_steps s ON s.purchase_id = p.id AND s.creator_paid = 1
LEFT JOIN outbox o ON o.tx_id = (SELECT op.tx_id FROM outbox_purchases op JOIN outbox paying ON paying.tx_id = op.tx_id
  WHERE op.purchase_id = p.id AND paying.kind = 'payout' AND paying.state = 'included')
WHERE p.seller_address = ?1 ORDER BY p.bought_at_ms DESC, p.id DESC LIMIT {most}
