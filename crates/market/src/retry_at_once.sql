INSERT INTO escrow_watch (purchase_id, utxo, next_at_ms, failures)
SELECT e.purchase_id, e.utxo, 0, ?2 FROM outbox_purchases op JOIN escrows e ON e.purchase_id = op.purchase_id
WHERE op.tx_id = ?1 AND changes() > 0
ON CONFLICT (purchase_id) DO UPDATE SET utxo = excluded.utxo, next_at_ms = 0,
  failures = iif(escrow_watch.utxo IS excluded.utxo, escrow_watch.failures, 0) + excluded.failures
