-- Tables of the arbiter beside its outbox. Whether an escrow is paid is never stored, because the chain shows it each
-- time.

-- Progress of tracing disputed escrows back to their locks. A long trace is continued by the next request.
CREATE TABLE walks (
  escrow TEXT PRIMARY KEY,                       -- the disputed output, txHash#index
  reached TEXT NOT NULL,                         -- earliest output reached so far, txHash#index
  tried INTEGER NOT NULL CHECK (tried >= 0),     -- number of transactions already found not to have created its predecessor
  lock_tx TEXT CHECK (length(lock_tx) = 64)      -- the lock; NULL until it is found
) STRICT, WITHOUT ROWID;

-- Delivered texts that match the result posted for a lock, by their SHA-256 (a text can have a mebibyte). The first one
-- that matches is kept; later ones change nothing.
CREATE TABLE evidence (
  lock_tx TEXT NOT NULL CHECK (length(lock_tx) = 64),
  result_hash TEXT NOT NULL,
  output_hash TEXT NOT NULL CHECK (length(output_hash) = 64),
  received_at_ms INTEGER NOT NULL,
  PRIMARY KEY (lock_tx, result_hash)
) STRICT;

-- Decided disputes. A row is written before anything is signed and never changes, so at most one division of an output
-- is ever signed.
CREATE TABLE awards (
  escrow TEXT PRIMARY KEY,                       -- the output, txHash#index
  award TEXT NOT NULL CHECK (coalesce(json_extract(award, '$.winner'), '') IN ('buyer', 'seller')),
  decided_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
