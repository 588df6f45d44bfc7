//! Bounds on the cost of queries with very many listings, in steps of SQLite's virtual machine.

#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::print_stdout,
    reason = "tests fail by panicking, and say what they measured"
)]

use std::cell::RefCell;

use futures_lite::future::block_on;
use market::{
    ListingId,
    catalogue::{
        self, Filter, Newest, Page, Quota, Source, Stored,
        discovery::{self, PaymentFilter, Question},
    },
    contents::InDatabase,
    listing::NewListing,
};
use serde_json::json;
use sql::{Database, Write, sqlite::Sqlite};

/// Number of listings: three times the maximum read for a page.
const MANY: u32 = 30_000;
/// Maximum steps of a query: sixty per listing that it reads.
const MOST: u64 = 600_000;
const SELLER: &str = "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz";

/// The address of a seller, as its listings' rows need it.
fn seller(number: u32) -> String {
    let mut key = [0; 28];
    key[..4].copy_from_slice(&number.to_be_bytes());
    cardano::Address::enterprise(cardano::KeyHash::new(key)).to_string()
}

/// Half of them belong to sellers with one listing, half to 150 sellers with a reputation; all have the same price.
fn full() -> Sqlite {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let sellers: Vec<String> = (1..=MANY).map(|n| seller(if n % 2 == 1 { n } else { n % 300 })).collect();
    let fill = "WITH n (n, seller) AS (SELECT key + 1, value FROM json_each(?1)) \
        INSERT INTO listings (id, card, title, description, price_lovelace, seller_address, instant, protected, content_hash, \
          content_bytes, category, created_at_ms) \
        SELECT format('lst_%026d', n), json_object('id', format('lst_%026d', n), 'title', 'Aurora hero ' || n, 'priceLovelace', '5000000', 'sellerAddress', \
          seller, 'contentHash', printf('%064d', n), 'modes', json_array('instant')), 'Aurora hero ' || n, \
          'the same common words and w' || n, 5000000, seller, 1, 0, \
          printf('%064d', n), 10, iif(n % 2, 'Hero', 'Fintech'), 1700000000000 + n FROM n";
    let closed = "UPDATE sellers SET withdrawn = 1 WHERE address IN (SELECT value FROM json_each(?1))";
    let known: Vec<String> = (0..100).map(seller).collect();
    let fill: Write = sql::write!(fill, json!(sellers).to_string());
    block_on(db.batch((fill, sql::write!(closed, json!(known).to_string()) as Write))).unwrap();
    db
}

#[test]
fn no_catalogue_query_costs_more_than_reading_ten_thousand_rows() {
    let db = full();
    let told = RefCell::new(Vec::new());
    let cost = |what: &str, ask: &dyn Fn() -> usize| {
        let before = db.steps();
        let found = ask();
        let steps = db.steps() - before;
        println!("{what}: {found} found, {steps} steps");
        told.borrow_mut().push((what.to_owned(), steps));
    };
    let page = |query: &str| -> Page {
        let filter = Filter::from_query(url::form_urlencoded::parse(query.as_bytes())).unwrap().unwrap();
        block_on(catalogue::page(&db, &filter)).unwrap()
    };
    let found = |page: &Page| page.json.matches("\"id\"").count();
    for sort in ["newest", "popular", "price_asc", "price_desc", "reputation"] {
        for more in [
            "",
            "&mode=protected",
            "&category=Wellness",
            "&category=Hero",
            "&q=hero",
            "&q=w",
            "&q=common+nowhere",
            "&q=the&mode=protected",
            "&cursor=1.9000",
            "&cursor=-5000000.9000",
            "&cursor=5000000.9000&mode=protected",
            "&q=a&cursor=-1.15000",
        ] {
            let query = format!("sort={sort}{more}");
            cost(&query, &|| found(&page(&query)));
        }
    }
    for (min, sort) in [(50, catalogue::Sort::Newest), (50, catalogue::Sort::Popular), (0, catalogue::Sort::Reputation)]
    {
        let filter = Filter { min_reputation: Some(min), sort, limit: Some(50), ..Filter::default() };
        cost(&format!("at least {min}, {sort:?}"), &|| found(&block_on(catalogue::page(&db, &filter)).unwrap()));
    }
    for paid in [PaymentFilter::Any, PaymentFilter::IntoEscrow] {
        for offset in [0, 20_000, 1_000_000] {
            cost(&format!("resources {paid:?} after {offset}"), &|| {
                block_on(discovery::for_sale(&db, paid, true, (100, offset))).unwrap().listings.len()
            });
        }
    }
    for question in ["hero", "the common hero words and a w9 w8 w7 w6 w5 w4 w3 w2"] {
        let question = Question::read(question).unwrap();
        for paid in [PaymentFilter::Any, PaymentFilter::IntoEscrow] {
            cost(&format!("search {question:?} {paid:?}"), &|| {
                block_on(discovery::search(&db, &question, paid, true, (100, 1_000))).unwrap().listings.len()
            });
        }
    }
    cost("the whole catalogue", &|| found(&block_on(Newest::read(&db)).unwrap().page()));
    cost("addresses", &|| block_on(discovery::addresses(&db)).unwrap().lines().count());
    let dear: Vec<_> = told.into_inner().into_iter().filter(|(_, steps)| *steps > MOST).collect();
    assert_eq!(dear, [], "dearer than {MOST} steps");
}

