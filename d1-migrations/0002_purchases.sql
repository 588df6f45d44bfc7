-- Every transaction that we hand to the network, written down before we do. A crash, a time-out or a repeated
-- request finds it here and sends the same bytes again; nothing is built twice for one purpose.
CREATE TABLE settlements (
  tx_id TEXT PRIMARY KEY CHECK (length(tx_id) = 64),
  purpose TEXT NOT NULL UNIQUE,                  -- what it is for: one transaction for each purpose
  cbor TEXT NOT NULL,                            -- hex
  state TEXT NOT NULL CHECK (state IN ('claimed', 'submitted', 'included', 'refused', 'expired')),
  valid_until_slot INTEGER NOT NULL,             -- the first slot in which it is no longer valid
  attempts INTEGER NOT NULL,                     -- submissions that were begun
  attempted_at_ms INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  reason TEXT,                                   -- why it was refused
  block_hash TEXT,
  block_height INTEGER,
  block_slot INTEGER,
  block_time_ms INTEGER,

  -- Of a buyer's payment: what it pays for. The transaction id is the key, so a transaction pays for one listing, once.
  listing_id TEXT REFERENCES listings (id),
  mode TEXT CHECK (mode IN ('instant', 'protected')),
  payer TEXT,
  amount_lovelace INTEGER,
  header_digest TEXT,                            -- SHA-256 of the PAYMENT-SIGNATURE that claimed it
  terms_digest TEXT UNIQUE,                      -- signed terms belong to their first transaction for ever
  delivered_at_ms INTEGER,                       -- when the content was handed out for this payment
  CHECK ((listing_id IS NULL) = (mode IS NULL) AND (mode IS NULL) = (payer IS NULL)
    AND (payer IS NULL) = (amount_lovelace IS NULL) AND (payer IS NULL) = (header_digest IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX settlements_open ON settlements (valid_until_slot) WHERE state IN ('claimed', 'submitted');
CREATE INDEX settlements_by_payer ON settlements (payer, listing_id) WHERE payer IS NOT NULL;

-- Purchases exist once their transaction is in a block.
CREATE TABLE purchases (
  id TEXT PRIMARY KEY CHECK (length(id) = 64),   -- the payment's or the lock's transaction id
  listing_id TEXT NOT NULL REFERENCES listings (id),
  mode TEXT NOT NULL CHECK (mode IN ('instant', 'protected')),
  seller_address TEXT NOT NULL,
  buyer_address TEXT NOT NULL,
  price_lovelace INTEGER NOT NULL,
  status TEXT NOT NULL,
  bought_at_ms INTEGER NOT NULL,                 -- time of the block
  verification TEXT CHECK (verification IN ('ok', 'mismatch', 'no_result_yet')),
  escrow TEXT CHECK (escrow IS NULL OR json_valid(escrow))  -- the public JSON of a protected purchase's escrow
) STRICT, WITHOUT ROWID;

CREATE INDEX purchases_by_seller ON purchases (seller_address, bought_at_ms);
CREATE INDEX purchases_by_buyer ON purchases (buyer_address, listing_id);

CREATE TABLE purchase_events (
  purchase_id TEXT NOT NULL REFERENCES purchases (id),
  tx_hash TEXT NOT NULL CHECK (length(tx_hash) = 64),
  status TEXT NOT NULL,
  at_ms INTEGER NOT NULL,                        -- time of the block
  position INTEGER NOT NULL,                     -- place of the transaction in its block
  PRIMARY KEY (purchase_id, tx_hash, status)     -- telling the same event twice changes nothing
) STRICT, WITHOUT ROWID;

-- Figures follow the purchases by themselves, so that no writer can forget them or count twice.
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
  UPDATE listings SET sales = sales + (new.status <> 'refunded') - (old.status <> 'refunded') WHERE id = new.listing_id;
END;
CREATE TRIGGER purchases_gone AFTER DELETE ON purchases BEGIN
  UPDATE sellers SET
    sales = sales - (old.status <> 'refunded'),
    withdrawn = withdrawn - (old.status = 'withdrawn'),
    refunded = refunded - (old.status = 'refunded')
  WHERE address = old.seller_address;
  UPDATE listings SET sales = sales - (old.status <> 'refunded') WHERE id = old.listing_id;
END;
