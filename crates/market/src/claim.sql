-- Returns the first condition that blocks a claim, or NULL, with the facts that an error message needs. These are the
-- market's conditions; `write_down.sql` of the outbox adds those of every entry: one live entry per purpose, and no
-- output that is reserved. ?1 is the JSON of `Facts` in `claim.rs`.
WITH facts AS MATERIALIZED (
  SELECT ?1 ->> '$.tx' AS tx, ?1 ->> '$.listing' AS listing, ?1 ->> '$.mode' AS mode, ?1 -> '$.buyers' AS buyers,
    ?1 ->> '$.payer_key' AS payer_key, CAST(?1 ->> '$.amount' AS INTEGER) AS amount, ?1 ->> '$.checked' AS checked,
    ?1 ->> '$.replaced' AS replaced, ?1 ->> '$.now' AS now, ?1 ->> '$.terms_digest' AS terms_digest,
    ?1 ->> '$.identifier' AS identifier, ?1 ->> '$.payload' AS payload, ?1 ->> '$.content' AS content,
    ?1 ->> '$.account.owner' AS owner, ?1 ->> '$.account.wallet' AS wallet, ?1 ->> '$.account.since' AS since,
    ?1 ->> '$.account.day' AS day, ?1 ->> '$.account.session' AS session, ?1 ->> '$.account.grant_id' AS grant_id
),
-- The facts with their JSON types. An optional fact that is absent must be null, not missing.
fact (path, type, otherwise) AS (VALUES ('tx', 'text', ''), ('listing', 'text', ''), ('mode', 'text', ''),
  ('buyers', 'array', ''), ('buyers[0]', 'text', ''), ('payer_key', 'text', ''), ('amount', 'text', ''),
  ('checked', 'integer', ''), ('replaced', 'integer', ''), ('now', 'integer', ''), ('terms_digest', 'text', 'null'),
  ('identifier', 'text', 'null'), ('payload', 'text', 'null'), ('content', 'text', 'null'),
  ('account', 'object', 'null'), ('account.owner', 'text', ''), ('account.wallet', 'text', ''),
  ('account.since', 'integer', ''), ('account.day', 'integer', ''), ('account.session', 'text', 'null'),
  ('account.grant_id', 'text', 'null')
),
-- The buyer's payment keys.
buyer AS MATERIALIZED (SELECT value AS key FROM {buyer}),
-- The buyer's other payments for the listing.
others AS MATERIALIZED (
  SELECT p.tx_id, o.phase, o.never_included, o.wallet, o.created_at_ms FROM facts CROSS JOIN buyer
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
  SELECT a.max_per_payment, a.daily_budget, a.ask_above, a.agents_paused, a.protected_only, a.min_reputation,
    {spent} AS spent
  FROM facts JOIN accounts a ON a.owner = facts.owner
)
SELECT condition, (SELECT id FROM owned) AS purchase,
  (SELECT tx_id FROM others WHERE phase = 'open' ORDER BY created_at_ms LIMIT 1) AS paying,
  (SELECT CAST(max_per_payment AS TEXT) FROM payer) AS max_per_payment,
  (SELECT CAST(daily_budget AS TEXT) FROM payer) AS daily_budget, (SELECT CAST(spent AS TEXT) FROM payer) AS spent,
  (SELECT min_reputation FROM payer) AS min_reputation
