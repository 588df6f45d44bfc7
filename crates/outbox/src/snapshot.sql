SELECT * FROM (SELECT json_object('entry', {entry}) FROM outbox WHERE wallet = ?1 AND created_at_ms > ?2
  AND (state = 'included' OR state IN ('claimed', 'submitted') AND valid_until_slot > ?3)
  ORDER BY created_at_ms DESC LIMIT {sent})
UNION ALL SELECT * FROM (SELECT json_object('entry', {entry}) FROM outbox INDEXED BY outbox_not_included
  WHERE wallet = ?1 AND state <> 'included' AND state IN ('refused', 'expired') AND created_at_ms > ?2
  ORDER BY created_at_ms LIMIT {contested})
UNION ALL SELECT json_object('reserved', tx_in) FROM (
  SELECT r.tx_in FROM outbox o JOIN reservations r ON r.tx_id = o.tx_id
  WHERE o.wallet = ?1 AND o.created_at_ms > ?2
  UNION SELECT r.tx_in FROM outbox o INDEXED BY outbox_not_included JOIN reservations r ON r.tx_id = o.tx_id
  WHERE o.wallet = ?1 AND o.state <> 'included')
