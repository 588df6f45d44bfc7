SELECT json_object('id', r.id, 'listingId', r.listing_id, 'title', l.title, 'mode', r.mode,
  'priceLovelace', CAST(r.price AS TEXT), 'clientName', g.client_name,
  'status', CASE WHEN NOT {unused} THEN 'used' WHEN r.approved IS NULL THEN 'waiting'
    WHEN r.approved THEN 'approved' ELSE 'declined' END,
  'expiresAt', CAST(r.expires_at_ms AS TEXT), 'tx', p.id)
FROM purchase_requests r JOIN oauth_grants g ON g.id = r.grant_id JOIN listings l ON l.id = r.listing_id
LEFT JOIN purchases p ON p.id = r.tx_id
WHERE g.revoked_at_ms IS NULL AND {which}
