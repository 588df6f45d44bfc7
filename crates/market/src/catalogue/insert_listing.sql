INSERT INTO listings (id, card, title, description, price_lovelace, seller_address, instant, protected,
  content_hash, content_bytes, category, created_at_ms, proof_digest, offer_digest)
SELECT ?1, ?2, ?3, ?4, CAST(?5 AS INTEGER), ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?17
WHERE coalesce((SELECT listed FROM sellers WHERE address = ?6), 0) < ?14
  AND coalesce((SELECT listed_bytes FROM sellers WHERE address = ?6), 0) + ?10 <= ?15
  AND (?13 IS NOT NULL OR NOT EXISTS (SELECT 1 FROM listings WHERE seller_address = ?6 AND content_hash = ?9
    AND created_at_ms > ?16 AND offer_digest = ?17))
ON CONFLICT (proof_digest) DO NOTHING
