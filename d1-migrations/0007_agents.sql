-- Agents: the approvals by their owners. Tokens are not stored: a token carries a MAC over its grant, generation and
-- expiry, and the grant's row has the newest generation.

-- One row per approval, whose tokens form a sequence:
--   approved (generation 0, a code) -> redeemed (1) -> refreshed (2, 3, ...) -> revoked
CREATE TABLE oauth_grants (
  id TEXT PRIMARY KEY CHECK (length(id) = 32),
  request TEXT NOT NULL UNIQUE CHECK (length(request) = 32),  -- the consent request, which can be approved once
  owner TEXT NOT NULL REFERENCES accounts (owner),
  client_id TEXT NOT NULL,
  client_name TEXT NOT NULL,                     -- as the owner saw it
  redirect_uri TEXT NOT NULL,
  resource TEXT NOT NULL,                        -- the audience of its access tokens
  scope TEXT NOT NULL CHECK (scope IN ('mcp', 'mcp:read')),  -- approved by the owner
  code_challenge TEXT NOT NULL CHECK (length(code_challenge) = 43),
  client_auth TEXT NOT NULL CHECK (client_auth IN ('none', 'private_key_jwt')),  -- the client's authentication at the token endpoint
  generation INTEGER NOT NULL DEFAULT 0 CHECK (generation >= 0),
  rotated_at_ms INTEGER NOT NULL,                -- time of the last refresh
  created_at_ms INTEGER NOT NULL,
  used_at_ms INTEGER NOT NULL,                   -- last use, to the minute
  old_token_at_ms INTEGER,                       -- when a refresh token that had been replaced was last refused
  old_token_from TEXT,                           -- the network that it came from
  revoked_at_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_grants_by_owner ON oauth_grants (owner, created_at_ms) WHERE generation > 0 AND revoked_at_ms IS NULL;
CREATE INDEX oauth_grants_unredeemed ON oauth_grants (created_at_ms) WHERE generation = 0;
CREATE INDEX oauth_grants_by_client ON oauth_grants (client_id);
CREATE INDEX oauth_grants_revoked ON oauth_grants (revoked_at_ms) WHERE revoked_at_ms IS NOT NULL;
CREATE INDEX oauth_grants_by_rotation ON oauth_grants (rotated_at_ms);

-- Number of approvals per client network and day (days since 1970-01-01, UTC). The watcher deletes earlier days.
CREATE TABLE granted_days (
  day INTEGER NOT NULL,
  network TEXT NOT NULL,                         -- a digest of the day and the network
  grants INTEGER NOT NULL CHECK (grants >= 0),
  request TEXT NOT NULL,                         -- the last consent request counted
  PRIMARY KEY (day, network)
) STRICT;

-- Bytes registered per client network and day. The watcher deletes earlier days.
CREATE TABLE registered_days (
  day INTEGER NOT NULL,
  network TEXT NOT NULL,                         -- a digest of the day and the network
  bytes INTEGER NOT NULL CHECK (bytes >= 0),
  PRIMARY KEY (day, network)
) STRICT;

-- Registered clients, by the hash of their registration, so that registering again is idempotent. The watcher deletes
-- those without a grant after a day.
CREATE TABLE oauth_clients (
  id TEXT PRIMARY KEY,
  metadata TEXT NOT NULL CHECK (json_valid(metadata)),
  kept_until_ms INTEGER NOT NULL                 -- earliest time to delete it if no grant uses it
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_clients_by_end ON oauth_clients (kept_until_ms);

-- Client metadata documents and key sets, as last fetched. An outdated document is used as long as it cannot be fetched
-- again. The watcher deletes it after a month.
CREATE TABLE oauth_documents (
  url TEXT PRIMARY KEY,
  body TEXT NOT NULL,
  fetched_at_ms INTEGER NOT NULL,
  fresh_until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_documents_by_end ON oauth_documents (fresh_until_ms);

-- Client assertions that were used. Each can be used once per grant: by the request that inserts the row.
CREATE TABLE oauth_assertions (
  digest TEXT PRIMARY KEY CHECK (length(digest) = 64),
  grant_id TEXT NOT NULL CHECK (length(grant_id) = 32),
  expires_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_assertions_by_end ON oauth_assertions (expires_at_ms);
CREATE INDEX oauth_assertions_by_grant ON oauth_assertions (grant_id);

-- The grant that made a payment, for owners' overviews of their agents' spending.
CREATE TABLE agent_spends (
  tx_id TEXT PRIMARY KEY REFERENCES payments (tx_id) ON DELETE CASCADE,
  grant_id TEXT NOT NULL REFERENCES oauth_grants (id)
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_spends_by_grant ON agent_spends (grant_id);

-- Purchases that need the owner's approval (accounts.ask_above), one open request per listing and mode. Recording a
-- payment uses up an approval. The watcher deletes expired requests.
CREATE TABLE purchase_requests (
  id TEXT PRIMARY KEY CHECK (length(id) = 32),
  owner TEXT NOT NULL REFERENCES accounts (owner),
  grant_id TEXT NOT NULL REFERENCES oauth_grants (id) ON DELETE CASCADE,
  listing_id TEXT NOT NULL,
  mode TEXT NOT NULL CHECK (mode IN ('instant', 'protected')),
  price INTEGER NOT NULL CHECK (price > 0),      -- the price that was approved, which the payment may not exceed
  approved INTEGER CHECK (approved IN (0, 1)),   -- NULL until the owner answers
  tx_id TEXT CHECK (length(tx_id) = 64),         -- the payment that used the approval; a failed one does not count
  asked_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL,                -- expiry of the request, or of the approval
  UNIQUE (grant_id, listing_id, mode)
) STRICT, WITHOUT ROWID;
CREATE INDEX purchase_requests_by_owner ON purchase_requests (owner, expires_at_ms);
CREATE INDEX purchase_requests_by_end ON purchase_requests (expires_at_ms);
