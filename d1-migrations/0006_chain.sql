-- What is known of the chain.

-- Its newest block, for readers that must not ask it. One clock for escrow matters is the later of the wall clock and that
-- block's time.
CREATE TABLE chain_state (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  tip_hash TEXT NOT NULL,
  tip_height INTEGER NOT NULL,
  tip_slot INTEGER NOT NULL,
  tip_time_ms INTEGER NOT NULL
) STRICT;

-- How far the escrow address's transactions were read. `version` grows with every reading that is written: of two
-- ticks that read at the same time, one writes, and the other's batch fails as a whole.
CREATE TABLE chain_reading (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  version INTEGER NOT NULL,
  height INTEGER NOT NULL,                       -- of the block of the last transaction that was read
  position INTEGER NOT NULL,                     -- its place in that block; -1 for none
  behind INTEGER NOT NULL DEFAULT 0,             -- whether something may be left to read up to the newest block that was seen
  acts_as TEXT NOT NULL DEFAULT ''               -- for which seller the last tick acted; empty for none
) STRICT;
INSERT INTO chain_reading (only, version, height, position) VALUES (1, 0, 0, -1);

-- Newest blocks as ticks saw them. Where the chain has another block at such a height, what came after is undone.
CREATE TABLE chain_blocks (
  height INTEGER PRIMARY KEY,
  hash TEXT NOT NULL CHECK (length(hash) = 64)
) STRICT;
