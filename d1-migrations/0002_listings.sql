-- Listings. Their sellers can edit what describes them, and take them off sale; an operator can hide them. Seller, content
-- and modes never change.
CREATE TABLE listings (
  seq INTEGER PRIMARY KEY,                       -- order of creation; the row id of the full-text index
  id TEXT NOT NULL UNIQUE,                       -- public id, lst_ + ULID
  price_lovelace INTEGER NOT NULL CHECK (price_lovelace >= 1000000),  -- an output has to hold about one ADA
  negated_price INTEGER GENERATED ALWAYS AS (-price_lovelace) VIRTUAL,  -- for descending order in an index
  order_seq INTEGER GENERATED ALWAYS AS (seq) VIRTUAL,  -- seq as an index column: SQLite cannot use the row id in a range of tuples
  seller_address TEXT NOT NULL,
  instant INTEGER NOT NULL CHECK (instant IN (0, 1)),
  protected INTEGER NOT NULL CHECK (protected IN (0, 1)),
  -- Key in `contents` or in a bucket, so not a foreign key. The content is stored before its listing.
  content_hash TEXT NOT NULL CHECK (length(content_hash) = 64),
  content_bytes INTEGER NOT NULL CHECK (content_bytes > 0),  -- counts towards the seller's quota even if stored once for several listings
  category TEXT,
  created_at_ms INTEGER NOT NULL,
  edited_at_ms INTEGER,
  proof_digest TEXT UNIQUE,                      -- makes repeating a signed offer idempotent
  offer_digest TEXT NOT NULL DEFAULT '',         -- digest of the offer, to recognise a repeated one
  hidden_at_ms INTEGER,                          -- time since which it is off sale (docs/operations.md)
  -- 1: hidden by its seller alone, who may show it again; 0 once an operator hides it
  taken_off INTEGER NOT NULL DEFAULT 0 CHECK (taken_off IN (0, 1)),
  -- Latest timestamps of the seller's proofs that took it off sale and offered it again: a proof counts once.
  take_off_signed_ms INTEGER NOT NULL DEFAULT 0,
  relist_signed_ms INTEGER NOT NULL DEFAULT 0,
  sales INTEGER NOT NULL DEFAULT 0 CHECK (sales >= 0),  -- fails only if a refund is counted twice
  -- Long columns come last, so that reading only the others does not read their pages.
  title TEXT NOT NULL,
  card TEXT NOT NULL CHECK (json_valid(card)),   -- public JSON of everything but the figures
  description TEXT NOT NULL,
  search_terms TEXT NOT NULL DEFAULT '',         -- further terms for the full-text index (catalogue/terms.rs)
  CHECK (instant + protected >= 1),              -- at least one way to buy it
  CHECK (protected = 0 OR price_lovelace >= 5000000)  -- must cover the fees of the escrow's transactions
) STRICT;

-- Former prices of edited listings. A payment of one is accepted until the last offer at that price has expired.
CREATE TABLE former_prices (
  listing_id TEXT NOT NULL REFERENCES listings (id),
  price_lovelace INTEGER NOT NULL,
  until_ms INTEGER NOT NULL,
  PRIMARY KEY (listing_id, price_lovelace)
) STRICT, WITHOUT ROWID;

CREATE INDEX listings_by_content ON listings (seller_address, content_hash, offer_digest, created_at_ms);  -- finds a repeated offer
-- Indexes for the sort orders, with the columns that are filtered. Cards are read only for listings on the page.
CREATE INDEX listings_shown ON listings (seq, category, instant, protected, price_lovelace, sales, seller_address)
  WHERE hidden_at_ms IS NULL;
CREATE INDEX listings_by_price ON listings (price_lovelace, order_seq, category, instant, protected) WHERE hidden_at_ms IS NULL;
CREATE INDEX listings_by_negated_price ON listings (negated_price, order_seq, category, instant, protected, price_lovelace)
  WHERE hidden_at_ms IS NULL;
CREATE INDEX listings_by_sales ON listings (sales, order_seq, category, instant, protected, price_lovelace)
  WHERE hidden_at_ms IS NULL;
CREATE INDEX listings_by_seller ON listings (seller_address, seq, category, instant, protected, price_lovelace)
  WHERE hidden_at_ms IS NULL;
CREATE INDEX listings_taken_off ON listings (seller_address, seq) WHERE taken_off = 1;

