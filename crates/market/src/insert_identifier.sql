INSERT INTO payment_identifiers (listing_id, identifier, payload_digest, tx_id, created_at_ms)
SELECT ?2, ?3, ?4, ?5, ?6 WHERE EXISTS (SELECT 1 FROM payments WHERE tx_id = ?5)
  AND NOT EXISTS (SELECT 1 FROM payments WHERE tx_id = ?1 AND header_digest <> ?7)
  AND (SELECT count(*) FROM payment_identifiers WHERE tx_id = ?5) < {most}
ON CONFLICT DO NOTHING
