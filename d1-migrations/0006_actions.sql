-- One transaction may act on several escrows at once, and an action that fails is tried again ever later.

CREATE TABLE settlement_purchases (
  tx_id TEXT NOT NULL REFERENCES settlements (tx_id),
  purchase_id TEXT NOT NULL,
  PRIMARY KEY (tx_id, purchase_id)
) STRICT, WITHOUT ROWID;
INSERT INTO settlement_purchases SELECT tx_id, purchase_id FROM settlements WHERE purchase_id IS NOT NULL;
DROP TRIGGER settlements_action;
ALTER TABLE settlements DROP COLUMN purchase_id;

-- Failures of the action that is due, since the chain last showed something new.
ALTER TABLE escrows ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
CREATE TRIGGER escrow_steps_progress AFTER INSERT ON escrow_steps BEGIN
  UPDATE escrows SET failures = 0 WHERE purchase_id = new.purchase_id AND failures > 0;
END;

-- An action of ours that can no longer take effect frees its purpose for another try; collecting shows while it waits
-- for a block; a payout that is in a block is in the timeline.
CREATE TRIGGER settlements_action AFTER UPDATE OF state ON settlements
WHEN new.action IS NOT NULL AND old.state <> new.state BEGIN
  UPDATE settlements SET purpose = purpose || ':' || tx_id WHERE tx_id = new.tx_id AND new.state IN ('refused', 'expired');
  UPDATE escrows SET next_at_ms = 0
  WHERE new.state IN ('refused', 'expired')
    AND purchase_id IN (SELECT purchase_id FROM settlement_purchases WHERE tx_id = new.tx_id);
  UPDATE purchases SET status = 'withdrawing'
  WHERE new.action = 'withdraw' AND new.state = 'submitted' AND status IN ('ResultSubmitted', 'WithdrawAuthorized')
    AND id IN (SELECT purchase_id FROM settlement_purchases WHERE tx_id = new.tx_id);
  UPDATE purchases SET status = (SELECT s.status FROM escrow_steps s WHERE s.purchase_id = purchases.id
    ORDER BY s.height DESC, s.position DESC LIMIT 1)
  WHERE new.action = 'withdraw' AND new.state IN ('refused', 'expired') AND status = 'withdrawing'
    AND id IN (SELECT purchase_id FROM settlement_purchases WHERE tx_id = new.tx_id);
  INSERT INTO purchase_events (purchase_id, tx_hash, status, at_ms, position)
  SELECT purchase_id, new.tx_id, 'creator_paid', new.block_time_ms, 0 FROM settlement_purchases
  WHERE tx_id = new.tx_id AND new.action = 'payout' AND new.state = 'included'
  ON CONFLICT DO NOTHING;
  UPDATE escrows SET creator_due = (new.state <> 'included')
  WHERE new.action = 'payout' AND purchase_id IN (SELECT purchase_id FROM settlement_purchases WHERE tx_id = new.tx_id);
  DELETE FROM purchase_events WHERE tx_hash = new.tx_id AND new.action = 'payout' AND new.state <> 'included'
    AND purchase_id IN (SELECT purchase_id FROM settlement_purchases WHERE tx_id = new.tx_id);
END;

-- For which seller the last tick acted; empty for none.
ALTER TABLE chain_reading ADD COLUMN acts_as TEXT NOT NULL DEFAULT '';
