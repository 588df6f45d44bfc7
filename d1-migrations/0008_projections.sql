-- Projections: tables, and the column `listings.sales`, that are derived from records. docs/architecture.md lists them.
-- Only these triggers write projections, so that no writer of a record can forget to update them, and a rollback of the
-- record updates them too. The triggers for reservations are in the migration of the outbox, because the arbiter's
-- database has them too.

-- outbox_purchases, from `outbox.acts_on`: an index of outbox entries by the purchase on which they act.
CREATE TRIGGER outbox_purchases_named AFTER INSERT ON outbox BEGIN
  INSERT INTO outbox_purchases (tx_id, purchase_id) SELECT new.tx_id, value FROM json_each(new.acts_on);
END;

-- purchases, from a payment, its listing, and its entry in `outbox`: a purchase exists while a block includes its
-- payment. A rollback deletes it together with the rows that refer to it.
CREATE TRIGGER purchases_included AFTER UPDATE OF state ON outbox
WHEN new.state = 'included' AND old.state <> 'included' AND new.kind IN ('payment', 'lock') BEGIN
  INSERT INTO purchases (id, listing_id, mode, seller_address, buyer_address, buyer_key, price_lovelace, creator_lovelace,
    status, bought_at_ms)
  SELECT p.tx_id, p.listing_id, p.mode, l.seller_address, p.payer, p.payer_key, p.amount_lovelace, p.creator_lovelace,
    iif(p.mode = 'instant', 'settled', 'FundsLocked'), new.block_time_ms
  FROM payments p JOIN listings l ON l.id = p.listing_id WHERE p.tx_id = new.tx_id;
END;
CREATE TRIGGER purchases_rolled_back AFTER UPDATE OF state ON outbox
WHEN old.state = 'included' AND new.state <> 'included' AND new.kind IN ('payment', 'lock') BEGIN
  DELETE FROM purchases WHERE id = new.tx_id;
END;
CREATE TRIGGER purchases_dated AFTER UPDATE OF block_time_ms ON outbox
WHEN old.block_time_ms <> new.block_time_ms AND new.kind IN ('payment', 'lock') BEGIN
  UPDATE purchases SET bought_at_ms = new.block_time_ms WHERE id = new.tx_id;
END;

-- The state of each escrow after its newest step, combined with the service's own transactions: the status is
-- 'withdrawing' once a node has accepted the transaction that collects the money, and after a dispute that the seller
-- won, a payout to the creator is due until a block includes it.
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

-- escrows and purchases.status, from `locks`, the newest row of `escrow_steps`, and `escrow_watch`. They are tables
-- with indexes, because the watcher asks in every run which escrows are due. A schedule counts only for the output
-- that it names.
CREATE TRIGGER escrows_stepped AFTER INSERT ON escrow_steps BEGIN
  INSERT INTO escrows (purchase_id, address, utxo, datum, locked_lovelace, input_hash, result_hash, pay_by_ms, submit_result_ms,
    unlock_ms, external_dispute_unlock_ms, creator_due, next_at_ms)
  SELECT l.purchase_id, l.address, n.utxo, n.datum, n.locked_lovelace, l.input_hash, n.result_hash, l.pay_by_ms,
    l.submit_result_ms, l.unlock_ms, l.external_dispute_unlock_ms, n.creator_due,
    coalesce((SELECT w.next_at_ms FROM escrow_watch w WHERE w.purchase_id = l.purchase_id AND w.utxo = n.utxo), 0)
  FROM locks l JOIN newest_steps n ON n.purchase_id = l.purchase_id WHERE l.purchase_id = new.purchase_id
  ON CONFLICT (purchase_id) DO UPDATE SET utxo = excluded.utxo, datum = excluded.datum,
    locked_lovelace = excluded.locked_lovelace, result_hash = excluded.result_hash, creator_due = excluded.creator_due,
    next_at_ms = excluded.next_at_ms;
  UPDATE purchases SET status = n.status FROM newest_steps n
  WHERE id = new.purchase_id AND n.purchase_id = id AND purchases.status <> n.status;
