INSERT INTO escrow_steps (purchase_id, tx_id, height, position, at_ms, status, utxo, datum,
  locked_lovelace, result_hash, creator_paid, recheck)
SELECT id, ?2, coalesce(o.block_height, ?3), {position}, coalesce(o.block_time_ms, ?4), ?5, ?6, ?7,
  CAST(?8 AS INTEGER), ?9, ?10, o.block_hash IS NULL
FROM purchases LEFT JOIN outbox o ON o.tx_id = ?2 WHERE id = ?1 AND {spent} = ?11
  AND (?12 IS NULL OR (SELECT rollbacks FROM chain_reading) = ?12)
ON CONFLICT DO NOTHING
