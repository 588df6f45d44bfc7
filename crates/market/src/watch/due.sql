SELECT e.purchase_id AS purchase, e.utxo, e.datum, p.listing_id,
  l.content_hash, CAST(iif(EXISTS (SELECT 1 FROM outbox
    WHERE purpose = 'payout:' || e.purchase_id), 0, p.creator_lovelace) AS TEXT) AS share, p.seller_address AS creator,
  (SELECT verification FROM payments WHERE tx_id = p.id) AS verification, e.next_at_ms AS next_at, {height} AS height,
  coalesce(w.failures, 0) AS failures, coalesce((SELECT delivered_hash
    FROM escrow_watch WHERE purchase_id = e.purchase_id), (SELECT e.result_hash FROM outbox
    WHERE tx_id = substr(e.utxo, 1, 64) AND kind = 'result' AND state = 'included')) AS delivered,
  {service_wallet} AS service_wallet
FROM escrows e JOIN purchases p ON p.id = e.purchase_id JOIN listings l ON l.id = p.listing_id
  LEFT JOIN escrow_watch w ON w.purchase_id = e.purchase_id AND w.utxo = e.utxo
WHERE e.utxo IS NOT NULL AND e.next_at_ms <= ?1 AND NOT EXISTS (SELECT 1 FROM reservations r
  JOIN outbox o ON o.tx_id = r.tx_id WHERE r.tx_in = e.utxo AND o.phase = 'open')
ORDER BY ({fresh}) DESC, CASE p.status WHEN 'ResultSubmitted' THEN iif(e.unlock_ms > ?1, e.unlock_ms, {no_deadline})
  WHEN 'FundsLocked' THEN iif(e.submit_result_ms > ?1, {result}, {no_deadline})
  WHEN 'RefundRequested' THEN iif(e.submit_result_ms > ?1, {result}, {no_deadline})
  ELSE {no_deadline} END, e.purchase_id LIMIT {page} OFFSET ?2