END;
CREATE TRIGGER escrows_step_removed AFTER DELETE ON escrow_steps BEGIN
  UPDATE escrows SET (utxo, datum, locked_lovelace, result_hash, creator_due, next_at_ms) =
    (n.utxo, n.datum, n.locked_lovelace, n.result_hash, n.creator_due,
     coalesce((SELECT w.next_at_ms FROM escrow_watch w WHERE w.purchase_id = n.purchase_id AND w.utxo = n.utxo), 0))
  FROM newest_steps n WHERE escrows.purchase_id = old.purchase_id AND n.purchase_id = old.purchase_id;
  UPDATE purchases SET status = n.status FROM newest_steps n
  WHERE id = old.purchase_id AND n.purchase_id = id AND purchases.status <> n.status;
END;
CREATE TRIGGER escrows_scheduled AFTER INSERT ON escrow_watch BEGIN
  UPDATE escrows SET next_at_ms = new.next_at_ms
  WHERE purchase_id = new.purchase_id AND utxo = new.utxo AND next_at_ms <> new.next_at_ms;
END;
CREATE TRIGGER escrows_rescheduled AFTER UPDATE OF utxo, next_at_ms ON escrow_watch BEGIN
  UPDATE escrows SET next_at_ms = new.next_at_ms
  WHERE purchase_id = new.purchase_id AND utxo = new.utxo AND next_at_ms <> new.next_at_ms;
END;

-- escrows.creator_due and purchases.status, from the state of the service's own entries that act on the purchase: see
-- `newest_steps`. Rows whose values would not change are not written.
CREATE TRIGGER escrows_acted_on AFTER UPDATE OF state ON outbox
WHEN old.state <> new.state AND new.kind IN ('collect', 'payout') BEGIN
  UPDATE escrows SET creator_due = n.creator_due
  FROM outbox_purchases op JOIN newest_steps n ON n.purchase_id = op.purchase_id
  WHERE op.tx_id = new.tx_id AND escrows.purchase_id = op.purchase_id AND escrows.creator_due <> n.creator_due;
  UPDATE purchases SET status = n.status FROM outbox_purchases op JOIN newest_steps n ON n.purchase_id = op.purchase_id
  WHERE op.tx_id = new.tx_id AND id = op.purchase_id AND purchases.status <> n.status;
END;

-- sellers (sales, withdrawn, refunded) and listings.sales, from `purchases`. They must equal a recount, and are read
-- wherever a listing is shown. A purchase counts as a sale until it is refunded; a closed escrow counts for the
-- seller's reputation.
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

-- sellers (listed, listed_bytes, latest_seq, visible_listings, changed), listings_counted, listings_text and
-- catalogue_version, from `listings`: so a seller's quota, the number of pages, search results, the ETag and the sellers
-- with a change can be read without reading all listings.
CREATE TRIGGER listings_new AFTER INSERT ON listings BEGIN
  UPDATE catalogue_version SET version = version + 1;
  INSERT INTO listings_text (rowid, title, description, category, search_terms)
  SELECT new.seq, new.title, new.description, new.category, new.search_terms WHERE new.hidden_at_ms IS NULL;
  INSERT INTO sellers (address, listed, listed_bytes, latest_seq, visible_listings, changed)
  SELECT new.seller_address, 1, new.content_bytes, new.seq, new.hidden_at_ms IS NULL, version FROM catalogue_version WHERE TRUE
  ON CONFLICT (address) DO UPDATE SET listed = listed + 1, listed_bytes = listed_bytes + excluded.listed_bytes,
    latest_seq = excluded.latest_seq, visible_listings = visible_listings + excluded.visible_listings, changed = excluded.changed;
  INSERT INTO listings_counted (block, visible_listings, instant, protected)
  VALUES (new.seq / 256, new.hidden_at_ms IS NULL, new.hidden_at_ms IS NULL AND new.instant,
    new.hidden_at_ms IS NULL AND new.protected)
  ON CONFLICT (block) DO UPDATE SET visible_listings = visible_listings + excluded.visible_listings,
    instant = instant + excluded.instant, protected = protected + excluded.protected;