-- Numbers of visible listings per 256 sequence numbers, from which totals and distant pages are computed by reading few
-- rows. A projection of `listings`.
CREATE TABLE listings_counted (
  block INTEGER PRIMARY KEY,                     -- seq / 256
  visible_listings INTEGER NOT NULL CHECK (visible_listings >= 0),
  instant INTEGER NOT NULL CHECK (instant >= 0),
  protected INTEGER NOT NULL CHECK (protected >= 0)
) STRICT;

-- Contents, in a table of their own so that listing queries do not read them. Equal contents share a row. Empty if
-- contents are stored in a bucket.
CREATE TABLE contents (
  hash TEXT PRIMARY KEY CHECK (length(hash) = 64),  -- SHA-256 of the content's bytes
  content TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Bytes added by new listings per day (days since 1970-01-01, UTC), counted before anything of them is written.
CREATE TABLE daily_listing_usage (
  day INTEGER NOT NULL,
  network TEXT NOT NULL,                         -- digest of day and client network; empty for the sum of all
  bytes INTEGER NOT NULL CHECK (bytes >= 0),
  PRIMARY KEY (day, network)
) STRICT;

-- Names and figures of sellers: a projection of `accounts`, `listings` and `purchases`.
CREATE TABLE sellers (
  address TEXT PRIMARY KEY,
  name TEXT,                                                    -- the account's display name; NULL if it has none
  sales INTEGER NOT NULL DEFAULT 0 CHECK (sales >= 0),          -- purchases that were not refunded
  withdrawn INTEGER NOT NULL DEFAULT 0 CHECK (withdrawn >= 0),  -- escrows that paid the seller
  refunded INTEGER NOT NULL DEFAULT 0 CHECK (refunded >= 0),    -- escrows that paid the buyer back
  listed INTEGER NOT NULL DEFAULT 0 CHECK (listed >= 0),        -- listings, including hidden ones
  listed_bytes INTEGER NOT NULL DEFAULT 0 CHECK (listed_bytes >= 0), -- bytes of the contents of these listings
  latest_seq INTEGER NOT NULL DEFAULT 0,                        -- `seq` of the newest listing
  visible_listings INTEGER NOT NULL DEFAULT 0 CHECK (visible_listings >= 0), -- listings that are not hidden
  changed INTEGER NOT NULL DEFAULT 0,                           -- catalogue version that last changed how the seller's listings are shown
  -- Score as it is shown, filtered and sorted: the percentage of `withdrawn`, rounded half up; -1 before the first closed escrow.
  reputation INTEGER GENERATED ALWAYS AS (CASE WHEN withdrawn + refunded = 0 THEN -1
    ELSE (200 * withdrawn + withdrawn + refunded) / (2 * (withdrawn + refunded)) END) STORED
) STRICT, WITHOUT ROWID;
-- For sorting listings by their sellers' reputation without writing a listing when a reputation changes.
CREATE INDEX sellers_by_reputation ON sellers (reputation, latest_seq) WHERE visible_listings > 0;
CREATE INDEX sellers_changed ON sellers (changed);

-- Version of the catalogue, its ETag: a projection of `listings` and `sellers`. Every visible change increments it.
CREATE TABLE catalogue_version (
  id INTEGER PRIMARY KEY CHECK (id = 1),         -- a single row
  version INTEGER NOT NULL
) STRICT;
INSERT INTO catalogue_version (id, version) VALUES (1, 1);

-- Full-text index of listings. It contains prefixes of all lengths that searches use. Without them, a search would scan
-- all words with the prefix, and a seller can list many such words. Combining marks are parts of words, as in the parser
-- of searches.
CREATE VIRTUAL TABLE listings_text USING fts5 (title, description, category, search_terms, content = 'listings', content_rowid = 'seq',
  prefix = '1 2 3 4 5 6 7 8', tokenize = "unicode61 categories 'L* N* Co M*'");

-- A seller changes `hidden_at_ms` and `taken_off` together. If only `hidden_at_ms` changes, an operator hid the listing.
CREATE TRIGGER listings_hidden_by_operator AFTER UPDATE OF hidden_at_ms ON listings
WHEN old.taken_off = 1 AND new.taken_off = 1 BEGIN
  UPDATE listings SET taken_off = 0 WHERE seq = new.seq;
END;
