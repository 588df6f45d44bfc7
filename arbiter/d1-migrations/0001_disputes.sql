-- The arbiter's own memory. Whether an escrow is paid is never stored: the chain says so each time.

-- Where a disputed escrow was locked, found by walking back along the chain. A long walk goes on where it stopped.
CREATE TABLE traces (
  escrow TEXT PRIMARY KEY,                       -- the output, txHash#index
  reached TEXT NOT NULL,                         -- how far back the walk is, txHash#index
  lock_tx TEXT CHECK (length(lock_tx) = 64)      -- where it ended; NULL while it goes on
) STRICT, WITHOUT ROWID;

-- Outputs whose hash stands on the chain as a lock's result. Who sends the right one first has sent it for good: what
-- is sent later changes nothing.
CREATE TABLE evidence (
  lock_tx TEXT NOT NULL CHECK (length(lock_tx) = 64),
  result_hash TEXT NOT NULL,
  output TEXT NOT NULL,
  received_at_ms INTEGER NOT NULL,
  PRIMARY KEY (lock_tx, result_hash)
) STRICT;

-- Decided disputes. Written before anything is signed and never changed: an output has one split that is ever signed.
CREATE TABLE decisions (
  escrow TEXT PRIMARY KEY,                       -- the output, txHash#index
  winner TEXT NOT NULL CHECK (winner IN ('buyer', 'seller')),
  verdict TEXT NOT NULL CHECK (json_valid(verdict)), -- as it is answered
  decided_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Transactions that carry decisions out, written down before they are sent. A crash or a repeated request finds them
-- here and sends the same bytes again.
CREATE TABLE payouts (
  tx_id TEXT PRIMARY KEY CHECK (length(tx_id) = 64),
  escrow TEXT NOT NULL REFERENCES decisions (escrow),
  cbor TEXT NOT NULL,                            -- hex
  state TEXT NOT NULL CHECK (state IN ('claimed', 'submitted', 'ended')),
  valid_until_slot INTEGER NOT NULL,             -- the first slot in which it is no longer valid
  attempts INTEGER NOT NULL,                     -- submissions that were begun
  attempted_at_ms INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  reason TEXT                                    -- why it ended without effect
) STRICT, WITHOUT ROWID;

-- However many requests come at once, one transaction at a time stands for an escrow. (That it is paid once the
-- ledger itself holds: all of them spend the same output.)
CREATE UNIQUE INDEX payouts_live ON payouts (escrow) WHERE state <> 'ended';
CREATE INDEX payouts_by_time ON payouts (created_at_ms);

-- Outputs of the arbiter's wallet that a payout spends or puts up: no other may build on them.
CREATE TABLE reservations (
  tx_in TEXT PRIMARY KEY,                        -- txHash#index
  tx_id TEXT NOT NULL REFERENCES payouts (tx_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX reservations_by_tx ON reservations (tx_id);

CREATE TRIGGER payouts_end AFTER UPDATE OF state ON payouts WHEN new.state = 'ended' BEGIN
  DELETE FROM reservations WHERE tx_id = new.tx_id;
END;
