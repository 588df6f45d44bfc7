-- Purchases exist once their transaction is in a block, and go when a rollback removes it.

CREATE TABLE purchases (
  id TEXT PRIMARY KEY CHECK (length(id) = 64),   -- the payment's or the lock's transaction id
  listing_id TEXT NOT NULL REFERENCES listings (id),
  mode TEXT NOT NULL CHECK (mode IN ('instant', 'protected')),
  seller_address TEXT NOT NULL,
  buyer_address TEXT NOT NULL,                   -- as the payment names it
  buyer_key TEXT NOT NULL CHECK (length(buyer_key) = 56), -- the payment key in that address: who owns what was bought
  price_lovelace INTEGER NOT NULL,
  creator_lovelace INTEGER NOT NULL,             -- what the creator gets of a protected sale, fixed when it was paid
  status TEXT NOT NULL CHECK (status IN ('FundsLocked', 'ResultSubmitted', 'RefundRequested', 'Disputed',
    'WithdrawAuthorized', 'RefundAuthorized', 'withdrawing', 'settled', 'withdrawn', 'refunded', 'closed')),
  bought_at_ms INTEGER NOT NULL,                 -- time of the block
  verification TEXT CHECK (verification IN ('ok', 'mismatch', 'no_result_yet'))
) STRICT, WITHOUT ROWID;

CREATE INDEX purchases_by_seller ON purchases (seller_address, bought_at_ms);
CREATE INDEX purchases_between ON purchases (seller_address, buyer_key, bought_at_ms);
CREATE INDEX purchases_by_buyer ON purchases (buyer_key, listing_id);