FROM (SELECT CASE
  -- A fact is missing or has another type. A comparison with NULL is never true, so every condition below would let it
  -- pass.
  WHEN EXISTS (SELECT 1 FROM fact WHERE (path NOT LIKE 'account.%' OR json_type(?1, '$.account') = 'object')
      AND coalesce(json_type(?1, '$.' || path) NOT IN (type, otherwise), TRUE))
    OR facts.tx || facts.listing || facts.mode || facts.buyers || facts.payer_key || facts.amount || facts.checked
      || facts.replaced || facts.now IS NULL
    OR facts.amount <= 0 OR CAST(facts.amount AS TEXT) IS NOT ?1 ->> '$.amount'
    OR (facts.identifier IS NULL) <> (facts.payload IS NULL)
    OR json_type(?1, '$.account') = 'object'
      AND facts.owner || facts.wallet || facts.since || facts.day || coalesce(facts.session, facts.grant_id) IS NULL
    THEN 'malformed'
  -- The transaction was claimed before.
  WHEN EXISTS (SELECT 1 FROM payments p JOIN outbox o ON o.tx_id = p.tx_id WHERE p.tx_id = facts.tx AND o.state <> 'refused')
    THEN 'claimed'
  -- The client's payment identifier belongs to another payload.
  WHEN EXISTS (SELECT 1 FROM payment_identifiers i WHERE i.listing_id = facts.listing
      AND i.identifier = facts.identifier AND i.payload_digest <> facts.payload)
    THEN 'identifierTaken'
  -- The buyer owns the listing.
  WHEN EXISTS (SELECT 1 FROM owned)
    THEN 'owned'
  -- Another payment of the buyer for the listing is open.
  WHEN EXISTS (SELECT 1 FROM others WHERE phase = 'open')
    THEN 'paying'
  -- The listing was taken off sale. The request may have read its terms from a copy of the database that lags.
  WHEN NOT EXISTS (SELECT 1 FROM listings WHERE id = facts.listing AND hidden_at_ms IS NULL)
    THEN 'offSale'
  -- The database was restored from a backup, and the service wallet's purchases since then are not read from the chain
  -- yet.
  WHEN facts.wallet IS NOT NULL AND EXISTS (SELECT 1 FROM unread_wallets WHERE wallet = facts.wallet)
    THEN 'restoring'
  -- More of the buyer's payments for the listing failed than were looked up on the chain, so one of them may be
  -- included. Failed payments whose inputs this payment spends are counted by the next condition.
  WHEN (SELECT count(*) FROM others WHERE phase = 'given_up' AND never_included = 0
      AND NOT (facts.wallet IS NOT NULL AND wallet IS facts.wallet AND created_at_ms > facts.since)) > facts.checked
    THEN 'unresolved'
  -- More of the wallet's recent payments for the listing failed than this payment replaces by spending their inputs.
  WHEN facts.wallet IS NOT NULL AND (SELECT count(*) FROM others WHERE phase = 'given_up'
      AND wallet IS facts.wallet AND created_at_ms > facts.since) > facts.replaced
    THEN 'newFailure'
  -- The signed terms are bound to another transaction. A failed transaction binds them only for its own payer.
  WHEN EXISTS (SELECT 1 FROM payments p JOIN outbox o ON o.tx_id = p.tx_id WHERE p.terms_digest = facts.terms_digest
      AND p.tx_id <> facts.tx AND (p.payer_key = facts.payer_key OR o.phase <> 'given_up'))
    THEN 'termsTaken'
  -- The session or grant that authorized the request has ended.
  WHEN facts.session IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM sessions WHERE token_hash = facts.session AND expires_at_ms > facts.now)
    OR facts.grant_id IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM oauth_grants WHERE id = facts.grant_id AND revoked_at_ms IS NULL)
    THEN 'signedOut'
  WHEN facts.owner IS NOT NULL AND NOT EXISTS (SELECT 1 FROM payer)
    THEN 'signedOut'
  -- The owner's rules for agents.
  WHEN facts.grant_id IS NOT NULL AND (SELECT agents_paused FROM payer) <> 0
    THEN 'paused'
  WHEN facts.grant_id IS NOT NULL AND (SELECT protected_only FROM payer) <> 0 AND facts.mode <> 'protected'
    THEN 'protectedOnly'
  WHEN facts.grant_id IS NOT NULL AND (SELECT min_reputation FROM payer) > 0
      AND NOT EXISTS (SELECT 1 FROM listings l JOIN sellers s ON s.address = l.seller_address
        WHERE l.id = facts.listing AND s.reputation >= (SELECT min_reputation FROM payer))
    THEN 'reputation'
  -- The account's limits per purchase and per day.
  WHEN facts.amount > (SELECT max_per_payment FROM payer)
    THEN 'perPayment'
  WHEN facts.amount + (SELECT spent FROM payer) > (SELECT daily_budget FROM payer)
    THEN 'daily'
  -- An agent's payment above the owner's approval price, without an approval of this listing, mode and price.
  WHEN facts.grant_id IS NOT NULL AND facts.amount > (SELECT ask_above FROM payer)
      AND NOT EXISTS (SELECT 1 FROM purchase_requests r WHERE r.grant_id = facts.grant_id AND r.listing_id = facts.listing
        AND r.mode = facts.mode AND r.price >= facts.amount AND r.approved = 1 AND r.expires_at_ms > facts.now AND {unused})
    THEN 'unapproved'
  -- The listing has another price, and no offer at this one is valid any more. An account pays the present price only: its
  -- request may have read the terms from a copy of the database that lags.
  WHEN facts.amount <> (SELECT price_lovelace FROM listings WHERE id = facts.listing)
      AND (facts.owner IS NOT NULL OR NOT EXISTS (SELECT 1 FROM former_prices f WHERE f.listing_id = facts.listing
        AND f.price_lovelace = facts.amount AND f.until_ms > facts.now))
    THEN 'priceEnded'
  -- The content is not in the database.
  WHEN facts.content IS NOT NULL AND NOT EXISTS (SELECT 1 FROM contents WHERE hash = facts.content)
    THEN 'contentMissing'
END AS condition FROM facts)
