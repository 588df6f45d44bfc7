-- What is known of the chain.

-- Its newest block, for readers that must not ask it. One clock for escrow matters is the later of the wall clock and that
-- block's time.
CREATE TABLE chain_state (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  tip_hash TEXT NOT NULL,
  tip_height INTEGER NOT NULL,
  tip_slot INTEGER NOT NULL,
  tip_time_ms INTEGER NOT NULL
) STRICT;

-- Calls of the provider before anything was paid, on the UTC day (days since 1970-01-01) of the last one.
CREATE TABLE provider_calls (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  day INTEGER NOT NULL,
  calls INTEGER NOT NULL CHECK (calls >= 0)
) STRICT;

-- How far the escrow address's transactions were read. `rollbacks` grows with every rollback that is undone: what a tick
-- found before another undid one is not written.
CREATE TABLE chain_reading (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  rollbacks INTEGER NOT NULL,
  height INTEGER NOT NULL,                       -- of the block of the last transaction that was read
  position INTEGER NOT NULL,                     -- its place in that block; -1 for none
  signer_fingerprint TEXT NOT NULL DEFAULT ''     -- which keys the last tick signed with; empty for none
) STRICT;
INSERT INTO chain_reading (id, rollbacks, height, position) VALUES (1, 0, 0, -1);

-- Newest blocks as ticks saw them. Where the chain has another block at such a height, what came after is undone.
CREATE TABLE chain_blocks (
  height INTEGER PRIMARY KEY,
  hash TEXT NOT NULL CHECK (length(hash) = 64)
) STRICT;

-- Transactions of the escrow address that the provider did not hand out: reading went on after them. They are asked for
-- again for a day since they were listed, the one whose last try is oldest first.
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

-- A restore from a backup: a wallet's transactions since it are read before the wallet pays again. The row stays, for accounts
-- that are made again later.
CREATE TABLE restored (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  height INTEGER NOT NULL,                       -- of a block from which on the backup may lack transactions
  at_ms INTEGER NOT NULL,                        -- when the database was restored
  platform TEXT                                  -- the platform's wallet, once it is among the unread ones
) STRICT;

-- Wallets whose transactions are to be read from a place on the chain: the service wallets', and then the platform's.
CREATE TABLE unread_wallets (
  wallet TEXT PRIMARY KEY,
  height INTEGER NOT NULL,
  position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER accounts_after_restore AFTER INSERT ON accounts BEGIN
  INSERT INTO unread_wallets (wallet, height, position) SELECT new.wallet_address, height, 0 FROM restored WHERE id = 1
  ON CONFLICT DO NOTHING;
END;

-- The watcher's last tick, for the operator's status.
CREATE TABLE last_tick (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  at_ms INTEGER NOT NULL,                        -- when it began
  day INTEGER NOT NULL,                          -- days since 1970-01-01, UTC
  calls INTEGER NOT NULL,                        -- outside calls of all ticks of that day
  outcome TEXT NOT NULL CHECK (json_valid(outcome)) -- {failed?, alarms, notes}
) STRICT;
