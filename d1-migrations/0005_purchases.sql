-- Purchases and their escrows. Records: `locks`, `escrow_steps` and `escrow_watch`. Projections (0008_projections.sql):
-- `purchases`, `outbox_purchases` and `escrows`.

-- A purchase exists while a block includes its payment.
CREATE TABLE purchases (
  id TEXT PRIMARY KEY CHECK (length(id) = 64),   -- the payment's or the lock's transaction id
  listing_id TEXT NOT NULL REFERENCES listings (id),
  mode TEXT NOT NULL CHECK (mode IN ('instant', 'protected')),
  seller_address TEXT NOT NULL,
  buyer_address TEXT NOT NULL,                   -- as the payment names it
  buyer_key TEXT NOT NULL CHECK (length(buyer_key) = 56), -- payment key of that address, which owns the purchase
  price_lovelace INTEGER NOT NULL,
  creator_lovelace INTEGER NOT NULL,             -- the creator's share of a protected sale, fixed when it was paid
  status TEXT NOT NULL CHECK (status IN ('FundsLocked', 'ResultSubmitted', 'RefundRequested', 'Disputed',
    'WithdrawAuthorized', 'RefundAuthorized', 'withdrawing', 'settled', 'withdrawn', 'refunded', 'closed')),
  bought_at_ms INTEGER NOT NULL                  -- time of the block
) STRICT, WITHOUT ROWID;

CREATE INDEX purchases_by_seller ON purchases (seller_address, bought_at_ms);
CREATE INDEX purchases_between ON purchases (seller_address, buyer_key, bought_at_ms);
CREATE INDEX purchases_by_buyer ON purchases (buyer_key, listing_id);

-- The purchases on which an outbox entry acts. One transaction may act on several escrows.
CREATE TABLE outbox_purchases (
  tx_id TEXT NOT NULL REFERENCES outbox (tx_id) ON DELETE CASCADE,
  purchase_id TEXT NOT NULL,
  PRIMARY KEY (tx_id, purchase_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_purchases_by_purchase ON outbox_purchases (purchase_id);

-- The terms of each protected purchase that never change, as the lock's datum states them.
CREATE TABLE locks (
  purchase_id TEXT PRIMARY KEY REFERENCES purchases (id) ON DELETE CASCADE,
  address TEXT NOT NULL,                         -- of the contract
  input_hash TEXT NOT NULL,
  pay_by_ms INTEGER NOT NULL,                    -- the deadlines, POSIX ms
  submit_result_ms INTEGER NOT NULL,
  unlock_ms INTEGER NOT NULL,
  external_dispute_unlock_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Every transaction of every escrow, the lock first, with the escrow's state after it. A step that a rollback removed
-- is deleted, and the purchase then shows the step before.
CREATE TABLE escrow_steps (
  purchase_id TEXT NOT NULL REFERENCES purchases (id) ON DELETE CASCADE,
  tx_id TEXT NOT NULL CHECK (length(tx_id) = 64),
  height INTEGER NOT NULL,
  position INTEGER NOT NULL,                     -- number of the step in its escrow; the lock is 0
  at_ms INTEGER NOT NULL,                        -- time of the block
  status TEXT NOT NULL,
  utxo TEXT,                                     -- the escrow's output after this step; NULL if the escrow ended
  datum TEXT NOT NULL,
  locked_lovelace INTEGER NOT NULL,
  result_hash TEXT,
  creator_paid INTEGER NOT NULL CHECK (creator_paid IN (0, 1)), -- 1 if the transaction also pays the creator
  -- 1 if the step's block may belong to another fork. Set for steps of other parties until they are verified on the
  -- chain.
  recheck INTEGER NOT NULL DEFAULT 0 CHECK (recheck IN (0, 1)),
  PRIMARY KEY (purchase_id, tx_id),              -- reading the same transaction again changes nothing
  UNIQUE (purchase_id, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX escrow_steps_by_height ON escrow_steps (height);
CREATE INDEX escrow_steps_by_tx ON escrow_steps (tx_id);
CREATE INDEX escrow_steps_recheck ON escrow_steps (height) WHERE recheck = 1;

-- The watcher's schedule. A row counts only for the escrow output that it names: an escrow with a newer output is due
-- at once.
CREATE TABLE escrow_watch (
  purchase_id TEXT PRIMARY KEY REFERENCES purchases (id) ON DELETE CASCADE,
  utxo TEXT,
  next_at_ms INTEGER NOT NULL,                   -- time of the next check of that output, POSIX ms
  failures INTEGER NOT NULL DEFAULT 0,           -- number of failed actions on that output
  delivered_hash TEXT                            -- result hash of the delivered content; NULL until it is computed
) STRICT, WITHOUT ROWID;

-- The present state of each escrow: its terms, the output and datum that its newest step left, and the time of the
-- watcher's next check.
CREATE TABLE escrows (
  purchase_id TEXT PRIMARY KEY REFERENCES purchases (id) ON DELETE CASCADE,
  address TEXT NOT NULL,
  utxo TEXT UNIQUE,                              -- the escrow's current output; NULL once it has ended
  datum TEXT NOT NULL,                           -- hex of the CBOR in that output, or in the last one
  locked_lovelace INTEGER NOT NULL,
  input_hash TEXT NOT NULL,
  result_hash TEXT,
  pay_by_ms INTEGER NOT NULL,
  submit_result_ms INTEGER NOT NULL,
  unlock_ms INTEGER NOT NULL,
  external_dispute_unlock_ms INTEGER NOT NULL,
  creator_due INTEGER NOT NULL DEFAULT 0 CHECK (creator_due IN (0, 1)), -- 1 if a dispute was won and the creator is not paid yet
  next_at_ms INTEGER NOT NULL                    -- time of the next check of this output; 0 (at once) without a schedule
) STRICT, WITHOUT ROWID;
CREATE INDEX escrows_by_next ON escrows (next_at_ms) WHERE utxo IS NOT NULL;
CREATE INDEX escrows_unposted ON escrows (submit_result_ms) WHERE utxo IS NOT NULL AND result_hash IS NULL;
CREATE INDEX escrows_creator_due ON escrows (purchase_id) WHERE creator_due = 1;

-- Decisions of disputes, as the arbiter answered when the watcher asked. The chain shows the payout; only this table
-- has the reason.
CREATE TABLE decisions (
  purchase_id TEXT PRIMARY KEY CHECK (length(purchase_id) = 64),
  seller_address TEXT NOT NULL,
  winner TEXT NOT NULL CHECK (winner IN ('buyer', 'seller')),
  reason TEXT NOT NULL CHECK (length(reason) <= 500)
) STRICT, WITHOUT ROWID;
CREATE INDEX decisions_by_seller ON decisions (seller_address, winner);
