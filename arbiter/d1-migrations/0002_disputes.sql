-- The arbiter's own memory besides its outbox. Whether an escrow is paid is never stored: the chain says so each time.

-- How far the way from a disputed escrow back to its lock was followed. A long walk goes on where it stopped.
CREATE TABLE walks (
  escrow TEXT PRIMARY KEY,                       -- the output, txHash#index
  reached TEXT NOT NULL,                         -- the earliest output on the way, txHash#index
  tried INTEGER NOT NULL CHECK (tried >= 0),     -- transactions before that one that were found not to be on the way
  lock_tx TEXT CHECK (length(lock_tx) = 64)      -- where it ended; NULL while it goes on
) STRICT, WITHOUT ROWID;

-- Outputs whose hash stands on the chain as a lock's result: the SHA-256 of each, for a mebibyte is as soon disputed as a
-- word. The first right one stays: later ones change nothing.
CREATE TABLE evidence (
  lock_tx TEXT NOT NULL CHECK (length(lock_tx) = 64),
  result_hash TEXT NOT NULL,
  output_hash TEXT NOT NULL CHECK (length(output_hash) = 64),
  received_at_ms INTEGER NOT NULL,
  PRIMARY KEY (lock_tx, result_hash)
) STRICT;

-- Decided disputes. Written before anything is signed and never changed: an output has one split that is ever signed.
CREATE TABLE awards (
  escrow TEXT PRIMARY KEY,                       -- the output, txHash#index
  award TEXT NOT NULL CHECK (coalesce(json_extract(award, '$.winner'), '') IN ('buyer', 'seller')),
  decided_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