#[test]
fn deep_discovery_pages_are_exact_and_cheap() {
    const FEW: u64 = 60_000;
    let db = full();
    let sparse = "INSERT INTO listings (id, card, title, description, price_lovelace, seller_address, instant, protected, \
        content_hash, content_bytes, created_at_ms, hidden_at_ms) \
        SELECT replace(id, 'lst_0', 'lst_1'), json_set(card, '$.id', replace(id, 'lst_0', 'lst_1'), '$.modes', json_array('protected')), title, description, \
          price_lovelace, seller_address, 0, 1, content_hash, content_bytes, created_at_ms, iif(seq % 1000 = 1, 1, NULL) \
        FROM listings WHERE seq % 500 = 1";
    let hide = "UPDATE listings SET hidden_at_ms = 1 WHERE seq % 7 = 0 OR seq BETWEEN 9000 AND 9700";
    let show = "UPDATE listings SET hidden_at_ms = NULL WHERE seq % 14 = 0";
    block_on(db.batch([sparse, hide, show].map(|sql| -> Write { sql::write!(sql) }).to_vec())).unwrap();
    let ids = |condition: &str| {
        let all = format!("SELECT id FROM listings WHERE hidden_at_ms IS NULL AND {condition} ORDER BY seq DESC");
        block_on(db.fetch::<Vec<String>>(sql::read!(all))).unwrap()
    };
    for (paid, with_escrow, condition) in [
        (PaymentFilter::Any, true, "1"),
        (PaymentFilter::Any, false, "instant = 1"),
        (PaymentFilter::IntoEscrow, true, "protected = 1"),
    ] {
        let all = ids(condition);
        for offset in
            [0, 1, 29, 30, 31, 255, 256, 257, 5_000, 17_777, all.len() - 30, all.len() - 1, all.len(), 900_000]
        {
            let before = db.steps();
            let page = (100, u32::try_from(offset).unwrap());
            let found = block_on(discovery::for_sale(&db, paid, with_escrow, page)).unwrap();
            let steps = db.steps() - before;
            let shown: Vec<_> = found.listings.iter().map(|listing| listing.terms.id.to_string()).collect();
            let meant: Vec<_> = all.iter().skip(offset).take(100).cloned().collect();
            assert_eq!((shown, found.total), (meant, all.len() as u64), "{paid:?} after {offset}");
            assert!(steps < FEW, "{paid:?} after {offset}: {steps} steps");
        }
    }
}

#[test]
fn following_cursors_of_short_pages_shows_every_match() {
    let db = full();
    let rare = "UPDATE listings SET category = 'Wellness' WHERE seq % 7001 = 1";
    block_on(db.execute::<()>(sql::write!(rare))).unwrap();
    for sort in ["newest", "popular", "price_asc", "price_desc", "reputation"] {
        let (mut seen, mut cursor, mut pages) = (0, String::new(), 0);
        loop {
            let query = format!("sort={sort}&category=Wellness{cursor}");
            let filter = Filter::from_query(url::form_urlencoded::parse(query.as_bytes())).unwrap().unwrap();
            let page = block_on(catalogue::page(&db, &filter)).unwrap();
            seen += page.json.matches("\"id\"").count();
            pages += 1;
            let Some(next) = page.next else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!((seen, pages), (5, 4), "{sort}");
    }
}

#[test]
fn a_sellers_sales_to_one_buyer_are_found_among_many() {
    let db = full();
    let sold = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 5000) \
        INSERT INTO purchases (id, listing_id, mode, seller_address, buyer_address, buyer_key, price_lovelace, creator_lovelace, \
          status, bought_at_ms) SELECT printf('%064d', n), format('lst_%026d', 2), 'instant', ?1, 'buyer ' || n, printf('%056d', n), 1, 0, 'settled', n FROM n";
    block_on(db.execute::<()>(sql::write!(sold, SELLER))).unwrap();
    let before = db.steps();
    let seller: cardano::Address = SELLER.parse().unwrap();
    let found = block_on(market::purchase::of_seller(&db, &seller, &[*seller.payment_key()])).unwrap();
    assert_eq!(found, []);
    assert!(db.steps() - before < 1_000, "{}", db.steps() - before);
}

