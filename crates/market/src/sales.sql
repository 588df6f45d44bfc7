SELECT json_patch('{{}}', json_object('id', p.id, 'title', l.title, 'status', p.status,
  'soldAt', CAST(p.bought_at_ms AS TEXT),
  'amountLovelace', CAST(iif(p.mode = 'instant', p.price_lovelace, p.creator_lovelace) AS TEXT),
  'payout', json(CASE p.mode
    WHEN 'instant' THEN json_object('txHash', p.id, 'at', CAST(p.bought_at_ms AS TEXT))
    ELSE coalesce(
      (SELECT json_object('txHash', tx_id, 'at', CAST(at_ms AS TEXT)) FROM escrow_steps
        WHERE purchase_id = p.id AND creator_paid = 1),
      (SELECT json_object('txHash', o.tx_id, 'at', CAST(o.block_time_ms AS TEXT)) FROM outbox_purchases op
        JOIN outbox o ON o.tx_id = op.tx_id
        WHERE op.purchase_id = p.id AND o.kind = 'payout' AND o.state = 'included')) END)))
FROM purchases p JOIN listings l ON l.id = p.listing_id WHERE p.seller_address = ?1
ORDER BY p.bought_at_ms DESC, p.id DESC LIMIT {most}
