-- Events: a log of what owners are notified of, at `GET /me/events`, in a feed, and by webhooks. Triggers append to it
-- when a record changes that concerns an account; Rust only reads it, and deletes old rows.
--
-- Events are stored, because they cannot be derived from the records: requests for approval are deleted, and a step may
-- be found long after its block. `seq` is the order in which the service learned of the events, so a reader that
-- continues after the last row it has read misses nothing.
CREATE TABLE events (
  seq INTEGER PRIMARY KEY,                       -- never reused, because the newest row is not deleted
  id TEXT NOT NULL DEFAULT ('evt_' || lower(hex(randomblob(16)))), -- public id, the same however often the event is sent
  owner TEXT NOT NULL REFERENCES accounts (owner), -- the account that is notified
  kind TEXT NOT NULL CHECK (kind IN ('sale', 'proof', 'refund_requested', 'dispute', 'refund', 'payout', 'closed',
    'approval_requested', 'old_token', 'rolled_back', 'test')),
  role TEXT CHECK (role IN ('seller', 'buyer')), -- the account's part in the purchase; NULL if there is none
  at_ms INTEGER NOT NULL,                        -- time of the block that included it, or of the request
  listing_id TEXT,
  purchase_id TEXT,
  tx_id TEXT,                                    -- the transaction that the block includes
  amount_lovelace INTEGER,                       -- the seller's share, the buyer's price, or the price to approve
  request_id TEXT,                               -- the request for approval
  grant_id TEXT,                                 -- the agent
  undoes TEXT,                                   -- id of the event that a rollback undid; only if `kind` is 'rolled_back'
  undone_by TEXT                                 -- id of the event that reports the rollback
) STRICT;
CREATE INDEX events_by_owner ON events (owner, seq);
CREATE INDEX events_by_purchase ON events (purchase_id) WHERE purchase_id IS NOT NULL;

-- The accounts that are notified of a purchase: the seller's, and that of the buyer, who paid from the Surety balance or
-- with the wallet that signed in. The shared demo account has no owner to notify.
CREATE VIEW notified_parties AS
SELECT p.id AS purchase_id, a.owner, 'seller' AS role, p.listing_id,
  iif(p.mode = 'instant', p.price_lovelace, p.creator_lovelace) AS amount
FROM purchases p JOIN accounts a ON a.owner = p.seller_address
UNION ALL SELECT p.id, a.owner, 'buyer', p.listing_id, p.price_lovelace
FROM purchases p JOIN accounts a ON a.wallet_address = p.buyer_address WHERE a.owner_key IS NOT NULL
UNION ALL SELECT p.id, a.owner, 'buyer', p.listing_id, p.price_lovelace
FROM purchases p JOIN accounts a ON a.owner_key = p.buyer_key;

CREATE TRIGGER events_sold AFTER INSERT ON purchases BEGIN
  INSERT INTO events (owner, kind, role, at_ms, listing_id, purchase_id, tx_id, amount_lovelace)
  SELECT owner, 'sale', role, new.bought_at_ms, listing_id, new.id, new.id, amount
  FROM notified_parties WHERE purchase_id = new.id;
END;

CREATE TRIGGER events_stepped AFTER INSERT ON escrow_steps
WHEN new.status IN ('ResultSubmitted', 'RefundRequested', 'Disputed', 'refunded', 'closed') OR new.creator_paid = 1 BEGIN
  INSERT INTO events (owner, kind, role, at_ms, listing_id, purchase_id, tx_id, amount_lovelace)
  SELECT owner, CASE new.status WHEN 'ResultSubmitted' THEN 'proof' WHEN 'RefundRequested' THEN 'refund_requested'
      WHEN 'Disputed' THEN 'dispute' WHEN 'refunded' THEN 'refund' WHEN 'closed' THEN 'closed' ELSE 'payout' END,
    role, new.at_ms, listing_id, new.purchase_id, new.tx_id, amount
  FROM notified_parties WHERE purchase_id = new.purchase_id;
END;

-- After a dispute that the seller won, the service pays the creator by a transaction of its own.
CREATE TRIGGER events_paid_out AFTER UPDATE OF state ON outbox
WHEN new.kind = 'payout' AND new.state = 'included' AND old.state <> 'included' BEGIN
  INSERT INTO events (owner, kind, role, at_ms, listing_id, purchase_id, tx_id, amount_lovelace)
  SELECT owner, 'payout', role, new.block_time_ms, listing_id, purchase_id, new.tx_id, amount
  FROM notified_parties WHERE purchase_id = new.acts_on ->> '$[0]';
END;

