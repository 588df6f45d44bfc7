-- Buyers' payments: what an entry of the outbox pays for. The transaction id is the key, so a transaction pays for one
-- listing, once. Whether it took effect is the outbox's state.

CREATE TABLE payments (
  tx_id TEXT PRIMARY KEY REFERENCES outbox (tx_id) ON DELETE CASCADE,
  listing_id TEXT NOT NULL REFERENCES listings (id),
  mode TEXT NOT NULL CHECK (mode IN ('instant', 'protected')),
  payer TEXT NOT NULL,                           -- who owns the output that pays: the buyer
  payer_key TEXT NOT NULL CHECK (length(payer_key) = 56), -- the payment key in that address: who signs, and owns
  amount_lovelace INTEGER NOT NULL CHECK (amount_lovelace > 0),
  creator_lovelace INTEGER NOT NULL CHECK (creator_lovelace BETWEEN 0 AND amount_lovelace),
                                                 -- what the creator gets of a protected sale, by the fees of this day
  header_digest TEXT NOT NULL,                   -- SHA-256 of the PAYMENT-SIGNATURE that claimed it
  terms_digest TEXT,                             -- of the signed terms, where there are any
  delivered_at_ms INTEGER,                       -- when the content was handed out for the payment alone

  -- Of a payment from a service wallet: whose limits it takes from, and on which UTC day (days since 1970-01-01).
  owner TEXT REFERENCES accounts (owner),
  day INTEGER,
  CHECK ((owner IS NULL) = (day IS NULL)),
  -- Signed terms belong permanently to the first transaction of its signer. While that one may still enter a block, no other
  -- payer's transaction may use them.
  UNIQUE (terms_digest, payer_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX payments_by_payer ON payments (payer_key, listing_id);
CREATE INDEX payments_of_a_day ON payments (owner, day) WHERE owner IS NOT NULL;

-- Identifiers that clients gave their payments (x402's extension payment-identifier), for each listing: the first payload
-- that came with one keeps it.
CREATE TABLE payment_identifiers (
  listing_id TEXT NOT NULL REFERENCES listings (id),
  identifier TEXT NOT NULL,
  payload_digest TEXT NOT NULL CHECK (length(payload_digest) = 64),
  tx_id TEXT NOT NULL REFERENCES payments (tx_id) ON DELETE CASCADE, -- the payment that answers it
  created_at_ms INTEGER NOT NULL,
  PRIMARY KEY (listing_id, identifier)
) STRICT, WITHOUT ROWID;
CREATE INDEX payment_identifiers_by_tx ON payment_identifiers (tx_id);
CREATE INDEX payment_identifiers_by_age ON payment_identifiers (created_at_ms);
