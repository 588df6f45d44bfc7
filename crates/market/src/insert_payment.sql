INSERT INTO payments (tx_id, listing_id, mode, payer, amount_lovelace, creator_lovelace, header_digest,
  terms_digest, owner, day, payer_key)
SELECT tx_id, ?3, ?4, ?5, CAST(?6 AS INTEGER), CAST(?7 AS INTEGER), ?8, ?9, ?10, ?11, ?12 FROM outbox
WHERE tx_id = ?1 AND purpose = ?2 AND state = 'claimed' AND changes() > 0
ON CONFLICT (tx_id) DO UPDATE SET listing_id = excluded.listing_id, mode = excluded.mode,
  payer = excluded.payer, amount_lovelace = excluded.amount_lovelace,
  creator_lovelace = excluded.creator_lovelace, header_digest = excluded.header_digest,
  terms_digest = excluded.terms_digest, owner = excluded.owner, day = excluded.day,
  payer_key = excluded.payer_key, verification = NULL
