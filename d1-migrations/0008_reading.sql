-- Whether the last tick left transactions to read up to the newest block that it saw: then the next reads on, block or not.
ALTER TABLE chain_reading ADD COLUMN behind INTEGER NOT NULL DEFAULT 0;

-- As before, but a payout that a rollback put in doubt is due only while the sale is still won.
DROP TRIGGER settlements_action;
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
  UPDATE escrows SET creator_due = new.state <> 'included' AND coalesce((SELECT s.creator_due FROM escrow_steps s
    WHERE s.purchase_id = escrows.purchase_id ORDER BY s.height DESC, s.position DESC LIMIT 1), 0)
  WHERE new.action = 'payout' AND purchase_id IN (SELECT purchase_id FROM settlement_purchases WHERE tx_id = new.tx_id);
  DELETE FROM purchase_events WHERE tx_hash = new.tx_id AND new.action = 'payout' AND new.state <> 'included'
    AND purchase_id IN (SELECT purchase_id FROM settlement_purchases WHERE tx_id = new.tx_id);
END;
