//! Bounds on the cost of searches with listings that are made to be expensive. Work of the full-text index is not
//! counted in SQLite's steps, so these tests check the properties that its cost depends on.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use futures_lite::future::block_on;
use market::{
    ListingId,
    catalogue::{
        self, Filter,
        discovery::{self, PaymentFilter, Question},
    },
};
use sql::{Database, sqlite::Sqlite};

const SELLER: &str = "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz";

/// Listings with these descriptions, oldest first.
fn listed(descriptions: &[&str]) -> Sqlite {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    for (number, description) in descriptions.iter().enumerate() {
        let fill = "INSERT INTO listings (id, card, title, description, price_lovelace, seller_address, instant, protected, \
                      content_hash, content_bytes, category, created_at_ms) \
                    SELECT id, json_object('id', id, 'title', 'A hero', 'priceLovelace', '5000000', 'sellerAddress', ?2, \
                      'contentHash', printf('%064d', ?1), 'modes', json_array('instant')), 'A hero', ?3, 5000000, ?2, 1, 0, \
                      printf('%064d', ?1), 1, 'Hero', 1700000000000 FROM (SELECT format('lst_%026d', ?1) AS id)";
        block_on(db.execute::<()>(sql::write!(fill, i64::try_from(number).unwrap(), SELLER, *description))).unwrap();
    }
    db
}

fn page(db: &Sqlite, words: &str) -> String {
    let filter = Filter { words: Some(words.into()), ..Filter::default() };
    block_on(catalogue::page(db, &filter)).unwrap().json
}

#[test]
fn repeated_words_in_a_listing_do_not_change_its_rank() {
    let often = "x ".repeat(1_000);
    let db = listed(&["x y", "x", &often, "nothing of it"]);
    let found = |words: &str| {
        let question = Question::read(words).unwrap();
        let found = block_on(discovery::search(&db, &question, PaymentFilter::Any, true, (10, 0))).unwrap();
        let number = |id: &ListingId| id.as_str().strip_prefix("lst_").unwrap().parse::<u8>().unwrap();
        found.listings.iter().map(|listing| number(&listing.terms.id)).collect::<Vec<_>>()
    };
    // In order of age: nothing else tells them apart, unless the index read every occurrence of the word.
    assert_eq!(found("x"), [2, 1, 0]);
    assert_eq!(found(&["x"; 12].join(" ")), [2, 1, 0]);
    assert_eq!(found("x y"), [0, 2, 1]);
}

#[test]
fn a_word_prefix_is_searched_up_to_the_indexed_length() {
    let db = listed(&["documentation", "documents"]);
    let both = |words: &str| page(&db, words).matches("\"lst_").count() == 2;
    for beginning in ["d", "docume", "document", "documentat", "hero documentation"] {
        assert!(both(beginning), "{beginning}");
    }
    assert_eq!(page(&db, "documxent"), "[]");
    let looks = |words: &str| Filter { words: Some(words.into()), ..Filter::default() }.index_scans();
    assert_eq!(looks("hero Hero, documents HERO documents"), 2, "what is said again is not looked for again");
    assert_eq!((looks(""), looks("a b c d e f g h i j k l m n")), (0, 12));
    assert_eq!(page(&db, "documentation hero").matches("\"lst_").count(), 1, "any but the last is a whole word");
    let indexed = "SELECT sql FROM sqlite_schema WHERE name = 'listings_text'";
    let indexed = block_on(db.fetch::<Vec<String>>(sql::read!(indexed))).unwrap();
    assert!(indexed.first().unwrap().contains("prefix = '1 2 3 4 5 6 7 8'"), "{indexed:?}");
}

#[test]
fn no_character_of_a_question_s_word_ends_one_to_the_index() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let one = "INSERT INTO listings_text (rowid, title, description) VALUES (1, 'xx yy', '')";
    block_on(db.execute::<()>(sql::write!(one))).unwrap();
    let found = "SELECT CAST(rowid AS TEXT) FROM listings_text WHERE listings_text MATCH ?1";
    for c in ('\u{80}'..=char::MAX).filter(|c| c.is_alphanumeric()) {
        // In the parser of questions.
        let split = ('\u{24b6}'..='\u{24e9}').contains(&c) || ('\u{1f130}'..='\u{1f189}').contains(&c);
        let rows = block_on(db.fetch::<Vec<String>>(sql::read!(found, format!("\"xx{c}yy\"")))).unwrap();
        assert!(rows.is_empty() || split, "{c:?}");
    }
}
