-- What the watcher knows: how far it read the chain, every step of every escrow, and what it did itself.

-- How far the escrow address's transactions were read. `version` grows with every reading that is written: of two
-- ticks that read at the same time, one writes, and the other's batch fails as a whole.
CREATE TABLE chain_reading (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  version INTEGER NOT NULL,
  height INTEGER NOT NULL,                       -- of the block of the last transaction that was read
  position INTEGER NOT NULL                      -- its place in that block; -1 for none
) STRICT;
INSERT INTO chain_reading VALUES (1, 0, 0, -1);

-- Newest blocks as ticks saw them. Where the chain has another block at such a height, what came after is undone.
CREATE TABLE chain_blocks (
  height INTEGER PRIMARY KEY,
  hash TEXT NOT NULL CHECK (length(hash) = 64)
) STRICT;

-- What we did ourselves, for which purchase. NULL for payments and withdrawals of buyers.
ALTER TABLE settlements ADD COLUMN purchase_id TEXT;
ALTER TABLE settlements ADD COLUMN action TEXT;
CREATE INDEX settlements_by_height ON settlements (block_height) WHERE state = 'included';

-- Whether the creator of a sale that was won is still to be paid.
ALTER TABLE escrows ADD COLUMN creator_due INTEGER NOT NULL DEFAULT 0;
CREATE INDEX escrows_creator_due ON escrows (purchase_id) WHERE creator_due = 1;

-- Every transaction of every escrow: what it left. The newest step is what the escrow, its purchase and the timeline
-- show; a step that a rollback removed is deleted, and they show the one before again.
CREATE TABLE escrow_steps (
  purchase_id TEXT NOT NULL REFERENCES purchases (id),
  tx_id TEXT NOT NULL CHECK (length(tx_id) = 64),
  height INTEGER NOT NULL,
  position INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  utxo TEXT,                                     -- the escrow after it; NULL where it ended
  datum TEXT NOT NULL,
  locked_lovelace INTEGER NOT NULL,
  status TEXT NOT NULL,
  shown TEXT NOT NULL CHECK (json_valid(shown)), -- the escrow's public JSON after it
  creator_due INTEGER NOT NULL,
  PRIMARY KEY (purchase_id, tx_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX escrow_steps_by_height ON escrow_steps (height);

CREATE TRIGGER escrows_new AFTER INSERT ON escrows BEGIN
  INSERT INTO escrow_steps (purchase_id, tx_id, height, position, at_ms, utxo, datum, locked_lovelace, status, shown, creator_due)
  SELECT p.id, p.id, coalesce(s.block_height, 0), 0, p.bought_at_ms, new.utxo, new.datum, new.locked_lovelace, p.status, p.escrow, 0
  FROM purchases p LEFT JOIN settlements s ON s.tx_id = p.id WHERE p.id = new.purchase_id;
END;

CREATE TRIGGER escrow_steps_new AFTER INSERT ON escrow_steps WHEN new.tx_id <> new.purchase_id BEGIN
  UPDATE escrows SET utxo = new.utxo, datum = new.datum, locked_lovelace = new.locked_lovelace, next_at_ms = 0,
    creator_due = new.creator_due WHERE purchase_id = new.purchase_id;
  UPDATE purchases SET status = new.status, escrow = new.shown WHERE id = new.purchase_id;
  INSERT INTO purchase_events (purchase_id, tx_hash, status, at_ms, position)
  VALUES (new.purchase_id, new.tx_id, new.status, new.at_ms, new.position) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER escrow_steps_gone AFTER DELETE ON escrow_steps WHEN old.tx_id <> old.purchase_id BEGIN
  UPDATE escrows SET (utxo, datum, locked_lovelace, creator_due, next_at_ms) =
    (SELECT utxo, datum, locked_lovelace, creator_due, 0 FROM escrow_steps WHERE purchase_id = old.purchase_id
     ORDER BY height DESC, position DESC LIMIT 1) WHERE purchase_id = old.purchase_id;
  UPDATE purchases SET (status, escrow) =
    (SELECT status, shown FROM escrow_steps WHERE purchase_id = old.purchase_id
     ORDER BY height DESC, position DESC LIMIT 1) WHERE id = old.purchase_id;
  DELETE FROM purchase_events WHERE purchase_id = old.purchase_id AND tx_hash = old.tx_id;
END;

-- A buyer who finds something else than what was listed is looked after at once.
CREATE TRIGGER purchases_mismatch AFTER UPDATE OF verification ON purchases WHEN new.verification = 'mismatch' BEGIN
  UPDATE escrows SET next_at_ms = 0 WHERE purchase_id = new.id;
END;

-- An action of ours that can no longer take effect frees its purpose for another try; collecting shows while it waits
-- for a block; a payout that is in a block is in the timeline.
CREATE TRIGGER settlements_action AFTER UPDATE OF state ON settlements
WHEN new.action IS NOT NULL AND old.state <> new.state BEGIN
  UPDATE settlements SET purpose = purpose || ':' || tx_id WHERE tx_id = new.tx_id AND new.state IN ('refused', 'expired');
  UPDATE escrows SET next_at_ms = 0 WHERE purchase_id = new.purchase_id AND new.state IN ('refused', 'expired');
  UPDATE purchases SET status = 'withdrawing' WHERE id = new.purchase_id AND new.action = 'withdraw'
    AND new.state = 'submitted' AND status IN ('ResultSubmitted', 'WithdrawAuthorized');
  UPDATE purchases SET status = (SELECT status FROM escrow_steps WHERE purchase_id = new.purchase_id
    ORDER BY height DESC, position DESC LIMIT 1)
  WHERE id = new.purchase_id AND new.action = 'withdraw' AND new.state IN ('refused', 'expired') AND status = 'withdrawing';
  INSERT INTO purchase_events (purchase_id, tx_hash, status, at_ms, position)
  SELECT new.purchase_id, new.tx_id, 'creator_paid', new.block_time_ms, 0 WHERE new.action = 'payout' AND new.state = 'included'
  ON CONFLICT DO NOTHING;
  UPDATE escrows SET creator_due = (new.state <> 'included') WHERE purchase_id = new.purchase_id AND new.action = 'payout';
  DELETE FROM purchase_events WHERE purchase_id = new.purchase_id AND tx_hash = new.tx_id AND new.action = 'payout'
    AND new.state <> 'included';
END;
