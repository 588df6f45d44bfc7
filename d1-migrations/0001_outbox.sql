-- Every transaction that we hand to the network, written down before we do (crate `outbox`). The arbiter has the same
-- tables in its own database.

CREATE TABLE outbox (
  tx_id TEXT PRIMARY KEY CHECK (length(tx_id) = 64),
  kind TEXT NOT NULL CHECK (kind IN
    ('payment', 'lock', 'withdrawal', 'result', 'collect', 'refund', 'dispute', 'payout', 'split',
      'award')),
  purpose TEXT NOT NULL,                         -- what it is for: its insert holds that one live entry stands for each
  wallet TEXT,                                   -- the service's wallet that built it; NULL for a payer's own
  cbor TEXT NOT NULL,                            -- hex: the only bytes that are ever submitted for it; a payer's are not
                                                 -- kept once it is refused or expired
  state TEXT NOT NULL CHECK (state IN ('claimed', 'submitted', 'included', 'refused', 'expired')),
  reserves TEXT NOT NULL DEFAULT '{}',           -- JSON: names of the outputs to reserve, each with 1 where it is only put up
  acts_on TEXT NOT NULL DEFAULT '[]',            -- JSON: ids of the purchases that it acts on
  valid_until_slot INTEGER NOT NULL,             -- the first slot in which it is no longer valid
  attempts INTEGER NOT NULL CHECK (attempts >= 0), -- submissions since it was claimed that may have reached a node: the
                                                 -- ledger's refusal is final at the only one
  provenance TEXT NOT NULL CHECK (provenance IN ('ours', 'foreign', 'unknown')), -- who handed it to the network first
  attempted_at_ms INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  reason TEXT,                                   -- why it was refused
  block_hash TEXT,
  block_height INTEGER,
  block_slot INTEGER,
  block_time_ms INTEGER,
  never_included INTEGER NOT NULL DEFAULT 0 CHECK (never_included IN (0, 1)), -- a refused or expired payment that was in no block when
                                                   -- it was asked for long after its end: it is looked for no more
  recheck INTEGER NOT NULL DEFAULT 0 CHECK (recheck IN (0, 1)), -- a rollback may have removed it: to be asked for again
  CHECK ((state = 'included') = (block_hash IS NOT NULL) AND (block_hash IS NULL) = (block_height IS NULL)
    AND (block_hash IS NULL) = (block_slot IS NULL) AND (block_hash IS NULL) = (block_time_ms IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX outbox_by_purpose ON outbox (purpose);
CREATE INDEX outbox_open ON outbox (kind, valid_until_slot) WHERE state IN ('claimed', 'submitted');
CREATE INDEX outbox_over ON outbox (kind, valid_until_slot) WHERE state IN ('refused', 'expired');
CREATE INDEX outbox_by_wallet ON outbox (wallet, created_at_ms) WHERE wallet IS NOT NULL;
CREATE INDEX outbox_not_included ON outbox (wallet) WHERE wallet IS NOT NULL AND state <> 'included';
CREATE INDEX outbox_by_height ON outbox (block_height) WHERE state = 'included';
CREATE INDEX outbox_recheck ON outbox (block_height) WHERE recheck = 1;

-- Outputs that an entry spends or puts up: no other entry may use them.
CREATE TABLE reservations (
  tx_in TEXT PRIMARY KEY,                        -- txHash#index, or payer:txHash#index of a payer's own: one entry for
                                                 -- each
  tx_id TEXT NOT NULL REFERENCES outbox (tx_id),
  collateral INTEGER NOT NULL CHECK (collateral IN (0, 1)), -- 1: only put up, and whole again once it is in a block
  spent_at_ms INTEGER                            -- time of the block that has the entry; NULL while none has it
) STRICT, WITHOUT ROWID;

CREATE INDEX reservations_by_tx ON reservations (tx_id);
CREATE INDEX reservations_by_end ON reservations (spent_at_ms) WHERE spent_at_ms IS NOT NULL;

-- Reservations follow their entry. They are made as it is claimed: one that cannot be made undoes the claim. Entries that a
-- restore inserts after their end make none. What an entry only put up is whole again once a block has it. What it spent stays
-- reserved until every provider must know that block, or a rollback removes it.
CREATE TRIGGER reservations_claimed AFTER INSERT ON outbox WHEN new.state IN ('claimed', 'submitted') BEGIN
  INSERT INTO reservations (tx_in, tx_id, collateral) SELECT key, new.tx_id, value FROM json_each(new.reserves);
END;
CREATE TRIGGER reservations_claimed_again AFTER UPDATE OF state ON outbox
WHEN old.state = 'refused' AND new.state = 'claimed' BEGIN
  INSERT INTO reservations (tx_in, tx_id, collateral) SELECT key, new.tx_id, value FROM json_each(new.reserves);
END;
CREATE TRIGGER reservations_dated AFTER UPDATE OF block_time_ms ON outbox
WHEN old.block_time_ms IS NOT new.block_time_ms BEGIN
  DELETE FROM reservations WHERE tx_id = new.tx_id AND collateral = 1;
  UPDATE reservations SET spent_at_ms = new.block_time_ms WHERE tx_id = new.tx_id;
END;
CREATE TRIGGER reservations_failed AFTER UPDATE OF state ON outbox WHEN new.state IN ('refused', 'expired') BEGIN
  DELETE FROM reservations WHERE tx_id = new.tx_id;
END;
