//! The catalogue's SQL on SQLite with the service's own migrations.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use sql::{Database, sqlite::Sqlite, statement};
use std::borrow::Cow;

use market::{
    DeliveryMode, ListingId,
    catalogue::{self, Filter, Stored},
    listing::NewListing,
};
use serde_json::{Value, json};

const SELLER: &str = "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz";

fn block<F: std::future::Future>(future: F) -> F::Output {
    futures_lite::future::block_on(future)
}

fn offer(title: &str, price: u64, modes: &[&str], category: Option<&str>) -> NewListing {
    let body = json!({
        "title": title, "description": format!("about {title}"), "priceLovelace": price.to_string(),
        "sellerAddress": SELLER, "modes": modes, "content": format!("content of {title}"), "category": category,
    });
    NewListing::from_json(&body, None).unwrap()
}

fn put(db: &Sqlite, number: u8, listing: &NewListing) -> ListingId {
    let id = ListingId::new(1_700_000_000_000 + u64::from(number), [number; 10]);
    let stored = block(catalogue::store(db, &id, listing, None, 1_700_000_000_000)).unwrap();
    assert!(matches!(stored, Stored::Listing { .. }));
    id
}

fn market() -> (Sqlite, Vec<ListingId>) {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let ids = vec![
        put(&db, 1, &offer("Aurora hero", 1_000_000, &["instant"], Some("Hero"))),
        put(&db, 2, &offer("Ledger dashboard", 7_000_000, &["instant", "protected"], Some("Fintech"))),
        put(&db, 3, &offer("Calm landing", 5_000_000, &["protected"], Some("Wellness"))),
    ];
    (db, ids)
}

fn titles(json: &str) -> Vec<String> {
    let listings: Vec<Value> = serde_json::from_str(json).unwrap();
    listings.iter().map(|listing| listing["title"].as_str().unwrap().to_owned()).collect()
}

fn query(db: &Sqlite, query: &[(&str, &str)]) -> catalogue::Page {
    let pairs = query.iter().map(|(name, value)| (Cow::Borrowed(*name), Cow::Borrowed(*value)));
    block(catalogue::page(db, &Filter::from_query(pairs).unwrap().unwrap())).unwrap()
}

#[test]
fn the_whole_catalogue_is_newest_first_and_has_no_content() {
    let (db, _) = market();
    let json = block(catalogue::whole(&db, None)).unwrap().json.unwrap();
    assert_eq!(titles(&json), ["Calm landing", "Ledger dashboard", "Aurora hero"]);
    assert!(!json.contains("content of"));
}

#[test]
fn an_empty_catalogue_is_an_empty_array() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    assert_eq!(block(catalogue::whole(&db, None)).unwrap().json.as_deref(), Some("[]"));
}

#[test]
fn a_catalogue_of_many_chunks_is_one_array_in_order() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    for number in 0..=250 {
        put(&db, number, &offer(&format!("n{number}"), 1_000_000, &["instant"], None));
    }
    let json = block(catalogue::whole(&db, None)).unwrap().json.unwrap();
    let expected: Vec<String> = (0..=250).rev().map(|number| format!("n{number}")).collect();
    assert_eq!(titles(&json), expected);
}

#[test]
fn a_known_version_is_not_read_again_until_something_changes() {
    let (db, ids) = market();
    let first = block(catalogue::whole(&db, None)).unwrap();
    assert_eq!(block(catalogue::whole(&db, Some(first.version))).unwrap().json, None);
    block(db.run(statement!("UPDATE listings SET sales = sales + 1 WHERE id = ?1", ids[0].as_str()))).unwrap();
    let second = block(catalogue::whole(&db, Some(first.version))).unwrap();
    assert!(second.version > first.version);
    assert!(second.json.unwrap().contains("\"sales\":1"));
}

#[test]
fn reputation_appears_with_the_first_closed_escrow_and_rounds_half_up() {
    let (db, ids) = market();
    let read = || serde_json::from_str::<Value>(&block(catalogue::one(&db, &ids[0])).unwrap().unwrap()).unwrap();
    assert!(read().get("sellerReputation").is_none());
    for (withdrawn, refunded, score) in
        [(0_i64, 1_i64, 0), (1, 0, 100), (1, 2, 33), (2, 1, 67), (1, 7, 13), (199, 1, 100)]
    {
        let set = statement!("UPDATE listings SET seller_withdrawn = ?1, seller_refunded = ?2", withdrawn, refunded);
        block(db.run(set)).unwrap();
        assert_eq!(read()["sellerReputation"], json!({"score": score, "basis": withdrawn + refunded}));
    }
}

