SELECT e.seq, e.id, e.kind AS type, CAST(e.at_ms AS TEXT) AS at, e.role, e.listing_id AS listingId, l.title,
  e.purchase_id AS purchaseId, e.tx_id AS txHash, CAST(e.amount_lovelace AS TEXT) AS amountLovelace,
  e.request_id AS requestId, e.grant_id AS agentId, g.client_name AS clientName, e.undoes, e.undone_by AS undoneBy
FROM events e LEFT JOIN listings l ON l.id = e.listing_id LEFT JOIN oauth_grants g ON g.id = e.grant_id
WHERE {which}
