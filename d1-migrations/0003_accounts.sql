-- Accounts: owners who signed in with a wallet, and their service wallets. A service wallet's key is derived from the
-- master secret, the key version and the owner, and not stored.
CREATE TABLE accounts (
  owner TEXT PRIMARY KEY,                        -- the address that signed in; 'demo' for the shared demo wallet
  owner_key TEXT CHECK (length(owner_key) = 56), -- payment key of the owner's address; NULL for the demo account
  wallet_address TEXT NOT NULL UNIQUE,
  wallet_key TEXT NOT NULL CHECK (length(wallet_key) = 56), -- payment key of the wallet's address
  key_version INTEGER NOT NULL,
  max_per_payment INTEGER NOT NULL CHECK (max_per_payment BETWEEN 1000000 AND 100000000),
  daily_budget INTEGER NOT NULL CHECK (daily_budget BETWEEN max_per_payment AND 500000000),
  ask_above INTEGER CHECK (ask_above BETWEEN 0 AND 99999999), -- price above which an agent's purchase needs the owner's approval
  protected_only INTEGER NOT NULL DEFAULT 0 CHECK (protected_only IN (0, 1)), -- whether agents may only buy with protection
  min_reputation INTEGER NOT NULL DEFAULT 0 CHECK (min_reputation BETWEEN 0 AND 100), -- minimum for sellers from whom agents may buy; 0: any seller
  agents_paused INTEGER NOT NULL DEFAULT 0 CHECK (agents_paused IN (0, 1)), -- whether no agent may move money
  name TEXT CHECK (length(name) BETWEEN 1 AND 40), -- display name as a seller; NULL if the owner has set none
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

-- Answered challenges. The request that inserts the row is the first to answer.
CREATE TABLE challenge_claims (
  digest TEXT PRIMARY KEY CHECK (length(digest) = 64),
  claimed_by TEXT NOT NULL,                      -- hash of the session token or grant that it was answered for
  expires_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX challenge_claims_by_expiry ON challenge_claims (expires_at_ms);
