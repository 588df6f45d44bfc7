-- What is for sale. Listings never change after they were made; only the figures of their sales do.

CREATE TABLE listings (
  seq INTEGER PRIMARY KEY,                       -- order of creation; the row id of the full-text index
  id TEXT NOT NULL UNIQUE,                       -- public id, lst_ + ULID
  card TEXT NOT NULL,                            -- the public JSON of everything that never changes, built once
  title TEXT NOT NULL,
  description TEXT NOT NULL,
  price_lovelace INTEGER NOT NULL CHECK (price_lovelace >= 1000000),
  seller_address TEXT NOT NULL,
  instant INTEGER NOT NULL CHECK (instant IN (0, 1)),
  protected INTEGER NOT NULL CHECK (protected IN (0, 1)),
  content_hash TEXT NOT NULL CHECK (length(content_hash) = 64),
  category TEXT,
  created_at_ms INTEGER NOT NULL,
  proof_digest TEXT UNIQUE,                      -- a signed offer makes one listing, however often it is sent
  sales INTEGER NOT NULL DEFAULT 0 CHECK (sales >= 0),
  seller_withdrawn INTEGER NOT NULL DEFAULT 0,   -- the seller's closed escrows, copied here so that the catalogue needs no join
  seller_refunded INTEGER NOT NULL DEFAULT 0,
  CHECK (instant + protected >= 1),
  CHECK (protected = 0 OR price_lovelace >= 5000000)
) STRICT;

CREATE INDEX listings_by_seller ON listings (seller_address, seq);
CREATE INDEX listings_by_price ON listings (price_lovelace, seq);
CREATE INDEX listings_by_sales ON listings (sales, seq);

-- What is sold, apart from the catalogue: no query that lists reads it.
CREATE TABLE listing_contents (
  listing_id TEXT PRIMARY KEY REFERENCES listings (id),
  content TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Per seller, kept by whoever records a sale or the end of an escrow.
CREATE TABLE sellers (
  address TEXT PRIMARY KEY,
  sales INTEGER NOT NULL DEFAULT 0 CHECK (sales >= 0),
  withdrawn INTEGER NOT NULL DEFAULT 0 CHECK (withdrawn >= 0),
  refunded INTEGER NOT NULL DEFAULT 0 CHECK (refunded >= 0)
) STRICT, WITHOUT ROWID;

-- A number that grows with every change the catalogue shows: its ETag.
CREATE TABLE catalogue_version (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  version INTEGER NOT NULL
) STRICT;
INSERT INTO catalogue_version VALUES (1, 1);

CREATE VIRTUAL TABLE listings_text USING fts5 (title, description, content = 'listings', content_rowid = 'seq');

CREATE TRIGGER listings_new AFTER INSERT ON listings BEGIN
  UPDATE catalogue_version SET version = version + 1;
  INSERT INTO listings_text (rowid, title, description) VALUES (new.seq, new.title, new.description);
END;
CREATE TRIGGER listings_figures AFTER UPDATE OF sales, seller_withdrawn, seller_refunded ON listings BEGIN
  UPDATE catalogue_version SET version = version + 1;
END;

CREATE TABLE contents (hash TEXT PRIMARY KEY, content TEXT NOT NULL) STRICT, WITHOUT ROWID;
