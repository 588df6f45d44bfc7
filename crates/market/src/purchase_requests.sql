SELECT r.id, r.listing_id AS listingId, l.title, r.mode, CAST(r.price AS TEXT) AS priceLovelace,
  g.client_name AS clientName, CASE WHEN NOT {unused} THEN 'used' WHEN r.approved IS NULL THEN 'waiting'
    WHEN r.approved THEN 'approved' ELSE 'declined' END AS status,
  CAST(r.expires_at_ms AS TEXT) AS expiresAt, p.id AS tx
FROM purchase_requests r JOIN oauth_grants g ON g.id = r.grant_id JOIN listings l ON l.id = r.listing_id
LEFT JOIN purchases p ON p.id = r.tx_id
WHERE g.revoked_at_ms IS NULL AND {which}
