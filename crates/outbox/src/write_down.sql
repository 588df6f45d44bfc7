INSERT INTO outbox (tx_id, kind, purpose, wallet, cbor, state, valid_until_slot, attempts, attempted_at_ms,
  created_at_ms, provenance, reserves, acts_on)
SELECT ?2, ?3, ?4, ?5, ?6, 'claimed', ?7, 1, ?8, ?8, ?10, ?9, ?11
WHERE NOT EXISTS (SELECT 1 FROM outbox WHERE purpose = ?4 AND tx_id <> ?2
    AND phase <> 'given_up')
  AND NOT EXISTS (SELECT 1 FROM reservations WHERE tx_in IN (SELECT key FROM json_each(?9)))
  AND ?1 IS NOT NULL AND ({blocked_by}) IS NULL
ON CONFLICT (tx_id) DO UPDATE SET state = 'claimed', attempts = 1, kind = excluded.kind,
  purpose = excluded.purpose, provenance = excluded.provenance, cbor = excluded.cbor,
  reserves = excluded.reserves, attempted_at_ms = excluded.attempted_at_ms, reason = NULL
WHERE outbox.state = 'refused' AND outbox.wallet IS excluded.wallet
  AND (outbox.purpose = excluded.purpose OR excluded.provenance <> 'unknown') RETURNING {entry}
