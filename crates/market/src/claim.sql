-- The first condition that blocks a claim, as a JSON object, or NULL. Every condition is checked here only. ?1 is a
-- JSON object with the parameters from `claim.rs`.
WITH facts AS MATERIALIZED (
  SELECT ?1 ->> '$.tx' AS tx, ?1 ->> '$.listing' AS listing, ?1 -> '$.buyers' AS buyers, ?1 ->> '$.payerKey' AS payer_key,
    ?1 ->> '$.termsDigest' AS terms_digest, ?1 ->> '$.identifier' AS identifier, ?1 ->> '$.payload' AS payload,
    ?1 ->> '$.owner' AS owner, ?1 ->> '$.day' AS day, ?1 ->> '$.session' AS session, ?1 ->> '$.grant' AS grant_id,
    ?1 ->> '$.now' AS now, CAST(?1 ->> '$.amount' AS INTEGER) AS amount, ?1 ->> '$.content' AS content,
    ?1 ->> '$.checked' AS checked, ?1 ->> '$.excluded' AS excluded, ?1 ->> '$.wallet' AS wallet,
    ?1 ->> '$.since' AS since, ?1 ->> '$.mode' AS mode
),
-- The buyer's payment keys.
buyer AS MATERIALIZED (SELECT value AS key FROM {buyer}),
-- The buyer's other payments for the listing.
earlier AS MATERIALIZED (
  SELECT p.tx_id, o.state, o.never_included, o.wallet, o.created_at_ms FROM facts CROSS JOIN buyer
    CROSS JOIN payments p ON p.payer_key = buyer.key AND p.listing_id = facts.listing
    JOIN outbox o ON o.tx_id = p.tx_id WHERE p.tx_id <> facts.tx
),
-- The purchase by which the buyer owns the listing.
owned AS MATERIALIZED (
  SELECT id FROM facts CROSS JOIN buyer CROSS JOIN purchases INDEXED BY purchases_by_buyer
    ON buyer_key = buyer.key AND listing_id = facts.listing
  WHERE status <> 'refunded' ORDER BY bought_at_ms LIMIT 1
),
-- The paying account, and the amount that it has spent today (`limits.rs`).
payer AS MATERIALIZED (
  SELECT a.max_per_payment, a.daily_budget, a.ask_above, {spent} AS spent
  FROM facts JOIN accounts a ON a.owner = facts.owner
)
SELECT CASE
  -- The transaction was claimed before.
  WHEN EXISTS (SELECT 1 FROM payments p JOIN outbox o ON o.tx_id = p.tx_id WHERE p.tx_id = facts.tx AND o.state <> 'refused')
    THEN json_object('condition', 'known')
  -- Another payload came first with this payment identifier.
  WHEN EXISTS (SELECT 1 FROM payment_identifiers i WHERE i.listing_id = facts.listing
      AND i.identifier = facts.identifier AND i.payload_digest <> facts.payload)
    THEN json_object('condition', 'identifierTaken')
  -- The buyer owns the listing.
  WHEN EXISTS (SELECT 1 FROM owned)
    THEN json_object('condition', 'owned', 'purchase', (SELECT id FROM owned))
  -- The buyer has an unconfirmed payment for it.
  WHEN EXISTS (SELECT 1 FROM earlier WHERE state IN ('claimed', 'submitted'))
    THEN json_object('condition', 'paying', 'tx',
      (SELECT tx_id FROM earlier WHERE state IN ('claimed', 'submitted') ORDER BY created_at_ms LIMIT 1))
  -- The service wallet's purchases since the restored backup have not been read from the chain yet.
  WHEN facts.wallet IS NOT NULL AND EXISTS (SELECT 1 FROM unread_wallets WHERE wallet = facts.wallet)
    THEN json_object('condition', 'restoring')
  -- Failed payments of the buyer for the listing may still be included, and more of them than were looked up. Those
  -- that this payment conflicts with, because it spends their inputs, are counted below.
  WHEN (SELECT count(*) FROM earlier WHERE state IN ('refused', 'expired') AND never_included = 0
      AND NOT (facts.wallet IS NOT NULL AND wallet IS facts.wallet AND created_at_ms > facts.since)) > facts.checked
    THEN json_object('condition', 'unresolved')
  WHEN facts.wallet IS NOT NULL AND (SELECT count(*) FROM earlier WHERE state IN ('refused', 'expired')
      AND wallet IS facts.wallet AND created_at_ms > facts.since) > facts.excluded
    THEN json_object('condition', 'superseded')
  -- The signed terms are bound to another transaction. A failed one blocks its own payer only.
  WHEN EXISTS (SELECT 1 FROM payments p JOIN outbox o ON o.tx_id = p.tx_id WHERE p.terms_digest = facts.terms_digest
      AND p.tx_id <> facts.tx AND (p.payer_key = facts.payer_key OR o.state IN ('claimed', 'submitted', 'included')))
    THEN json_object('condition', 'termsTaken')
  -- The session or grant that authorized the request has ended.
  WHEN facts.session IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM sessions WHERE token_hash = facts.session AND expires_at_ms > facts.now)
    OR facts.grant_id IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM oauth_grants WHERE id = facts.grant_id AND revoked_at_ms IS NULL)
    THEN json_object('condition', 'spendRefused', 'why', 'signedOut')
  WHEN facts.owner IS NOT NULL AND NOT EXISTS (SELECT 1 FROM payer)
    THEN json_object('condition', 'spendRefused', 'why', 'signedOut')
  -- The account's limits.
  WHEN facts.amount > (SELECT max_per_payment FROM payer)
    THEN json_object('condition', 'spendRefused', 'why', json_object('perPayment',
      json_object('limit', (SELECT CAST(max_per_payment AS TEXT) FROM payer))))
  WHEN facts.amount + (SELECT spent FROM payer) > (SELECT daily_budget FROM payer)
    THEN json_object('condition', 'spendRefused', 'why', json_object('daily',
      json_object('limit', (SELECT CAST(daily_budget AS TEXT) FROM payer), 'spent', (SELECT CAST(spent AS TEXT) FROM payer))))
  -- An agent's payment above the owner's approval price, without an approval of this listing, mode and price.
  WHEN facts.grant_id IS NOT NULL AND facts.amount > (SELECT ask_above FROM payer)
      AND NOT EXISTS (SELECT 1 FROM purchase_requests r WHERE r.grant_id = facts.grant_id AND r.listing_id = facts.listing
        AND r.mode = facts.mode AND r.price >= facts.amount AND r.approved = 1 AND r.expires_at_ms > facts.now AND {unused})
    THEN json_object('condition', 'spendRefused', 'why', 'unapproved')
  -- The content is not in the database.
  WHEN facts.content IS NOT NULL AND NOT EXISTS (SELECT 1 FROM contents WHERE hash = facts.content)
    THEN json_object('condition', 'contentMissing')
END FROM facts
