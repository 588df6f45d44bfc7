-- Payments: the listing that an outbox entry pays for. The transaction id is the key, so a transaction pays once, and
-- for one listing only. Whether it was included is the outbox's state.

CREATE TABLE payments (
  tx_id TEXT PRIMARY KEY REFERENCES outbox (tx_id) ON DELETE CASCADE,
  listing_id TEXT NOT NULL REFERENCES listings (id),
  mode TEXT NOT NULL CHECK (mode IN ('instant', 'protected')),
  payer TEXT NOT NULL,                           -- address of the buyer, who owns an input
  payer_key TEXT NOT NULL CHECK (length(payer_key) = 56), -- payment key of that address, which owns the purchase
  amount_lovelace INTEGER NOT NULL CHECK (amount_lovelace > 0),
  creator_lovelace INTEGER NOT NULL CHECK (creator_lovelace BETWEEN 0 AND amount_lovelace),
                                                 -- the creator's share of a protected sale, by the fees at the time
  header_digest TEXT NOT NULL,                   -- SHA-256 of the PAYMENT-SIGNATURE header that presented it
  terms_digest TEXT,                             -- digest of the signed terms of a protected payment
  delivered_at_ms INTEGER,                       -- time of the first delivery
  verification TEXT CHECK (verification IN ('ok', 'mismatch', 'no_result_yet')), -- the buyer's verdict on what was delivered

  -- For payments from a service wallet: the account whose budget they use, and the UTC day (days since 1970-01-01).
  owner TEXT REFERENCES accounts (owner),
  day INTEGER,
  CHECK ((owner IS NULL) = (day IS NULL)),
  -- Signed terms are bound to the first transaction of each payer. While it may still be included, they cannot be used
  -- by another payer; `claim.sql` checks that.
  UNIQUE (terms_digest, payer_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX payments_by_payer ON payments (payer_key, listing_id);
CREATE INDEX payments_of_a_day ON payments (owner, day) WHERE owner IS NOT NULL;

-- Payment identifiers of clients (x402's extension payment-identifier) per listing, each bound to the first payload.
CREATE TABLE payment_identifiers (
  listing_id TEXT NOT NULL REFERENCES listings (id),
  identifier TEXT NOT NULL,
  payload_digest TEXT NOT NULL CHECK (length(payload_digest) = 64),
  tx_id TEXT NOT NULL REFERENCES payments (tx_id) ON DELETE CASCADE, -- the payment that is returned for it
  created_at_ms INTEGER NOT NULL,
  PRIMARY KEY (listing_id, identifier)
) STRICT, WITHOUT ROWID;
CREATE INDEX payment_identifiers_by_tx ON payment_identifiers (tx_id);
CREATE INDEX payment_identifiers_by_age ON payment_identifiers (created_at_ms);

-- Deletes the identifiers of a refused payment, because it may be presented again with other identifiers.
CREATE TRIGGER payments_refused AFTER UPDATE OF state ON outbox
WHEN new.state = 'refused' AND new.kind IN ('payment', 'lock') BEGIN
  DELETE FROM payment_identifiers WHERE tx_id = new.tx_id;
END;
