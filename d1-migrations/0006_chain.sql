-- State of the chain, as read by the watcher.

-- The newest known block. Escrow deadlines use the later of the wall clock and its time.
CREATE TABLE chain_state (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  tip_hash TEXT NOT NULL,
  tip_height INTEGER NOT NULL,
  tip_slot INTEGER NOT NULL,
  tip_time_ms INTEGER NOT NULL
) STRICT;

-- Number of provider calls that queued, because no payment had been submitted yet, on the newest such day (days since
-- 1970-01-01, UTC).
CREATE TABLE provider_calls (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  day INTEGER NOT NULL,
  calls INTEGER NOT NULL CHECK (calls >= 0)
) STRICT;

-- Position up to which the escrow address's transactions have been read. Each rollback that is undone increments
-- `rollbacks`, so that a concurrent run of the watcher does not write what it found before.
CREATE TABLE chain_reading (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  rollbacks INTEGER NOT NULL,
  height INTEGER NOT NULL,                       -- block of the last transaction that was read
  position INTEGER NOT NULL,                     -- its position in that block; -1 for none
  signer_fingerprint TEXT NOT NULL DEFAULT ''     -- fingerprint of the keys of the watcher's last run; empty for none
) STRICT;
INSERT INTO chain_reading (id, rollbacks, height, position) VALUES (1, 0, 0, -1);

-- The newest blocks that the watcher has seen. If the chain has another block at one of these heights, a rollback
-- happened, and the watcher undoes what it had recorded from the removed blocks.
CREATE TABLE chain_blocks (
  height INTEGER PRIMARY KEY,
  hash TEXT NOT NULL CHECK (length(hash) = 64)
) STRICT;

-- Transactions of the escrow address that the provider did not return. They are requested again for a day, least
-- recently tried first.
CREATE TABLE chain_unread (
  tx_id TEXT PRIMARY KEY CHECK (length(tx_id) = 64),
  height INTEGER NOT NULL,
  position INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,                        -- time of the block
  listed_at_ms INTEGER NOT NULL,
  tried_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX chain_unread_by_trial ON chain_unread (tried_at_ms);
CREATE INDEX chain_unread_by_listing ON chain_unread (listed_at_ms);
CREATE INDEX chain_unread_by_height ON chain_unread (height);

-- The last restore from a backup. A wallet's transactions since then are read before it pays again. The row is kept for
-- accounts that are created again later.
CREATE TABLE restored (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  height INTEGER NOT NULL,                       -- first block with transactions that the backup may lack
  at_ms INTEGER NOT NULL,                        -- when the database was restored
  platform TEXT                                  -- the platform's wallet, once it was added to unread_wallets
) STRICT;

-- Wallets whose transactions remain to be read, from a position on the chain: service wallets, then the platform's.
CREATE TABLE unread_wallets (
  wallet TEXT PRIMARY KEY,
  height INTEGER NOT NULL,
  position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER accounts_after_restore AFTER INSERT ON accounts BEGIN
  INSERT INTO unread_wallets (wallet, height, position) SELECT new.wallet_address, height, 0 FROM restored WHERE id = 1
  ON CONFLICT DO NOTHING;
END;

-- The watcher's last run (*tick*), for the operator's status and for notifications.
CREATE TABLE last_tick (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  -- Number of runs begun. KV stores it too: if the database's number is lower, the database was restored from a backup.
  number INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,                        -- when the last run began
  day INTEGER NOT NULL DEFAULT 0,                -- days since 1970-01-01, UTC
  calls INTEGER NOT NULL DEFAULT 0,              -- outgoing calls of all runs on that day
  outcome TEXT NOT NULL DEFAULT '{"alarms":[],"notes":[]}' CHECK (json_valid(outcome)), -- {failed?, alarms, notes}
  failures INTEGER NOT NULL DEFAULT 0,           -- number of runs in a row that ended early
  wallets TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(wallets)), -- balances of the wallets that pay fees
  -- Alarms that the operator was notified of, and when: {names, at}.
  notified TEXT NOT NULL DEFAULT '{"names":[],"at":0}' CHECK (json_valid(notified))
) STRICT;
