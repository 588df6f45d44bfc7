INSERT INTO escrow_watch (purchase_id, utxo, next_at_ms, failures)
SELECT e.purchase_id, e.utxo, ?3 + ?4 * (1 << min(?6, ?5)), ?6 + 1
FROM escrows e LEFT JOIN escrow_watch w ON w.purchase_id = e.purchase_id AND w.utxo = e.utxo
WHERE e.purchase_id = ?1 AND e.utxo = ?2 AND coalesce(w.failures, 0) = ?6
ON CONFLICT (purchase_id) DO UPDATE SET utxo = excluded.utxo, next_at_ms = excluded.next_at_ms, failures = excluded.failures