-- For which purchases an entry of the outbox acts, as it says itself: one transaction may act on several escrows.
CREATE TABLE outbox_purchases (
  tx_id TEXT NOT NULL REFERENCES outbox (tx_id) ON DELETE CASCADE,
  purchase_id TEXT NOT NULL,
  PRIMARY KEY (tx_id, purchase_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_purchases_by_purchase ON outbox_purchases (purchase_id);
CREATE TRIGGER outbox_purchases_named AFTER INSERT ON outbox BEGIN
  INSERT INTO outbox_purchases (tx_id, purchase_id) SELECT new.tx_id, value FROM json_each(new.acts_on);
END;

-- Escrows of protected purchases, as the chain has them now: as their newest step left them.
CREATE TABLE escrows (
  purchase_id TEXT PRIMARY KEY REFERENCES purchases (id),
  address TEXT NOT NULL,
  utxo TEXT UNIQUE,                              -- the output that is the escrow now; NULL once it is over
  datum TEXT NOT NULL,                           -- hex of the CBOR in that output, or in the last
  locked_lovelace INTEGER NOT NULL,
  input_hash TEXT NOT NULL,
  result_hash TEXT,
  pay_by_ms INTEGER NOT NULL,                    -- the deadlines, POSIX ms
  submit_result_ms INTEGER NOT NULL,
  unlock_ms INTEGER NOT NULL,
  external_dispute_unlock_ms INTEGER NOT NULL,
  creator_due INTEGER NOT NULL DEFAULT 0 CHECK (creator_due IN (0, 1)), -- won, and the creator is still to be paid
  next_at_ms INTEGER NOT NULL,                   -- when a party may have to act, POSIX ms
  failures INTEGER NOT NULL DEFAULT 0,           -- of the action that is due, since the chain last showed something new
  delivered_hash TEXT                            -- what was delivered, as a result of this lock, once it was read
) STRICT, WITHOUT ROWID;
CREATE INDEX escrows_by_next ON escrows (next_at_ms) WHERE utxo IS NOT NULL;
CREATE INDEX escrows_unposted ON escrows (submit_result_ms) WHERE utxo IS NOT NULL AND result_hash IS NULL;
CREATE INDEX escrows_creator_due ON escrows (purchase_id) WHERE creator_due = 1;

-- Every transaction of every escrow, the lock first: what it left. A step that a rollback removed is deleted, and the
-- purchase shows the one before again.
CREATE TABLE escrow_steps (
  purchase_id TEXT NOT NULL REFERENCES purchases (id),
  tx_id TEXT NOT NULL CHECK (length(tx_id) = 64),
  height INTEGER NOT NULL,
  position INTEGER NOT NULL,                     -- its number among the steps of this escrow; the lock is 0
  at_ms INTEGER NOT NULL,                        -- time of the block
  status TEXT NOT NULL,
  utxo TEXT,                                     -- the escrow after it; NULL where it ended
  datum TEXT NOT NULL,
  locked_lovelace INTEGER NOT NULL,
  result_hash TEXT,
  creator_paid INTEGER NOT NULL CHECK (creator_paid IN (0, 1)), -- whether it pays the creator as well
  -- Whether its block may be another fork's: of a step that no entry made, until it was asked for again.
  recheck INTEGER NOT NULL DEFAULT 0 CHECK (recheck IN (0, 1)),
  PRIMARY KEY (purchase_id, tx_id),              -- reading the same transaction again changes nothing
  UNIQUE (purchase_id, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX escrow_steps_by_height ON escrow_steps (height);
CREATE INDEX escrow_steps_by_tx ON escrow_steps (tx_id);
CREATE INDEX escrow_steps_recheck ON escrow_steps (height) WHERE recheck = 1;

-- The first step is the lock, in the block that its entry of the outbox has. A restore has inserted the steps before.
CREATE TRIGGER escrows_locked AFTER INSERT ON escrows BEGIN
  INSERT INTO escrow_steps (purchase_id, tx_id, height, position, at_ms, status, utxo, datum, locked_lovelace, creator_paid)
  SELECT p.id, p.id, o.block_height, 0, o.block_time_ms, p.status, new.utxo, new.datum, new.locked_lovelace, 0
  FROM purchases p JOIN outbox o ON o.tx_id = p.id WHERE p.id = new.purchase_id
  ON CONFLICT DO NOTHING;
END;

-- What the newest step of each escrow left, with what own transactions add to it: a collection that a node took, or a block
-- has, shows as 'withdrawing', and the creator of a sale that was won is due until a block has their payment.
CREATE VIEW newest_steps AS
SELECT s.purchase_id, s.utxo, s.datum, s.locked_lovelace, s.result_hash,
  iif(s.status IN ('ResultSubmitted', 'WithdrawAuthorized') AND EXISTS (SELECT 1 FROM outbox_purchases op
      JOIN outbox o ON o.tx_id = op.tx_id WHERE op.purchase_id = s.purchase_id AND o.kind = 'collect'
      AND o.state IN ('submitted', 'included')), 'withdrawing', s.status) AS status,
  s.status = 'withdrawn' AND s.creator_paid = 0 AND p.creator_lovelace > 0 AND NOT EXISTS (SELECT 1
      FROM outbox_purchases op JOIN outbox o ON o.tx_id = op.tx_id WHERE op.purchase_id = s.purchase_id
      AND o.kind = 'payout' AND o.state = 'included') AS creator_due
FROM escrow_steps s JOIN purchases p ON p.id = s.purchase_id
WHERE s.position = (SELECT max(position) FROM escrow_steps WHERE purchase_id = s.purchase_id);

-- An escrow and its purchase follow the newest step, and are due at once.
CREATE TRIGGER escrow_steps_added AFTER INSERT ON escrow_steps WHEN new.position > 0 BEGIN
  UPDATE escrows SET (utxo, datum, locked_lovelace, result_hash, creator_due, next_at_ms, failures) =
    (SELECT utxo, datum, locked_lovelace, result_hash, creator_due, 0, 0 FROM newest_steps
     WHERE purchase_id = new.purchase_id) WHERE purchase_id = new.purchase_id;
  UPDATE purchases SET status = n.status FROM newest_steps n
  WHERE id = new.purchase_id AND n.purchase_id = id AND purchases.status <> n.status;
END;
CREATE TRIGGER escrow_steps_removed AFTER DELETE ON escrow_steps
WHEN EXISTS (SELECT 1 FROM escrow_steps WHERE purchase_id = old.purchase_id) BEGIN
  UPDATE escrows SET (utxo, datum, locked_lovelace, result_hash, creator_due, next_at_ms, failures) =
    (SELECT utxo, datum, locked_lovelace, result_hash, creator_due, 0, 0 FROM newest_steps
     WHERE purchase_id = old.purchase_id) WHERE purchase_id = old.purchase_id;
  UPDATE purchases SET status = n.status FROM newest_steps n
  WHERE id = old.purchase_id AND n.purchase_id = id AND purchases.status <> n.status;
END;

-- What own transactions did shows in what they act on, and no row is written that would stay as it is. Where a rollback
-- removed one, its steps go, and those after them; one that failed is due again.
CREATE TRIGGER actions_changed AFTER UPDATE OF state ON outbox
WHEN old.state <> new.state AND new.kind IN ('result', 'collect', 'refund', 'dispute', 'payout') BEGIN
  DELETE FROM escrow_steps WHERE old.state = 'included' AND (purchase_id, tx_id) IN (
    SELECT later.purchase_id, later.tx_id FROM escrow_steps own JOIN escrow_steps later
    ON later.purchase_id = own.purchase_id AND later.position >= own.position WHERE own.tx_id = new.tx_id);
  UPDATE escrows SET creator_due = n.creator_due
  FROM outbox_purchases op JOIN newest_steps n ON n.purchase_id = op.purchase_id
  WHERE op.tx_id = new.tx_id AND escrows.purchase_id = op.purchase_id AND escrows.creator_due <> n.creator_due;
  UPDATE escrows SET next_at_ms = 0, failures = failures + (new.state = 'expired')
  WHERE new.state IN ('refused', 'expired')
    AND purchase_id IN (SELECT purchase_id FROM outbox_purchases WHERE tx_id = new.tx_id);
  UPDATE purchases SET status = n.status FROM outbox_purchases op JOIN newest_steps n ON n.purchase_id = op.purchase_id
  WHERE op.tx_id = new.tx_id AND id = op.purchase_id AND purchases.status <> n.status;
END;

-- A payment that a rollback removed is no purchase any more. What another block has is dated by that, and so is a step that was
-- found before its entry was known to be in a block.
CREATE TRIGGER payments_removed AFTER UPDATE OF state ON outbox
WHEN old.state = 'included' AND new.state <> 'included' AND new.kind IN ('payment', 'lock') BEGIN
  DELETE FROM escrows WHERE purchase_id = new.tx_id;
  DELETE FROM escrow_steps WHERE purchase_id = new.tx_id;
  DELETE FROM purchases WHERE id = new.tx_id;
END;
CREATE TRIGGER outbox_reanchored AFTER UPDATE OF block_hash ON outbox
WHEN old.block_hash IS NOT new.block_hash AND new.state = 'included' BEGIN
  UPDATE escrow_steps SET height = new.block_height, at_ms = new.block_time_ms, recheck = 0 WHERE tx_id = new.tx_id;
  UPDATE purchases SET bought_at_ms = new.block_time_ms WHERE id = new.tx_id;
END;

-- The names that clients gave a refused payment are free: its next claim may come under others.
CREATE TRIGGER payments_refused AFTER UPDATE OF state ON outbox
WHEN new.state = 'refused' AND new.kind IN ('payment', 'lock') BEGIN
  DELETE FROM payment_identifiers WHERE tx_id = new.tx_id;
END;

-- Figures follow the purchases by themselves, so that no writer can forget them or count twice: they must equal a recount.
-- A purchase counts as a sale until it is refunded; a closed escrow counts for the seller's reputation.
CREATE TRIGGER purchases_new AFTER INSERT ON purchases BEGIN
  INSERT INTO sellers (address, sales, withdrawn, refunded)
  VALUES (new.seller_address, new.status <> 'refunded', new.status = 'withdrawn', new.status = 'refunded')
  ON CONFLICT (address) DO UPDATE SET
    sales = sales + excluded.sales, withdrawn = withdrawn + excluded.withdrawn, refunded = refunded + excluded.refunded;
  UPDATE listings SET sales = sales + (new.status <> 'refunded') WHERE id = new.listing_id;
END;
CREATE TRIGGER purchases_status AFTER UPDATE OF status ON purchases WHEN old.status <> new.status BEGIN
  UPDATE sellers SET
    sales = sales + (new.status <> 'refunded') - (old.status <> 'refunded'),
    withdrawn = withdrawn + (new.status = 'withdrawn') - (old.status = 'withdrawn'),
    refunded = refunded + (new.status = 'refunded') - (old.status = 'refunded')
  WHERE address = new.seller_address;
  UPDATE listings SET sales = sales + (new.status <> 'refunded') - (old.status <> 'refunded') WHERE id = new.listing_id
    AND (new.status = 'refunded') <> (old.status = 'refunded');
END;
CREATE TRIGGER purchases_gone AFTER DELETE ON purchases BEGIN
  UPDATE sellers SET
    sales = sales - (old.status <> 'refunded'),
    withdrawn = withdrawn - (old.status = 'withdrawn'),
    refunded = refunded - (old.status = 'refunded')
  WHERE address = old.seller_address;
  UPDATE listings SET sales = sales - (old.status <> 'refunded') WHERE id = old.listing_id;
END;
