-- Escrows of protected purchases, as the chain has them now.
CREATE TABLE escrows (
  purchase_id TEXT PRIMARY KEY REFERENCES purchases (id),
  utxo TEXT UNIQUE,                              -- the output that is the escrow now; NULL once it is over
  address TEXT NOT NULL,
  datum TEXT NOT NULL,                           -- hex of the CBOR in that output
  locked_lovelace INTEGER NOT NULL,
  next_at_ms INTEGER NOT NULL                    -- the next of its deadlines: when somebody may have to act
) STRICT, WITHOUT ROWID;
CREATE INDEX escrows_by_next ON escrows (next_at_ms) WHERE utxo IS NOT NULL;

-- What was last read of the chain: its newest block. One clock for escrow matters is the later of the wall clock and
-- that block's time.
CREATE TABLE chain_state (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  tip_hash TEXT NOT NULL,
  tip_height INTEGER NOT NULL,
  tip_slot INTEGER NOT NULL,
  tip_time_ms INTEGER NOT NULL
) STRICT;
