SELECT json_object('price', CAST(p.price_lovelace AS TEXT), 'transaction', nullif(o.cbor, ''),
  'locked', CAST(s.locked_lovelace AS TEXT))
FROM purchases p LEFT JOIN outbox o ON o.tx_id = p.id
  LEFT JOIN escrow_steps s ON s.purchase_id = p.id AND s.tx_id = p.id
WHERE p.id = ?1