END;
CREATE TRIGGER listings_hidden AFTER UPDATE OF hidden_at_ms ON listings WHEN old.hidden_at_ms IS NOT new.hidden_at_ms BEGIN
  UPDATE catalogue_version SET version = version + 1;
  UPDATE sellers SET visible_listings = visible_listings + (new.hidden_at_ms IS NULL) - (old.hidden_at_ms IS NULL),
    changed = (SELECT version FROM catalogue_version)
  WHERE address = new.seller_address;
  INSERT INTO listings_text (listings_text, rowid, title, description, category, search_terms)
  SELECT 'delete', old.seq, old.title, old.description, old.category, old.search_terms
  WHERE old.hidden_at_ms IS NULL AND new.hidden_at_ms IS NOT NULL;
  INSERT INTO listings_text (rowid, title, description, category, search_terms)
  SELECT new.seq, new.title, new.description, new.category, new.search_terms
  WHERE old.hidden_at_ms IS NOT NULL AND new.hidden_at_ms IS NULL;
  UPDATE listings_counted SET
    visible_listings = visible_listings + (new.hidden_at_ms IS NULL) - (old.hidden_at_ms IS NULL),
    instant = instant + new.instant * ((new.hidden_at_ms IS NULL) - (old.hidden_at_ms IS NULL)),
    protected = protected + new.protected * ((new.hidden_at_ms IS NULL) - (old.hidden_at_ms IS NULL))
  WHERE block = new.seq / 256;
END;
CREATE TRIGGER listings_edited AFTER UPDATE OF card ON listings WHEN old.card <> new.card BEGIN
  UPDATE catalogue_version SET version = version + 1;
  UPDATE sellers SET changed = (SELECT version FROM catalogue_version) WHERE address = new.seller_address;
  INSERT INTO listings_text (listings_text, rowid, title, description, category, search_terms)
  SELECT 'delete', old.seq, old.title, old.description, old.category, old.search_terms WHERE old.hidden_at_ms IS NULL;
  INSERT INTO listings_text (rowid, title, description, category, search_terms)
  SELECT new.seq, new.title, new.description, new.category, new.search_terms WHERE new.hidden_at_ms IS NULL;
END;

-- sellers.name, from `accounts`: it is read wherever a listing is shown, together with the figures.
CREATE TRIGGER accounts_named AFTER UPDATE OF name ON accounts WHEN old.name IS NOT new.name BEGIN
  INSERT INTO sellers (address, name) VALUES (new.owner, new.name) ON CONFLICT (address) DO UPDATE SET name = excluded.name;
END;

-- catalogue_version and sellers.changed, from `sellers`. A listing's sales change together with its seller's in one
-- transaction, so one change makes one version.
CREATE TRIGGER sellers_new AFTER INSERT ON sellers
WHEN new.sales + new.withdrawn + new.refunded > 0 OR new.name IS NOT NULL BEGIN
  UPDATE catalogue_version SET version = version + 1;
  UPDATE sellers SET changed = (SELECT version FROM catalogue_version) WHERE address = new.address;
END;
CREATE TRIGGER sellers_figures AFTER UPDATE OF sales, withdrawn, refunded, name ON sellers
WHEN old.sales <> new.sales OR old.withdrawn <> new.withdrawn OR old.refunded <> new.refunded OR old.name IS NOT new.name BEGIN
  UPDATE catalogue_version SET version = version + 1;
  UPDATE sellers SET changed = (SELECT version FROM catalogue_version) WHERE address = new.address;
END;

-- catalogue_version, from `restored`: isolates and browsers may still have the catalogue of versions that the restored
-- database would reach again. The time of the restore is greater than all of them, because versions count changes.
CREATE TRIGGER restored_new AFTER INSERT ON restored BEGIN
  UPDATE catalogue_version SET version = max(version + 1, new.at_ms);
END;
CREATE TRIGGER restored_again AFTER UPDATE OF at_ms ON restored BEGIN
  UPDATE catalogue_version SET version = max(version + 1, new.at_ms);
END;
