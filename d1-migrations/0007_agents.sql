-- Agents: what owners approved for them. No token is stored, not even hashed: a token carries a MAC over its grant, its
-- generation and its end, and a row here says which generation is the newest.

-- One approval, one family of tokens, one row:
--   approved (generation 0, a code is out) -> redeemed (1) -> refreshed (2, 3, ...) -> revoked
CREATE TABLE oauth_grants (
  id TEXT PRIMARY KEY CHECK (length(id) = 32),
  request TEXT NOT NULL UNIQUE CHECK (length(request) = 32),  -- the consent request: approved once
  owner TEXT NOT NULL REFERENCES accounts (owner),
  client_id TEXT NOT NULL,
  client_name TEXT NOT NULL,                     -- as the owner saw it
  redirect_uri TEXT NOT NULL,
  resource TEXT NOT NULL,                        -- the audience of its access tokens
  scope TEXT NOT NULL CHECK (scope IN ('mcp', 'mcp:read')),  -- what the owner allowed
  code_challenge TEXT NOT NULL CHECK (length(code_challenge) = 43),
  client_auth TEXT NOT NULL CHECK (client_auth IN ('none', 'private_key_jwt')),  -- how the client proves itself for tokens
  generation INTEGER NOT NULL DEFAULT 0 CHECK (generation >= 0),
  rotated_at_ms INTEGER NOT NULL,                -- when this generation began
  created_at_ms INTEGER NOT NULL,
  used_at_ms INTEGER NOT NULL,                   -- last use, to the minute
  revoked_at_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_grants_by_owner ON oauth_grants (owner, created_at_ms) WHERE generation > 0 AND revoked_at_ms IS NULL;
CREATE INDEX oauth_grants_unredeemed ON oauth_grants (created_at_ms) WHERE generation = 0;
CREATE INDEX oauth_grants_by_client ON oauth_grants (client_id);
CREATE INDEX oauth_grants_revoked ON oauth_grants (revoked_at_ms) WHERE revoked_at_ms IS NOT NULL;
CREATE INDEX oauth_grants_by_rotation ON oauth_grants (rotated_at_ms);

-- What was approved from each network on each day (days since 1970-01-01, UTC). Yesterday's leave, by the watcher.
CREATE TABLE granted_days (
  day INTEGER NOT NULL,
  network TEXT NOT NULL,                         -- a digest of the day and the network
  grants INTEGER NOT NULL CHECK (grants >= 0),
  request TEXT NOT NULL,                         -- the consent request that was counted last
  PRIMARY KEY (day, network)
) STRICT;

-- What was registered from each network on each day, in bytes. Yesterday's leave, by the watcher.
CREATE TABLE registered_days (
  day INTEGER NOT NULL,
  network TEXT NOT NULL,                         -- a digest of the day and the network
  bytes INTEGER NOT NULL CHECK (bytes >= 0),
  PRIMARY KEY (day, network)
) STRICT;

-- Registered clients, by the hash of what they registered: registering again finds the same row. Those that no grant names
-- leave after a day, by the watcher.
CREATE TABLE oauth_clients (
  id TEXT PRIMARY KEY,
  metadata TEXT NOT NULL CHECK (json_valid(metadata)),
  kept_until_ms INTEGER NOT NULL                 -- when to look whether a grant names it
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_clients_by_end ON oauth_clients (kept_until_ms);

-- Client id metadata documents and key sets, as last fetched. One that is not fresh any more stands in for one that cannot
-- be fetched just now; the watcher removes it after a month.
CREATE TABLE oauth_documents (
  url TEXT PRIMARY KEY,
  body TEXT NOT NULL,
  fetched_at_ms INTEGER NOT NULL,
  fresh_until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_documents_by_end ON oauth_documents (fresh_until_ms);

-- A client's assertion is used once, for a grant: the request that inserts its row first has used it.
CREATE TABLE oauth_assertions (
  digest TEXT PRIMARY KEY CHECK (length(digest) = 64),
  grant_id TEXT NOT NULL CHECK (length(grant_id) = 32),
  expires_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_assertions_by_end ON oauth_assertions (expires_at_ms);
CREATE INDEX oauth_assertions_by_grant ON oauth_assertions (grant_id);

-- Which grant a spend was made with: owners see what each agent spent.
CREATE TABLE agent_spends (
  tx_id TEXT PRIMARY KEY REFERENCES payments (tx_id) ON DELETE CASCADE,
  grant_id TEXT NOT NULL REFERENCES oauth_grants (id)
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_spends_by_grant ON agent_spends (grant_id);

-- Purchases that agents asked their owners to approve (accounts.ask_above), one at a time for each listing and mode. The
-- claim of a payment uses an approval up. Those that are over leave, by the watcher.
CREATE TABLE purchase_requests (
  id TEXT PRIMARY KEY CHECK (length(id) = 32),
  owner TEXT NOT NULL REFERENCES accounts (owner),
  grant_id TEXT NOT NULL REFERENCES oauth_grants (id) ON DELETE CASCADE,
  listing_id TEXT NOT NULL,
  mode TEXT NOT NULL CHECK (mode IN ('instant', 'protected')),
  price INTEGER NOT NULL CHECK (price > 0),      -- what the owner is shown: the payment may cost no more
  approved INTEGER CHECK (approved IN (0, 1)),   -- NULL until the owner answers
  tx_id TEXT CHECK (length(tx_id) = 64),         -- the payment that used the approval up, unless it failed
  expires_at_ms INTEGER NOT NULL,                -- of the request; once it is approved, of the approval
  UNIQUE (grant_id, listing_id, mode)
) STRICT, WITHOUT ROWID;
CREATE INDEX purchase_requests_by_owner ON purchase_requests (owner, expires_at_ms);
CREATE INDEX purchase_requests_by_end ON purchase_requests (expires_at_ms);
