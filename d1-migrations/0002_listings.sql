-- What is for sale. Listings never change after they were made; only the figures of their sales do. Their seller can take one
-- off sale, and an operator can hide one.
CREATE TABLE listings (
  seq INTEGER PRIMARY KEY,                       -- order of creation; the row id of the full-text index
  id TEXT NOT NULL UNIQUE,                       -- public id, lst_ + ULID: two of one id would be one at the paywall
  price_lovelace INTEGER NOT NULL CHECK (price_lovelace >= 1000000),  -- less could not be paid: an output's least ADA
  negated_price INTEGER GENERATED ALWAYS AS (-price_lovelace) VIRTUAL,  -- descending, in an index of ascending columns
  order_seq INTEGER GENERATED ALWAYS AS (seq) VIRTUAL,  -- for indexes: a range of pairs may end in any column but the row id
  seller_address TEXT NOT NULL,
  instant INTEGER NOT NULL CHECK (instant IN (0, 1)),
  protected INTEGER NOT NULL CHECK (protected IN (0, 1)),
  -- The key of `contents`, or of the bucket where one is bound: so no foreign key. What is sold is kept before its listing.
  content_hash TEXT NOT NULL CHECK (length(content_hash) = 64),
  content_bytes INTEGER NOT NULL CHECK (content_bytes > 0),  -- counts against the seller's quota, shared or not
  category TEXT,
  created_at_ms INTEGER NOT NULL,
  proof_digest TEXT UNIQUE,                      -- a signed offer makes one listing, however often it is sent
  offer_digest TEXT NOT NULL DEFAULT '',         -- digest of what the seller chose: the same offer again is known by it
  hidden_at_ms INTEGER,                          -- since when its seller or an operator has it off sale (docs/operations.md)
  -- 1: hidden by its seller alone, who may show it again; 0 once an operator hides it
  taken_off INTEGER NOT NULL DEFAULT 0 CHECK (taken_off IN (0, 1)),
  sales INTEGER NOT NULL DEFAULT 0 CHECK (sales >= 0),  -- below zero would be a sale counted out twice
  -- Long ones last: a reader of the others alone reads no page of these.
  title TEXT NOT NULL,
  card TEXT NOT NULL CHECK (json_valid(card)),   -- the public JSON of all that never changes, built once: joined as text
  description TEXT NOT NULL,
  CHECK (instant + protected >= 1),              -- what cannot be bought at all is no offer
  CHECK (protected = 0 OR price_lovelace >= 5000000)  -- less does not pay for the escrow's transactions
) STRICT;

CREATE INDEX listings_by_content ON listings (seller_address, content_hash, offer_digest, created_at_ms);  -- the same offer again
-- The orders in which listings are shown, each with what they are chosen by: cards are read of those that are shown.
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

-- How many are shown of each 256 in a row: how many there are in all, and where a page far into them begins, is known from a
-- few rows.
CREATE TABLE listings_counted (
  block INTEGER PRIMARY KEY,                     -- seq / 256
  visible_listings INTEGER NOT NULL CHECK (visible_listings >= 0),
  instant INTEGER NOT NULL CHECK (instant >= 0),
  protected INTEGER NOT NULL CHECK (protected >= 0)
) STRICT;

