-- Payments that this service settles for other servers, and the keys of those servers. The transactions themselves are
-- entries of the outbox with kind `settlement`.

CREATE TABLE settlements (
  tx_id TEXT PRIMARY KEY REFERENCES outbox (tx_id) ON DELETE CASCADE,
  requirements TEXT NOT NULL,                    -- hex: SHA-256 of the requirements that the payment satisfies
  terms TEXT,                                    -- hex: digest of the terms that the seller signed; NULL for a direct payment
  payer TEXT NOT NULL,                           -- bech32
  reported_at_ms INTEGER                         -- when a caller was told that the payment is settled; NULL before
) STRICT, WITHOUT ROWID;

-- Terms stay bound to the first transaction that was recorded for them, whatever becomes of it.
CREATE UNIQUE INDEX settlements_by_terms ON settlements (terms) WHERE terms IS NOT NULL;

CREATE TABLE facilitator_keys (
  key_hash TEXT PRIMARY KEY CHECK (length(key_hash) = 64), -- hex: SHA-256 of the bearer token
  name TEXT NOT NULL UNIQUE,                     -- chosen by the operator
  calls_per_day INTEGER NOT NULL CHECK (calls_per_day > 0),
  day INTEGER NOT NULL DEFAULT 0,                -- days since 1970 (UTC) of the newest call
  calls INTEGER NOT NULL DEFAULT 0               -- on that day
) STRICT, WITHOUT ROWID;
