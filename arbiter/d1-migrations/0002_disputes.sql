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