-- A rollback does not delete events that may have been sent already. It marks them, and a further event
-- reports the rollback. If another block includes the transaction again, that is an event of its own.
CREATE TRIGGER events_sale_gone AFTER DELETE ON purchases BEGIN
  UPDATE events SET undone_by = 'evt_' || lower(hex(randomblob(16)))
  WHERE purchase_id = old.id AND undone_by IS NULL AND kind <> 'rolled_back';
END;
CREATE TRIGGER events_step_gone AFTER DELETE ON escrow_steps WHEN old.tx_id <> old.purchase_id BEGIN
  UPDATE events SET undone_by = 'evt_' || lower(hex(randomblob(16)))
  WHERE purchase_id = old.purchase_id AND tx_id = old.tx_id AND undone_by IS NULL AND kind <> 'rolled_back';
END;
CREATE TRIGGER events_payout_gone AFTER UPDATE OF state ON outbox
WHEN new.kind = 'payout' AND old.state = 'included' AND new.state <> 'included' BEGIN
  UPDATE events SET undone_by = 'evt_' || lower(hex(randomblob(16)))
  WHERE purchase_id IN (SELECT purchase_id FROM outbox_purchases WHERE tx_id = new.tx_id) AND tx_id = new.tx_id
    AND undone_by IS NULL AND kind <> 'rolled_back';
END;
CREATE TRIGGER events_undone AFTER UPDATE OF undone_by ON events BEGIN
  INSERT INTO events (id, owner, kind, role, at_ms, listing_id, purchase_id, tx_id, amount_lovelace, undoes)
  VALUES (new.undone_by, new.owner, 'rolled_back', new.role,
    coalesce((SELECT max(tip_time_ms, new.at_ms) FROM chain_state), new.at_ms),
    new.listing_id, new.purchase_id, new.tx_id, new.amount_lovelace, new.id);
END;

-- At most twenty events an hour for the requests of one agent, so that an agent with many requests does not hide other
-- events. `GET /me/requests` returns all requests.
CREATE TRIGGER events_asked AFTER INSERT ON purchase_requests
WHEN (SELECT count(*) FROM (SELECT kind, grant_id, at_ms FROM events WHERE owner = new.owner ORDER BY seq DESC LIMIT 100)
  WHERE kind = 'approval_requested' AND grant_id = new.grant_id AND at_ms > new.asked_at_ms - 3600000) < 20 BEGIN
  INSERT INTO events (owner, kind, at_ms, listing_id, amount_lovelace, request_id, grant_id)
  VALUES (new.owner, 'approval_requested', new.asked_at_ms, new.listing_id, new.price, new.id, new.grant_id);
END;

-- One event for any number of attempts to use an old refresh token, until an hour has passed without an attempt.
CREATE TRIGGER events_old_token AFTER UPDATE OF old_token_at_ms ON oauth_grants
WHEN new.old_token_at_ms - coalesce(old.old_token_at_ms, 0) >= 3600000 BEGIN
  INSERT INTO events (owner, kind, at_ms, grant_id) VALUES (new.owner, 'old_token', new.old_token_at_ms, new.id);
END;

-- Private feeds: at most one per account, by the SHA-256 of the token in its address.
CREATE TABLE event_feeds (
  owner TEXT PRIMARY KEY REFERENCES accounts (owner),
  token_hash TEXT NOT NULL UNIQUE CHECK (length(token_hash) = 64),
  created_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Webhooks: at most one per account. A webhook's secret is not stored: it is derived from the owner, the salt, and the
-- master secret of version `key_version`.
CREATE TABLE webhooks (
  owner TEXT PRIMARY KEY REFERENCES accounts (owner),
  url TEXT NOT NULL,
  salt TEXT NOT NULL CHECK (length(salt) = 32),
  key_version INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  sent_seq INTEGER NOT NULL,                     -- position of the last event that was delivered or given up
  attempts INTEGER NOT NULL DEFAULT 0,           -- failed attempts to send the next event
  failing_since_ms INTEGER,                      -- first failure since the last delivery
  failure TEXT,                                  -- reason of the last failure
  delivered_at_ms INTEGER,
  off_at_ms INTEGER,                             -- time since which nothing is sent; NULL if it is on
  -- Time of the next attempt, or the end of the lease of the watcher's run that sends; NULL if there is nothing to send, or if it is off.
  next_at_ms INTEGER,
  leased INTEGER NOT NULL DEFAULT 0 CHECK (leased IN (0, 1)),
  CHECK (off_at_ms IS NULL OR next_at_ms IS NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhooks_due ON webhooks (next_at_ms) WHERE next_at_ms IS NOT NULL;

CREATE TRIGGER events_announced AFTER INSERT ON events BEGIN
  UPDATE webhooks SET next_at_ms = new.at_ms WHERE owner = new.owner AND next_at_ms IS NULL AND off_at_ms IS NULL;
END;
