SELECT CAST(p.price_lovelace AS TEXT) AS price, nullif(o.cbor, '') AS "transaction",
  CAST(s.locked_lovelace AS TEXT) AS locked
FROM purchases p LEFT JOIN outbox o ON o.tx_id = p.id
  LEFT JOIN escrow_steps s ON s.purchase_id = p.id AND s.tx_id = p.id
WHERE p.id = ?1