-- What is sold, apart from the catalogue, so that no query that lists reads it; once, however often it is listed. Empty
-- where contents lie in a bucket.
CREATE TABLE contents (
  hash TEXT PRIMARY KEY CHECK (length(hash) = 64),  -- SHA-256 of the content's bytes
  content TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What new listings took up on each day (days since 1970-01-01, UTC): taken before anything of them is written.
CREATE TABLE daily_listing_usage (
  day INTEGER NOT NULL,
  network TEXT NOT NULL,                         -- empty: of all; or a digest of the day and the network that offered
  bytes INTEGER NOT NULL CHECK (bytes >= 0),
  PRIMARY KEY (day, network)
) STRICT;

-- Sums of each seller's, kept by triggers, joined by key where a listing is shown.
CREATE TABLE sellers (
  address TEXT PRIMARY KEY,
  sales INTEGER NOT NULL DEFAULT 0 CHECK (sales >= 0),          -- purchases that were not refunded
  withdrawn INTEGER NOT NULL DEFAULT 0 CHECK (withdrawn >= 0),  -- escrows that paid the seller
  refunded INTEGER NOT NULL DEFAULT 0 CHECK (refunded >= 0),    -- escrows that paid the buyer back
  changed INTEGER NOT NULL DEFAULT 0,                           -- the catalogue's version when these three last changed
  listed INTEGER NOT NULL DEFAULT 0 CHECK (listed >= 0),        -- listings, hidden ones too: they take room
  listed_bytes INTEGER NOT NULL DEFAULT 0 CHECK (listed_bytes >= 0), -- their contents
  latest_seq INTEGER NOT NULL DEFAULT 0,                        -- the last of them
  visible_listings INTEGER NOT NULL DEFAULT 0 CHECK (visible_listings >= 0), -- those that are not hidden
  reputation INTEGER GENERATED ALWAYS AS                        -- in parts of a million; -1 before the first closed escrow
    (CASE WHEN withdrawn + refunded = 0 THEN -1 ELSE 1000000 * withdrawn / (withdrawn + refunded) END) VIRTUAL
) STRICT, WITHOUT ROWID;
-- Listings are ordered by it through their sellers: one that rises takes all its listings along, and none is written.
CREATE INDEX sellers_by_reputation ON sellers (reputation, latest_seq) WHERE visible_listings > 0;

CREATE INDEX sellers_by_change ON sellers (changed);

-- A number that grows with every change the catalogue shows: its ETag.
CREATE TABLE catalogue_version (
  id INTEGER PRIMARY KEY CHECK (id = 1),         -- one row
  version INTEGER NOT NULL,
  hidings INTEGER NOT NULL DEFAULT 0             -- how often a listing was hidden, or shown again
) STRICT;
INSERT INTO catalogue_version (id, version) VALUES (1, 1);

-- Beginnings are indexed as far as they are looked for: else a search goes through all words that begin so, and who sells
-- may list many. Marks belong to words, as they do where questions are taken apart.
CREATE VIRTUAL TABLE listings_text USING fts5 (title, description, content = 'listings', content_rowid = 'seq',
  prefix = '1 2 3 4 5 6 7 8', tokenize = "unicode61 categories 'L* N* Co M*'");

CREATE TRIGGER listings_new AFTER INSERT ON listings BEGIN
  UPDATE catalogue_version SET version = version + 1;
  INSERT INTO listings_text (rowid, title, description)
  SELECT new.seq, new.title, new.description WHERE new.hidden_at_ms IS NULL;
  INSERT INTO sellers (address, listed, listed_bytes, latest_seq, visible_listings)
  VALUES (new.seller_address, 1, new.content_bytes, new.seq, new.hidden_at_ms IS NULL)
  ON CONFLICT (address) DO UPDATE SET listed = listed + 1, listed_bytes = listed_bytes + excluded.listed_bytes,
    latest_seq = excluded.latest_seq, visible_listings = visible_listings + excluded.visible_listings;
  INSERT INTO listings_counted (block, visible_listings, instant, protected)
  VALUES (new.seq / 256, new.hidden_at_ms IS NULL, new.hidden_at_ms IS NULL AND new.instant,
    new.hidden_at_ms IS NULL AND new.protected)
  ON CONFLICT (block) DO UPDATE SET visible_listings = visible_listings + excluded.visible_listings,
    instant = instant + excluded.instant, protected = protected + excluded.protected;
END;
CREATE TRIGGER listings_hidden AFTER UPDATE OF hidden_at_ms ON listings WHEN old.hidden_at_ms IS NOT new.hidden_at_ms BEGIN
  UPDATE catalogue_version SET version = version + 1, hidings = hidings + 1;
  UPDATE sellers SET visible_listings = visible_listings + (new.hidden_at_ms IS NULL) - (old.hidden_at_ms IS NULL)
  WHERE address = new.seller_address;
  INSERT INTO listings_text (listings_text, rowid, title, description)
  SELECT 'delete', old.seq, old.title, old.description WHERE old.hidden_at_ms IS NULL AND new.hidden_at_ms IS NOT NULL;
  INSERT INTO listings_text (rowid, title, description)
  SELECT new.seq, new.title, new.description WHERE old.hidden_at_ms IS NOT NULL AND new.hidden_at_ms IS NULL;
  UPDATE listings_counted SET
    visible_listings = visible_listings + (new.hidden_at_ms IS NULL) - (old.hidden_at_ms IS NULL),
    instant = instant + new.instant * ((new.hidden_at_ms IS NULL) - (old.hidden_at_ms IS NULL)),
    protected = protected + new.protected * ((new.hidden_at_ms IS NULL) - (old.hidden_at_ms IS NULL))
  WHERE block = new.seq / 256;
END;

-- A seller changes both columns at once. Who changes the time alone is an operator, whose word stands.
CREATE TRIGGER listings_hidden_by_operator AFTER UPDATE OF hidden_at_ms ON listings
WHEN old.taken_off = 1 AND new.taken_off = 1 BEGIN
  UPDATE listings SET taken_off = 0 WHERE seq = new.seq;
END;

-- A listing's sales change together with its seller's, in one transaction: one change, one version.
CREATE TRIGGER sellers_new AFTER INSERT ON sellers WHEN new.sales + new.withdrawn + new.refunded > 0 BEGIN
  UPDATE catalogue_version SET version = version + 1;
  UPDATE sellers SET changed = (SELECT version FROM catalogue_version) WHERE address = new.address;
END;
CREATE TRIGGER sellers_figures AFTER UPDATE OF sales, withdrawn, refunded ON sellers
WHEN old.sales <> new.sales OR old.withdrawn <> new.withdrawn OR old.refunded <> new.refunded BEGIN
  UPDATE catalogue_version SET version = version + 1;
  UPDATE sellers SET changed = (SELECT version FROM catalogue_version) WHERE address = new.address;
END;
