-- Accounts: who signed in with a wallet, and the service wallet that we hold for them.
-- The wallet's key is derived from a master secret, the key version and the owner; nothing of it is stored.
CREATE TABLE accounts (
  owner TEXT PRIMARY KEY,                        -- the address signed in with; 'demo' for the shared demo wallet
  wallet_address TEXT NOT NULL UNIQUE,
  key_version INTEGER NOT NULL,
  max_per_payment INTEGER NOT NULL CHECK (max_per_payment BETWEEN 1000000 AND 100000000),
  daily_budget INTEGER NOT NULL CHECK (daily_budget BETWEEN max_per_payment AND 500000000),
  created_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Sessions, by the SHA-256 of their token.
CREATE TABLE sessions (
  token_hash TEXT PRIMARY KEY CHECK (length(token_hash) = 64),
  owner TEXT NOT NULL REFERENCES accounts (owner),
  expires_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_expiry ON sessions (expires_at_ms);

-- A challenge is answered once: whoever inserts its row first has answered it.
CREATE TABLE challenge_claims (
  digest TEXT PRIMARY KEY CHECK (length(digest) = 64),
  claimed_by TEXT NOT NULL,                      -- the hash of what the claim gave out
  expires_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX challenge_claims_by_expiry ON challenge_claims (expires_at_ms);

-- What service wallets spend, with the limits held by the insert itself. A row is written in the same statement that
-- checks today's sum; it is given back when its transaction can no longer take effect.
CREATE TABLE spends (
  tx_id TEXT PRIMARY KEY CHECK (length(tx_id) = 64),
  owner TEXT NOT NULL REFERENCES accounts (owner),
  listing_id TEXT NOT NULL REFERENCES listings (id),
  amount_lovelace INTEGER NOT NULL CHECK (amount_lovelace > 0),
  day INTEGER NOT NULL,                          -- UTC days since 1970-01-01
  state TEXT NOT NULL CHECK (state IN ('open', 'spent', 'returned'))
) STRICT, WITHOUT ROWID;
CREATE INDEX spends_of_a_day ON spends (owner, day);
-- Two equal purchases at once: one of them wins.
CREATE UNIQUE INDEX spends_open ON spends (owner, listing_id) WHERE state = 'open';

-- Outputs of service wallets that a transaction of ours spends: nobody else may build on them.
CREATE TABLE reservations (
  tx_in TEXT PRIMARY KEY,                        -- txHash#index
  tx_id TEXT NOT NULL REFERENCES settlements (tx_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX reservations_by_tx ON reservations (tx_id);

-- The wallet that built a settlement, if one of ours did.
ALTER TABLE settlements ADD COLUMN wallet TEXT;
CREATE INDEX settlements_by_wallet ON settlements (wallet, created_at_ms) WHERE wallet IS NOT NULL;

-- A transaction that took effect makes its spend final; one that cannot gives the spend and the inputs back.
CREATE TRIGGER settlements_end AFTER UPDATE OF state ON settlements WHEN old.state <> new.state BEGIN
  UPDATE spends SET state = CASE new.state WHEN 'included' THEN 'spent' WHEN 'refused' THEN 'returned'
    WHEN 'expired' THEN 'returned' ELSE 'open' END
  WHERE tx_id = new.tx_id;
  DELETE FROM reservations WHERE tx_id = new.tx_id AND new.state IN ('refused', 'expired');
END;
