//! What questions cost where one seller's listings are written for them: what the full-text index does is no step of SQLite's
//! machine, so it is held against what a plain question costs on the same computer.

#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and say what they measured"
)]

use std::time::{Duration, Instant};

use futures_lite::future::block_on;
use market::catalogue::{
    self, Filter,
    discovery::{self, Paid, Question},
};
use sql::{Database, sqlite::Sqlite, statement};

const SELLER: &str = "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz";
/// How many times more than a page for one word that all listings have.
const MOST: u32 = 60;

/// As many listings as one seller may have, each with the longest description, SQL of its number `n`.
fn listed(description: &str) -> Sqlite {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let fill = format!(
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1000) \
         INSERT INTO listings (id, card, title, description, price_lovelace, seller_address, instant, protected, \
           content_hash, content_bytes, category, created_at_ms) \
         SELECT 'lst_' || n, json_object('id', 'lst_' || n, 'title', 'A hero', 'priceLovelace', '5000000', 'sellerAddress', \
           ?1, 'contentHash', printf('%064d', n), 'modes', json_array('instant')), 'A hero', substr({description}, 1, 2000), \
           5000000, ?1, 1, 0, printf('%064d', n), 1, 'Hero', 1700000000000 + n FROM n"
    );
    block_on(db.run(statement!(fill, SELLER))).unwrap();
    db
}

/// The shortest of three times.
fn time(ask: impl Fn() -> usize) -> Duration {
    let once = || {
        let began = Instant::now();
        ask();
        began.elapsed()
    };
    once().min(once()).min(once())
}

fn page(db: &Sqlite, words: &str) -> Duration {
    let filter = Filter { words: Some(words.into()), limit: Some(10), ..Filter::default() };
    time(|| block_on(catalogue::page(db, &filter)).unwrap().json.len())
}

fn search(db: &Sqlite, words: &str) -> Duration {
    let question = Question::read(words).unwrap();
    time(|| block_on(discovery::search(db, &question, Paid::Any, true, (10, 0))).unwrap().listings.len())
}

fn compare(what: &str, plain: Duration, asked: Duration) {
    println!("{what}: {asked:?}, a plain question {plain:?}");
    assert!(asked <= plain * MOST, "{what}: {asked:?}, a plain question {plain:?}");
}

#[test]
fn how_often_a_listing_has_a_word_makes_no_question_dear() {
    let db = listed("replace(printf('%.1000c', 'a'), 'a', 'a ')");
    let again = ["a"; 12].join(" ");
    compare("a search for twelve equal words", page(&db, "a"), search(&db, &again));
    // Equal to the index.
    let marked = "a á à ä â ã å ā ă ą ǎ ȁ";
    compare("a search for twelve of one letter", page(&db, "a"), search(&db, marked));
}

#[test]
fn a_word_is_one_to_the_index_too() {
    let db = listed("replace(printf('%.1000c', 'a'), 'a', 'a ')");
    // A letter to us, and a mark that ends a word to the index.
    let word = ["a"; 100].join("\u{345}");
    compare("a page for a word of a hundred pieces", page(&db, "a"), page(&db, &word));
    compare("a search for it", page(&db, "a"), search(&db, &word));
}

#[test]
fn no_character_of_a_question_s_word_ends_one_to_the_index() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let one = "INSERT INTO listings_text (rowid, title, description) VALUES (1, 'xx yy', '')";
    block_on(db.run(statement!(one))).unwrap();
    let found = "SELECT CAST(rowid AS TEXT) FROM listings_text WHERE listings_text MATCH ?1";
    for c in ('\u{80}'..=char::MAX).filter(|c| c.is_alphanumeric()) {
        // Where questions are taken apart.
        let split = ('\u{24b6}'..='\u{24e9}').contains(&c) || ('\u{1f130}'..='\u{1f189}').contains(&c);
        let rows = block_on(db.run(statement!(found, format!("\"xx{c}yy\"")))).unwrap().rows;
        assert!(rows.is_empty() || split, "{c:?}");
    }
}
