//! Listings for directories, on SQLite with the service's migrations.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use cardano::Address;
use futures_lite::future::block_on;
use market::{
    ListingId,
    catalogue::{
        self, Quota, Stored,
        discovery::{self, PaymentFilter, Question, SalesPage},
    },
    contents::InDatabase,
    listing::NewListing,
};
use serde_json::json;
use sql::{Database, sqlite::Sqlite};

const SELLER: &str = "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz";
/// 2023-11-14T22:13:20Z
const NOW: u64 = 1_700_000_000_000;

fn database(listings: &[(&str, &[&str])]) -> Sqlite {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    for (number, (title, modes)) in (0_u8..).zip(listings.iter().copied()) {
        let body = json!({
            "title": title, "description": "d", "priceLovelace": "5000000", "sellerAddress": SELLER, "modes": modes,
            "content": cardano::ContentHash::of(title.as_bytes()),
        });
        let listing = NewListing::read(body.to_string().as_bytes(), None).unwrap();
        let id = ListingId::new(NOW, [number; 10]);
        let quota = Quota::default();
        let stored =
            block_on(catalogue::store(&db, &InDatabase(&db), &id, &listing, catalogue::Source::default(), quota, NOW))
                .unwrap();
        assert!(matches!(stored, Stored::Listing { .. }));
    }
    db
}

fn titles(page: &SalesPage) -> Vec<&str> {
    page.listings.iter().map(|listing| listing.terms.title.as_str()).collect()
}

fn for_sale(db: &Sqlite, paid: PaymentFilter, with_escrow: bool, page: (u32, u32)) -> SalesPage {
    block_on(discovery::for_sale(db, paid, with_escrow, page)).unwrap()
}

const ALL: &[(&str, &[&str])] =
    &[("instant", &["instant"]), ("both", &["instant", "protected"]), ("protected", &["protected"])];

#[test]
fn a_page_begins_after_its_offset_and_knows_how_many_there_are() {
    let db = database(ALL);
    let page = for_sale(&db, PaymentFilter::Any, true, (2, 0));
    assert_eq!((titles(&page), page.total), (vec!["protected", "both"], 3));
    assert_eq!(page.listings.first().unwrap().changed_at, "2023-11-14T22:13:20Z");
    let page = for_sale(&db, PaymentFilter::Any, true, (2, 2));
    assert_eq!((titles(&page), page.total), (vec!["instant"], 3));
    assert_eq!((titles(&for_sale(&db, PaymentFilter::Any, true, (2, 4))), page.total), (vec![], 3));
}

#[test]
fn a_listing_is_found_by_the_address_that_it_pays() {
    let db = database(ALL);
    let seller: Address = SELLER.parse().unwrap();
    let found = |paid| titles(&for_sale(&db, paid, true, (9, 0))).join(" ");
    assert_eq!(found(PaymentFilter::To(seller)), "both instant");
    assert_eq!(found(PaymentFilter::IntoEscrow), "protected both");
}

#[test]
fn hidden_and_unpayable_listings_are_not_discovered() {
    let db = database(ALL);
    let without_escrow = for_sale(&db, PaymentFilter::Any, false, (9, 0));
    assert_eq!((titles(&without_escrow), without_escrow.total), (vec!["both", "instant"], 2));
    block_on(db.execute::<()>(sql::write!("UPDATE listings SET hidden_at_ms = 1 WHERE title = 'both'"))).unwrap();
    let page = for_sale(&db, PaymentFilter::Any, true, (9, 0));
    assert_eq!((titles(&page), page.total), (vec!["protected", "instant"], 2));
    assert_eq!(block_on(discovery::addresses(&db)).unwrap().lines().count(), 2);
}

#[test]
fn listing_addresses_come_with_their_date() {
    let db = database(&[("one", &["instant"])]);
    let id = ListingId::new(NOW, [0; 10]);
    assert_eq!(block_on(discovery::addresses(&db)).unwrap(), format!("{id} 2023-11-14"));
    assert_eq!(block_on(discovery::addresses(&database(&[]))).unwrap(), "");
}

#[test]
fn a_search_ranks_rare_words_first_and_reads_no_character_as_an_operator() {
    let db = database(&[
        ("aurora hero", &["instant"]),
        ("calm hero", &["instant", "protected"]),
        ("hero of orbits", &["protected"]),
        ("ledger", &["instant"]),
    ]);
    let asked = |text: &str, paid, with_escrow, page| {
        let question = Question::read(text).unwrap();
        let found = block_on(discovery::search(&db, &question, paid, with_escrow, page)).unwrap();
        let titles: Vec<String> = found.listings.into_iter().map(|listing| listing.terms.title).collect();
        (titles, found.more)
    };
    let found = |text: &str| asked(text, PaymentFilter::Any, true, (9, 0)).0;
    assert_eq!(found("A hero section with an Aurora, please!").first().unwrap(), "aurora hero");
    assert_eq!(found("hero").len(), 3);
    assert_eq!(found("LEDGER NOT \"hero\" AND (title:x* ^").first().unwrap(), "ledger");
    for absent in ["", "?!", "nowhere"] {
        assert!(found(absent).is_empty(), "{absent}");
    }
    assert_eq!(asked("hero", PaymentFilter::Any, false, (9, 0)).0.len(), 2);
    assert_eq!(asked("hero", PaymentFilter::IntoEscrow, true, (9, 0)).0.len(), 2);
    let (first, more) = asked("hero", PaymentFilter::Any, true, (2, 0));
    let (rest, no_more) = asked("hero", PaymentFilter::Any, true, (2, 2));
    assert_eq!((first.len(), more, rest.len(), no_more), (2, true, 1, false));
    assert!(!first.contains(rest.first().unwrap()));
    assert_eq!(Question::read(&"a".repeat(201)), None);
}
