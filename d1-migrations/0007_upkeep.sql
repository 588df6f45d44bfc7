-- What ticks of the watcher look for, each by an index of its own: their cost must not grow with what is stored.

-- When the inputs of a transaction in a block need no reservation any more: two hours later, longer than any provider's
-- view is late. NULL while it is in no block.
ALTER TABLE reservations ADD COLUMN over_at_ms INTEGER;
CREATE INDEX reservations_by_end ON reservations (over_at_ms) WHERE over_at_ms IS NOT NULL;
CREATE TRIGGER settlements_in_block AFTER UPDATE OF state ON settlements
WHEN (old.state = 'included') <> (new.state = 'included') BEGIN
  UPDATE reservations SET over_at_ms = iif(new.state = 'included', new.created_at_ms + 7200000, NULL) WHERE tx_id = new.tx_id;
END;
UPDATE reservations SET over_at_ms = 7200000 + (SELECT created_at_ms FROM settlements s WHERE s.tx_id = reservations.tx_id)
WHERE tx_id IN (SELECT tx_id FROM settlements WHERE state = 'included');

-- Transactions of ours that were in a block above a rollback: to be asked for again, some in each tick.
ALTER TABLE settlements ADD COLUMN doubted INTEGER NOT NULL DEFAULT 0;
CREATE INDEX settlements_doubted ON settlements (block_height) WHERE doubted = 1;
