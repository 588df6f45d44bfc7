-- Every transaction that the service submits, recorded before it is submitted. The service and the arbiter each have
-- these tables in their own database.

CREATE TABLE outbox (
  tx_id TEXT PRIMARY KEY CHECK (length(tx_id) = 64),
  kind TEXT NOT NULL CHECK (kind IN
    ('payment', 'lock', 'withdrawal', 'result', 'collect', 'refund', 'dispute', 'release', 'payout', 'split',
      'award', 'settlement')),
  purpose TEXT NOT NULL,                         -- key of what it is for; unique among open and included entries
  wallet TEXT,                                   -- the service wallet that built it; NULL for an external payer's
  cbor TEXT NOT NULL,                            -- hex: the only bytes that are ever submitted; emptied for an external
                                                 -- payer's transaction once it is refused or expired
  state TEXT NOT NULL CHECK (state IN ('claimed', 'submitted', 'included', 'refused', 'expired')),
  -- Whether the outcome is open, a block includes the transaction, or the service has given it up.
  phase TEXT NOT NULL GENERATED ALWAYS AS (CASE WHEN state IN ('claimed', 'submitted') THEN 'open'
    WHEN state IN ('refused', 'expired') THEN 'given_up' ELSE state END) VIRTUAL,
  reserves TEXT NOT NULL DEFAULT '{}',           -- JSON: names of the outputs to reserve, each with 1 for collateral, else 0
  acts_on TEXT NOT NULL DEFAULT '[]',            -- JSON: ids of the purchases on which it acts
  valid_until_slot INTEGER NOT NULL,             -- the first slot in which it is no longer valid
  attempts INTEGER NOT NULL CHECK (attempts >= 0), -- submissions since it was claimed that may have reached a node; a
                                                 -- rejection is final only if there was one
  provenance TEXT NOT NULL CHECK (provenance IN ('ours', 'foreign', 'unknown')), -- who submitted it first
  attempted_at_ms INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  reason TEXT,                                   -- why it was refused
  block_hash TEXT,
  block_height INTEGER,
  block_slot INTEGER,
  block_time_ms INTEGER,
  never_included INTEGER NOT NULL DEFAULT 0 CHECK (never_included IN (0, 1)), -- 1 for a refused or expired payment that was in no block long
                                                   -- after its expiry: it is not looked up again
  recheck INTEGER NOT NULL DEFAULT 0 CHECK (recheck IN (0, 1)), -- 1 if a rollback may have removed it: to be looked up again
  CHECK ((state = 'included') = (block_hash IS NOT NULL) AND (block_hash IS NULL) = (block_height IS NULL)
    AND (block_hash IS NULL) = (block_slot IS NULL) AND (block_hash IS NULL) = (block_time_ms IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX outbox_by_purpose ON outbox (purpose);
CREATE INDEX outbox_open ON outbox (kind, valid_until_slot) WHERE phase = 'open';
CREATE INDEX outbox_over ON outbox (kind, valid_until_slot) WHERE phase = 'given_up';
CREATE INDEX outbox_settlements ON outbox (valid_until_slot) WHERE kind = 'settlement';
CREATE INDEX outbox_by_wallet ON outbox (wallet, created_at_ms) WHERE wallet IS NOT NULL;
CREATE INDEX outbox_not_included ON outbox (wallet) WHERE wallet IS NOT NULL AND state <> 'included';
CREATE INDEX outbox_by_height ON outbox (block_height) WHERE state = 'included';
CREATE INDEX outbox_recheck ON outbox (block_height) WHERE recheck = 1;

-- Outputs that outbox entries spend or use as collateral: no new entry may use them. The table is a projection of
-- `outbox`: only the two triggers below write it. Rarely, an output has two rows: its first entry freed it, another entry
-- reserved it, and then a rollback or a late block revived the first entry.
CREATE TABLE reservations (
  tx_in TEXT NOT NULL,                           -- txHash#index; payer:txHash#index for an input of an outside payer
  tx_id TEXT NOT NULL REFERENCES outbox (tx_id),
  spent_at_ms INTEGER,                           -- time of the block that includes the entry; NULL while none does
  PRIMARY KEY (tx_in, tx_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX reservations_by_tx ON reservations (tx_id);
CREATE INDEX reservations_by_end ON reservations (spent_at_ms) WHERE spent_at_ms IS NOT NULL;

-- A new entry reserves its outputs; `write_down.sql` inserts it only if none of them is reserved. Reservations of
-- entries whose block is two hours old are deleted, because by then every provider shows that their outputs are spent.
CREATE TRIGGER reservations_claimed AFTER INSERT ON outbox WHEN new.phase = 'open' BEGIN
  DELETE FROM reservations WHERE (tx_in, tx_id) IN (SELECT tx_in, tx_id FROM reservations
    WHERE spent_at_ms < new.created_at_ms - 7200000 ORDER BY spent_at_ms LIMIT 64);
  INSERT INTO reservations (tx_in, tx_id) SELECT key, new.tx_id FROM json_each(new.reserves);
END;

-- Reservations follow the entry's state, whatever it was before. An open entry reserves all outputs in `reserves`, an
-- included one only those that it spends (its collateral is free again), a refused or expired one none.
CREATE TRIGGER reservations_changed AFTER UPDATE OF state, block_time_ms ON outbox
WHEN (old.phase = 'given_up', old.block_time_ms) IS NOT (new.phase = 'given_up', new.block_time_ms)
BEGIN
  DELETE FROM reservations WHERE tx_id = new.tx_id AND (new.phase = 'given_up'
    OR new.state = 'included' AND tx_in IN (SELECT key FROM json_each(new.reserves) WHERE value = 1));
  INSERT INTO reservations (tx_in, tx_id, spent_at_ms)
  SELECT key, new.tx_id, new.block_time_ms FROM json_each(new.reserves)
  WHERE new.phase = 'open' OR new.state = 'included' AND value = 0
  ON CONFLICT DO UPDATE SET spent_at_ms = excluded.spent_at_ms;
END;
