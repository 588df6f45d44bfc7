-- Every transaction that we hand to the network, written down before we do. A crash, a time-out or a repeated
-- request finds it here and sends the same bytes again; nothing is built twice for one purpose.
CREATE TABLE settlements (
  tx_id TEXT PRIMARY KEY CHECK (length(tx_id) = 64),
  purpose TEXT NOT NULL UNIQUE,                  -- what it is for: one live transaction for each purpose
  cbor TEXT NOT NULL,                            -- hex
  state TEXT NOT NULL CHECK (state IN ('claimed', 'submitted', 'included', 'refused', 'expired')),
  valid_until_slot INTEGER NOT NULL,             -- the last slot in which it can be included
  reason TEXT,                                   -- why it was refused
  block_hash TEXT,
  block_height INTEGER,
  block_slot INTEGER,
  block_time_ms INTEGER,
  created_at_ms INTEGER NOT NULL,
  submitted_at_ms INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX settlements_open ON settlements (valid_until_slot) WHERE state IN ('claimed', 'submitted');

-- Which listing a buyer's transaction pays for. The key makes a transaction pay for one listing only, once.
CREATE TABLE payments (
  tx_id TEXT PRIMARY KEY REFERENCES settlements (tx_id),
  listing_id TEXT NOT NULL REFERENCES listings (id),
  mode TEXT NOT NULL CHECK (mode IN ('instant', 'protected')),
  payer TEXT NOT NULL,
  amount_lovelace INTEGER NOT NULL,
  header_digest TEXT NOT NULL,                   -- SHA-256 of the PAYMENT-SIGNATURE that claimed it
  delivered_at_ms INTEGER                        -- when the content was handed out for this payment
) STRICT, WITHOUT ROWID;

CREATE INDEX payments_by_payer ON payments (payer, listing_id);

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
  verification TEXT CHECK (verification IN ('ok', 'mismatch', 'no_result_yet'))
) STRICT, WITHOUT ROWID;

CREATE INDEX purchases_by_seller ON purchases (seller_address, bought_at_ms);
CREATE INDEX purchases_by_buyer ON purchases (buyer_address, listing_id);

CREATE TABLE purchase_events (
  purchase_id TEXT NOT NULL REFERENCES purchases (id),
  tx_hash TEXT NOT NULL CHECK (length(tx_hash) = 64),
  status TEXT NOT NULL,
  at_ms INTEGER NOT NULL,                        -- time of the block
  PRIMARY KEY (purchase_id, tx_hash, status)     -- telling the same event twice changes nothing
) STRICT, WITHOUT ROWID;
