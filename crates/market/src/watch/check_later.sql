INSERT INTO escrow_watch (purchase_id, utxo, next_at_ms)
SELECT e.purchase_id, e.utxo, later.value ->> '$.at' FROM json_each(?1) AS later
JOIN escrows e ON e.purchase_id = later.value ->> '$.purchase'
WHERE e.utxo = later.value ->> '$.utxo' AND e.next_at_ms = later.value ->> '$.read'
  AND (SELECT verification FROM payments WHERE tx_id = e.purchase_id) IS (later.value ->> '$.verification')
ON CONFLICT (purchase_id) DO UPDATE SET utxo = excluded.utxo, next_at_ms = excluded.next_at_ms,
  failures = iif(escrow_watch.utxo IS excluded.utxo, escrow_watch.failures, 0)
