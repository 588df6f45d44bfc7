SELECT e.purchase_id AS purchase, CAST(p.creator_lovelace AS TEXT) AS share, p.seller_address AS creator
FROM escrows e JOIN purchases p ON p.id = e.purchase_id WHERE e.creator_due = 1
  AND NOT EXISTS (SELECT 1 FROM outbox WHERE purpose = 'payout:' || e.purchase_id
    AND phase <> 'given_up')
  AND NOT EXISTS (SELECT 1 FROM restored WHERE platform IS NULL
    OR EXISTS (SELECT 1 FROM unread_wallets WHERE wallet = platform))
ORDER BY (SELECT max(created_at_ms) FROM outbox WHERE purpose = 'payout:' || e.purchase_id) LIMIT 4
