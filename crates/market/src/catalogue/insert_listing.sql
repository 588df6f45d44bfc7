INSERT INTO listings (id, card, title, description, price_lovelace, seller_address, instant, protected,
  content_hash, content_bytes, category, created_at_ms, proof_digest, offer_digest, search_terms)
SELECT ?1, ?10, ?11, ?12, CAST(?13 AS INTEGER), ?3, ?14, ?15, ?4, ?8, ?16, ?17, ?2, ?6, ?18
WHERE {quota_state} = 'room' AND {existing} IS NULL
ON CONFLICT (proof_digest) DO NOTHING