#[test]
fn filters_and_search_narrow_the_page() {
    let (db, _) = market();
    assert_eq!(titles(&query(&db, &[("category", "Fintech")]).json), ["Ledger dashboard"]);
    assert_eq!(titles(&query(&db, &[("mode", "instant")]).json), ["Ledger dashboard", "Aurora hero"]);
    assert_eq!(titles(&query(&db, &[("q", "ledg")]).json), ["Ledger dashboard"]);
    assert_eq!(titles(&query(&db, &[("q", "about calm")]).json), ["Calm landing"]);
    assert_eq!(titles(&query(&db, &[("sort", "price_asc")]).json), ["Aurora hero", "Calm landing", "Ledger dashboard"]);
}

#[test]
fn search_text_is_never_an_operator() {
    let (db, _) = market();
    for text in ["\"", "a\" OR \"b", "NEAR(", "title:hero", "*", "-", "'; DROP TABLE listings", "ünïcødé 🦀"] {
        query(&db, &[("q", text)]);
    }
}

#[test]
fn pages_follow_each_other_without_gap_or_repetition_in_every_order() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    for number in 0..23 {
        put(&db, number, &offer(&format!("n{number}"), 1_000_000 + u64::from(number % 4), &["instant"], None));
    }
    for sort in ["newest", "popular", "price_asc", "price_desc", "reputation"] {
        let mut seen = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let mut pairs = vec![("limit", "5"), ("sort", sort)];
            if let Some(cursor) = &cursor {
                pairs.push(("cursor", cursor));
            }
            let page = query(&db, &pairs);
            seen.extend(titles(&page.json));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        let mut unique = seen.clone();
        unique.sort();
        unique.dedup();
        assert_eq!((seen.len(), unique.len()), (23, 23), "{sort}");
    }
}

#[test]
fn bad_parameters_are_named() {
    for (name, value) in [
        ("limit", "0"),
        ("limit", "201"),
        ("limit", "ten"),
        ("cursor", "x"),
        ("category", "hero"),
        ("mode", "later"),
        ("sort", "best"),
        ("q", &*"x".repeat(201)),
    ] {
        let error = Filter::from_query([(Cow::Borrowed(name), Cow::Borrowed(value))]).unwrap_err();
        assert_eq!(error.0, name);
    }
    assert_eq!(Filter::from_query([(Cow::Borrowed("utm_source"), Cow::Borrowed("x"))]), Ok(None));
}

#[test]
fn a_signed_offer_sent_twice_makes_one_listing_and_with_other_words_none() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let listing = offer("Once", 1_000_000, &["instant"], None);
    let store = |number: u8, listing: &NewListing| {
        let id = ListingId::new(1, [number; 10]);
        block(catalogue::store(&db, &id, listing, Some("digest"), 1)).unwrap()
    };
    let first = store(1, &listing);
    assert_eq!(store(2, &listing), first);
    let mut changed = listing;
    changed.title = "Twice".into();
    assert_eq!(store(3, &changed), Stored::OfferChanged);
    assert_eq!(titles(&block(catalogue::whole(&db, None)).unwrap().json.unwrap()), ["Once"]);
}

#[test]
fn a_creators_page_lists_only_theirs() {
    let (db, _) = market();
    let page: Value = serde_json::from_str(&block(catalogue::creator(&db, &SELLER.parse().unwrap())).unwrap()).unwrap();
    assert_eq!(page["listings"].as_array().unwrap().len(), 3);
    assert_eq!((&page["address"], &page["sales"]), (&json!(SELLER), &json!(0)));
    assert!(page.get("sellerReputation").is_none());
}

#[test]
fn terms_are_read_from_the_card() {
    let (db, ids) = market();
    let outcome = block(db.run(catalogue::terms(&ids[1]))).unwrap();
    let terms: catalogue::Terms = outcome.first_json().unwrap().unwrap();
    assert_eq!(terms.modes, [DeliveryMode::Instant, DeliveryMode::Protected]);
    assert_eq!(terms.price_lovelace.get(), 7_000_000);
}
