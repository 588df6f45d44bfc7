-- Accounts: who signed in with a wallet, and the service wallet that we hold for them.
-- The wallet's key is derived from a master secret, the key version and the owner; nothing of it is stored.
CREATE TABLE accounts (
  owner TEXT PRIMARY KEY,                        -- the address signed in with; 'demo' for the shared demo wallet
  owner_key TEXT CHECK (length(owner_key) = 56), -- the payment key in that address; NULL for the demo wallet's
  wallet_address TEXT NOT NULL UNIQUE,
  wallet_key TEXT NOT NULL CHECK (length(wallet_key) = 56), -- the payment key in that one
  key_version INTEGER NOT NULL,
  max_per_payment INTEGER NOT NULL CHECK (max_per_payment BETWEEN 1000000 AND 100000000),
  daily_budget INTEGER NOT NULL CHECK (daily_budget BETWEEN max_per_payment AND 500000000),
  ask_above INTEGER CHECK (ask_above BETWEEN 0 AND 99999999), -- what costs more waits for the owner's approval, if an agent buys it
  created_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX accounts_by_key ON accounts (owner_key, wallet_key);

-- Sessions, by the SHA-256 of their token.
CREATE TABLE sessions (
  token_hash TEXT PRIMARY KEY CHECK (length(token_hash) = 64),
  owner TEXT NOT NULL REFERENCES accounts (owner),
  expires_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_expiry ON sessions (expires_at_ms);
CREATE INDEX sessions_by_owner ON sessions (owner);

-- A challenge is answered once: the request that inserts its row first has answered it.
CREATE TABLE challenge_claims (
  digest TEXT PRIMARY KEY CHECK (length(digest) = 64),
  claimed_by TEXT NOT NULL,                      -- the hash of what the claim gave out
  expires_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX challenge_claims_by_expiry ON challenge_claims (expires_at_ms);
