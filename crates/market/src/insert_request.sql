INSERT INTO purchase_requests (id, owner, grant_id, listing_id, mode, price, expires_at_ms, asked_at_ms)
SELECT ?1, g.owner, g.id, ?4, ?5, CAST(?6 AS INTEGER), ?7, ?8 FROM oauth_grants g
WHERE g.id = ?3 AND g.owner = ?2 AND g.revoked_at_ms IS NULL AND (
  SELECT count(*) < {most} AND coalesce(sum(r.grant_id = g.id), 0) < {most_of_agent}
  FROM purchase_requests r JOIN oauth_grants o ON o.id = r.grant_id
  WHERE r.owner = ?2 AND r.expires_at_ms > ?8 AND r.approved IS NULL AND o.revoked_at_ms IS NULL)
ON CONFLICT DO NOTHING