/// Offers a listing. Returns its number, whether it existed before, and the steps of the insert.
fn offer(db: &Sqlite, number: u64, title: &str, content: &str, proof: Option<&str>) -> (bool, u64) {
    let body = json!({ "title": title, "description": "d".repeat(1_000), "priceLovelace": "1000000",
        "sellerAddress": SELLER, "modes": ["instant"], "content": content });
    let listing = NewListing::read(body.to_string().as_bytes(), Some(SELLER.parse().unwrap())).unwrap();
    let now = 1_700_000_000_000 + number;
    let mut random = [0; 10];
    random[..8].copy_from_slice(&number.to_be_bytes());
    let source = Source { proof, network: "a" };
    let quota = Quota { listings: 300, ..Quota::default() };
    let before = db.steps();
    let stored =
        block_on(catalogue::store(db, &InDatabase(db), &ListingId::new(now, random), &listing, source, quota, now));
    (matches!(stored.unwrap(), Stored::Listing { .. }), db.steps() - before)
}

#[test]
fn an_offer_costs_the_same_beside_any_number_of_listings_of_the_same_content() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    assert!((0..300).all(|number| offer(&db, number, &number.to_string(), "the same", None).0));
    let (same, other) = (offer(&db, 300, "300", "the same", None), offer(&db, 301, "301", "another", None));
    assert!(!same.0 && !other.0, "there is no more room");
    assert!(same.1 < 2 * other.1, "{} steps, {} for another content", same.1, other.1);
}

#[test]
fn an_offer_costs_the_same_after_any_number_of_signatures() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    assert!((0..300).all(|number| offer(&db, number, "card", "content", Some(&number.to_string())).0));
    // A day later it counts as a new offer; until then it is the first one.
    let (again, later) = (offer(&db, 300, "card", "content", None), offer(&db, 86_400_500, "card", "content", None));
    let other = offer(&db, 301, "another", "content", None);
    assert!(again.0 && !later.0 && !other.0);
    assert!(again.1 < 2 * other.1, "{} steps, {} for another", again.1, other.1);
    assert!(later.1 < 2 * other.1, "{} steps a day later, {} for another", later.1, other.1);
}

/// Adds listings, a thousand per seller.
fn flood(db: &Sqlite, from: u32, until: u32, title: &str) {
    let sellers: Vec<String> = (from..=until).map(|n| seller(n / 1_000)).collect();
    let fill = "WITH n (n, seller) AS (SELECT ?1 + key, value FROM json_each(?2)) \
        INSERT INTO listings (id, card, title, description, price_lovelace, seller_address, instant, protected, content_hash, \
          content_bytes, category, created_at_ms) \
        SELECT format('lst_%026d', n), json_object('id', format('lst_%026d', n), 'title', ?3, 'priceLovelace', '5000000', 'sellerAddress', seller, \
          'contentHash', printf('%064d', n), 'modes', json_array('instant')), ?3, 'hero prompt', 5000000, \
          seller, 1, 0, printf('%064d', n), 10, 'Hero', 1700000000000 + n FROM n";
    block_on(db.execute::<()>(sql::write!(fill, from, json!(sellers).to_string(), title))).unwrap();
}

#[test]
fn hidden_listings_cost_no_reads_and_block_no_page() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    flood(&db, 1_000, 1_099, "honest");
    let page = |query: &str| -> Page {
        let filter = Filter::from_query(url::form_urlencoded::parse(query.as_bytes())).unwrap().unwrap();
        block_on(catalogue::page(&db, &filter)).unwrap()
    };
    let look = || {
        let before = db.steps();
        let question = Question::read("hero prompt").unwrap();
        let searched =
            block_on(discovery::search(&db, &question, PaymentFilter::Any, true, (100, 0))).unwrap().listings.len();
        let pages = ["sort=reputation", "q=hero", "q=hero&sort=popular", "q=hero&sort=reputation"];
        let found: Vec<usize> = pages.iter().map(|query| page(query).json.matches("honest").count()).collect();
        let newest = block_on(Newest::read(&db)).unwrap().page().json.matches("honest").count();
        ((searched, found, newest), db.steps() - before)
    };
    let (before, steps) = look();
    assert_eq!(before, (100, vec![100; 4], 100));
    flood(&db, 2_000, 21_999, "spam");
    block_on(db.execute::<()>(sql::write!("UPDATE listings SET hidden_at_ms = 1 WHERE title = 'spam'"))).unwrap();
    let (after, more) = look();
    assert_eq!(after, before);
    assert!(more < 2 * steps, "{more} steps, {steps} before");
    // Showing and hiding it again changes nothing else.
    block_on(db.execute::<()>(sql::write!("UPDATE listings SET hidden_at_ms = NULL WHERE title = 'spam'"))).unwrap();
    assert_eq!(page("q=spam&limit=1").json.matches("\"id\"").count(), 1);
    block_on(db.execute::<()>(sql::write!("UPDATE listings SET hidden_at_ms = 2 WHERE title = 'spam'"))).unwrap();
    assert_eq!(look().0, before);
    block_on(db.execute::<()>(sql::write!("INSERT INTO listings_text (listings_text) VALUES ('integrity-check')")))
        .unwrap();
}
