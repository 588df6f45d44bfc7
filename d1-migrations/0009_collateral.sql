-- What a transaction of ours only puts up as collateral is whole again as soon as it is in a block: it is free for the
-- next one then, while what it spent stays reserved until every provider's view must know.
ALTER TABLE reservations ADD COLUMN spent INTEGER NOT NULL DEFAULT 1;  -- 0: put up only
DROP TRIGGER settlements_in_block;
CREATE TRIGGER settlements_in_block AFTER UPDATE OF state ON settlements
WHEN (old.state = 'included') <> (new.state = 'included') BEGIN
  DELETE FROM reservations WHERE tx_id = new.tx_id AND spent = 0 AND new.state = 'included';
  UPDATE reservations SET over_at_ms = iif(new.state = 'included', new.created_at_ms + 7200000, NULL) WHERE tx_id = new.tx_id;
END;
