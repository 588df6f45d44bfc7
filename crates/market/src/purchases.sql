-- Purchases with their escrows, decisions and events, newest first. The first subquery selects their ids.
WITH picked (which) AS MATERIALIZED ({picked})
SELECT p.id, p.listing_id, p.mode, p.status, p.buyer_address, p.seller_address, p.bought_at_ms, l.content_hash,
  CAST(p.price_lovelace AS TEXT) AS price,
  EXISTS (SELECT 1 FROM accounts WHERE wallet_address = p.buyer_address) AS paid_from_balance,
  (SELECT verification FROM payments WHERE tx_id = p.id) AS verification,
  e.address, e.input_hash, e.result_hash, e.pay_by_ms, e.submit_result_ms, e.unlock_ms, e.external_dispute_unlock_ms,
  d.winner, d.reason,
  (SELECT last.tx_id FROM escrow_steps last JOIN escrow_steps disputed ON disputed.purchase_id = last.purchase_id
    AND disputed.position = last.position - 1 WHERE last.purchase_id = p.id AND last.utxo IS NULL
    AND disputed.status = 'Disputed') AS decision_tx,
  (SELECT json_group_array(json_object('status', status, 'txHash', tx_id, 'at', CAST(at_ms AS TEXT)))
    FROM (SELECT 'settled' AS status, p.id AS tx_id, p.bought_at_ms AS at_ms, 0 AS late, 0 AS position
        WHERE p.mode = 'instant'
      UNION ALL SELECT status, tx_id, at_ms, 0, position FROM escrow_steps WHERE purchase_id = p.id
      UNION ALL SELECT 'creator_paid', tx_id, at_ms, 1, position FROM escrow_steps
        WHERE purchase_id = p.id AND creator_paid = 1
      UNION ALL SELECT 'creator_paid', o.tx_id, o.block_time_ms, 1, 0 FROM outbox_purchases op
        JOIN outbox o ON o.tx_id = op.tx_id WHERE op.purchase_id = p.id AND o.kind = 'payout' AND o.state = 'included'
      ORDER BY 4, 5)) AS events
FROM picked CROSS JOIN purchases p ON p.id = which JOIN listings l ON l.id = p.listing_id
  LEFT JOIN escrows e ON e.purchase_id = p.id LEFT JOIN decisions d ON d.purchase_id = p.id
ORDER BY p.bought_at_ms DESC, p.id DESC
