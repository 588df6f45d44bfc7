//! The catalogue's SQL on SQLite, with the service's migrations.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use sql::{Database, One, Write, sqlite::Sqlite};
use std::borrow::Cow;

use market::{
    DeliveryMode, ListingId, account,
    catalogue::{self, Filter, Newest, Quota, QuotaExceeded, Source, Stored},
    contents::InDatabase,
    listing::NewListing,
    seller_name::SellerName,
};
use serde_json::{Value, json};

use crate::support::{list_by, one, person, sign_up, token};

const OTHER: &str = "addr_test1vpu5vlrf4xkxv2qpwngf6cjhtw542ayty80v8dyr49rf5eg57c2qv";
const SELLER: &str = "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz";

fn block<F: std::future::Future>(future: F) -> F::Output {
    futures_lite::future::block_on(future)
}

fn offer(title: &str, price: u64, modes: &[&str], category: Option<&str>) -> NewListing {
    let body = json!({
        "title": title, "description": format!("about {title}"), "priceLovelace": price.to_string(),
        "sellerAddress": SELLER, "modes": modes, "content": cardano::ContentHash::of(title.as_bytes()), "category": category,
    });
    NewListing::read(body.to_string().as_bytes(), None).unwrap()
}

const NOW: u64 = 1_700_000_000_000;
const DAY: u64 = 24 * 60 * 60 * 1_000;

fn id(number: u16) -> ListingId {
    let mut random = [0; 10];
    random[..2].copy_from_slice(&number.to_be_bytes());
    ListingId::new(NOW + u64::from(number), random)
}

fn store(db: &Sqlite, number: u16, listing: &NewListing, proof: Option<&str>, quota: Quota, now: u64) -> Stored {
    block(catalogue::store(db, &InDatabase(db), &id(number), listing, Source { proof, network: "" }, quota, now))
        .unwrap()
}

fn put(db: &Sqlite, number: u16, listing: &NewListing) -> ListingId {
    let stored = store(db, number, listing, None, Quota { listings: 5_000, ..Quota::default() }, NOW);
    assert!(matches!(stored, Stored::Listing { .. }));
    id(number)
}

fn all(db: &Sqlite) -> catalogue::Page {
    block(Newest::read(db)).unwrap().page()
}

fn count(db: &Sqlite, table: &str) -> String {
    crate::support::one(db, &format!("SELECT CAST(count(*) AS TEXT) FROM {table}"))
}

fn version(db: &Sqlite) -> i64 {
    let One(state) = block(db.fetch(market::state::read())).unwrap();
    state.version
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

fn purchase(db: &Sqlite, listing: &ListingId, number: u8, status: &str) {
    let insert: Write = sql::write!(
        "INSERT INTO purchases (id, listing_id, mode, seller_address, buyer_address, buyer_key, price_lovelace, creator_lovelace, status, \
           bought_at_ms) VALUES (?1, ?2, 'protected', ?3, ?3, substr(?1, 1, 56), 5000000, 3500000, ?4, ?5)",
        format!("{number:064x}"),
        listing.as_str(),
        SELLER,
        status,
        NOW
    );
    block(db.execute(insert)).unwrap();
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
    let json = all(&db).json;
    assert_eq!(titles(&json), ["Calm landing", "Ledger dashboard", "Aurora hero"]);
    assert!(!json.contains("content of"));
}

#[test]
fn an_empty_catalogue_is_an_empty_array() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    assert_eq!(all(&db), catalogue::Page { json: "[]".into(), ..catalogue::Page::default() });
}

#[test]
fn a_catalogue_of_many_listings_is_one_array_in_order() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    for number in 0..=250_u16 {
        put(&db, number, &offer(&format!("n{number}"), 1_000_000, &["instant"], None));
    }
    let json = all(&db).json;
    let expected: Vec<String> = (0..=250).rev().map(|number| format!("n{number}")).collect();
    assert_eq!(titles(&json), expected);
}

#[test]
fn a_sellers_name_is_on_their_listings_alone_and_a_change_is_a_new_version() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let (seller, other) = (person(1).enterprise_address(), person(2).enterprise_address());
    let named = |name: &str| {
        let name = SellerName::read(name).unwrap();
        block(account::set_seller_name(&db, &token(1), name.as_ref(), NOW)).unwrap()
    };
    let version = || one(&db, "SELECT CAST(version AS TEXT) FROM catalogue_version").parse::<u64>().unwrap();
    assert!(!named("Ada"), "nobody is signed in");
    sign_up(&db, 1, NOW);
    // Before the first listing, and after it.
    assert!(named("\"Ada\" 桜"));
    let own = list_by(&db, &seller.to_string(), 1, 2_000_000);
    list_by(&db, &other.to_string(), 2, 2_000_000);
    let of = |json: &str| serde_json::from_str::<Value>(json).unwrap();
    let mut was = json!("\"Ada\" 桜");
    for name in ["\"Ada\" 桜", "Bob", "Bob", ""] {
        let before = version();
        assert!(named(name));
        let shown = if name.is_empty() { Value::Null } else { json!(name) };
        assert_eq!(version() > before, was != shown, "{name}");
        let listings = of(&all(&db).json);
        assert_eq!((&listings[1]["sellerName"], &listings[0]["sellerName"]), (&shown, &Value::Null));
        assert_eq!(of(&block(catalogue::one(&db, &own)).unwrap().unwrap())["sellerName"], shown);
        assert_eq!(of(&block(catalogue::creator(&db, &seller, None)).unwrap().json)["sellerName"], shown);
        assert_eq!(of(&query(&db, &[("sort", "price_asc")]).json)[1]["sellerName"], shown);
        was = shown;
    }
}

#[test]
fn reputation_appears_with_the_first_closed_escrow_and_rounds_half_up() {
    let (db, ids) = market();
    let read = || serde_json::from_str::<Value>(&block(catalogue::one(&db, &ids[0])).unwrap().unwrap()).unwrap();
    assert!(read().get("sellerReputation").is_none());
    for (withdrawn, refunded, score) in
        [(0_i64, 1_i64, 0), (1, 0, 100), (1, 2, 33), (2, 1, 67), (1, 7, 13), (199, 1, 100)]
    {
        let set: Write = sql::write!("UPDATE sellers SET withdrawn = ?1, refunded = ?2", withdrawn, refunded);
        block(db.execute(set)).unwrap();
        assert_eq!(read()["sellerReputation"], json!({"score": score, "basis": withdrawn + refunded}));
    }
}

#[test]
fn a_filter_by_reputation_includes_exactly_the_sellers_who_show_that_score() {
    let (db, _) = market();
    for (withdrawn, refunded, score) in [(189_i64, 11_i64, 95), (1, 2, 33), (2, 1, 67), (0, 1, 0), (1, 0, 100)] {
        let set: Write = sql::write!("UPDATE sellers SET withdrawn = ?1, refunded = ?2", withdrawn, refunded);
        block(db.execute(set)).unwrap();
        let shown = block(catalogue::seller(&db, &SELLER.parse().unwrap())).unwrap().seller_reputation.unwrap().score;
        assert_eq!(shown, score);
        for (min, found) in [(score, 3), (score + 1, 0)] {
            let filter = Filter { min_reputation: Some(min), ..Filter::default() };
            assert_eq!(titles(&block(catalogue::page(&db, &filter)).unwrap().json).len(), found, "{score} of {min}");
        }
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
fn a_search_finds_words_in_every_script_form_and_category() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let offers = [
        ("春の桜ポスター生成提示词", None),
        ("Pricing for a studio", Some("Landing Page")),
        ("Ledger dashboards, animated", Some("Fintech")),
        ("Привет Café", None),
        ("Portada del e\u{301}xito", None),
        ("โปสเตอร์ดอกซากุระ", None),
    ];
    for (number, (title, category)) in (0..).zip(offers) {
        put(&db, number, &offer(title, 1_000_000, &["instant"], category));
    }
    let found = |text: &str| {
        let page = query(&db, &[("q", text)]);
        (titles(&page.json).into_iter().map(|title| title.chars().take(4).collect()).collect(), page.some_words)
    };
    let all = |text: &str, title: &str| assert_eq!(found(text), (vec![title.to_owned()], false), "{text}");
    for text in ["桜", "ポスター", "提示词", "桜 提示词", "生成", "春の"] {
        all(text, "春の桜ポ");
    }
    for text in ["landing page", "landing pages", "Landing", "studios", "pric", "pricing studio landi"] {
        all(text, "Pric");
    }
    for text in ["fintech", "dashboard", "animations", "animate", "ledgers dashb"] {
        all(text, "Ledg");
    }
    for text in ["привет", "ПРИВЕТ", "прив", "cafe", "CAFÉ", "cafe\u{301}"] {
        all(text, "Прив");
    }
    for text in ["éxito", "e\u{301}xito", "exito"] {
        all(text, "Port");
    }
    all("ซากุระ", "โปสเ");
    let some = |text: &str, title: &str| assert_eq!(found(text), (vec![title.to_owned()], true), "{text}");
    for text in ["landign", "lading pages", "fintehc", "fntech", "dashbord", "ledgre zebra", "nowhere fintech"] {
        some(text, if text.starts_with("la") { "Pric" } else { "Ledg" });
    }
    assert_eq!(found("zebra"), (vec![], false));
    // The listing with more of the words comes first.
    assert_eq!(
        titles(&query(&db, &[("q", "ledger animated studio")]).json).first().unwrap(),
        "Ledger dashboards, animated"
    );
    // Filters also apply to listings with some of the words.
    let narrowed = query(&db, &[("q", "ledger studio"), ("category", "Landing Page")]);
    assert_eq!(
        (titles(&narrowed.json).as_slice(), narrowed.some_words),
        (["Pricing for a studio".to_owned()].as_slice(), true)
    );
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
    for number in 0..23_u16 {
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
fn reputation_order_breaks_ties_by_the_newest_listing() {
    let (db, _) = market();
    let seller = |number: i64, title: &str| {
        let sql = "INSERT INTO listings (id, card, title, description, price_lovelace, seller_address, instant, protected, \
            content_hash, content_bytes, created_at_ms) SELECT ?1, json_object('id', ?1, 'title', ?1), ?1, '', 1000000, ?2, 1, \
            0, printf('%064d', 1), 1, 1";
        block(db.execute::<()>(sql::write!(sql, title, format!("seller {number}")))).unwrap();
    };
    for (number, title) in [(1, "a"), (2, "b"), (1, "c"), (3, "d"), (2, "e")] {
        seller(number, title);
    }
    let scores = "UPDATE sellers SET withdrawn = 1, refunded = (address = 'seller 3') WHERE address <> ?1";
    block(db.execute::<()>(sql::write!(scores, SELLER))).unwrap();
    let expected = ["e", "b", "c", "a", "d", "Calm landing", "Ledger dashboard", "Aurora hero"];
    let mut seen = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut pairs = vec![("sort", "reputation"), ("limit", "1")];
        pairs.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let page = query(&db, &pairs);
        seen.extend(titles(&page.json));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, expected);
    assert_eq!(titles(&query(&db, &[("sort", "reputation"), ("category", "Hero")]).json), ["Aurora hero"]);
    assert_eq!(
        titles(&query(&db, &[("sort", "reputation"), ("q", "a")]).json),
        ["a", "Calm landing", "Ledger dashboard", "Aurora hero"]
    );
    let least = Filter { min_reputation: Some(60), limit: Some(3), ..Filter::default() };
    let page = block(catalogue::page(&db, &least)).unwrap();
    assert_eq!(titles(&page.json), ["e", "c", "b"]);
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
        assert_eq!(error.field.as_deref(), Some(name));
    }
    assert_eq!(Filter::from_query([(Cow::Borrowed("utm_source"), Cow::Borrowed("x"))]), Ok(None));
}

#[test]
fn a_signed_offer_sent_twice_makes_one_listing_and_a_changed_one_is_refused() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let listing = offer("Once", 1_000_000, &["instant"], None);
    let store = |number: u16, listing: &NewListing| store(&db, number, listing, Some("digest"), Quota::default(), NOW);
    let first = store(1, &listing);
    assert_eq!(store(2, &listing), first);
    let mut changed = listing;
    changed.title = "Twice".into();
    assert_eq!(store(3, &changed), Stored::OfferChanged);
    assert_eq!(titles(&all(&db).json), ["Once"]);
}

#[test]
fn a_creators_page_shows_only_their_listings() {
    let (db, _) = market();
    let page: Value =
        serde_json::from_str(&block(catalogue::creator(&db, &SELLER.parse().unwrap(), None)).unwrap().json).unwrap();
    assert_eq!(page["listings"].as_array().unwrap().len(), 3);
    assert_eq!((&page["address"], &page["sales"]), (&json!(SELLER), &json!(0)));
    assert!(page.get("sellerReputation").is_none());
}

#[test]
fn terms_are_those_of_the_offer() {
    let (db, ids) = market();
    let terms = block(db.fetch(catalogue::terms(&ids[1]))).unwrap().unwrap();
    assert_eq!(terms.modes, [DeliveryMode::Instant, DeliveryMode::Protected]);
    assert_eq!(terms.price_lovelace.get(), 7_000_000);
}

#[test]
fn one_change_of_a_sellers_figures_is_one_new_version() {
    let (db, ids) = market();
    let version = || version(&db);
    let before = version();
    purchase(&db, &ids[1], 1, "FundsLocked");
    assert_eq!(version(), before + 1);
    block(db.execute::<()>(sql::write!("UPDATE purchases SET status = 'ResultSubmitted'"))).unwrap();
    assert_eq!(version(), before + 1, "nothing of it is shown");
    block(db.execute::<()>(sql::write!("UPDATE purchases SET status = 'refunded'"))).unwrap();
    assert_eq!(version(), before + 2);
    block(db.execute::<()>(sql::write!("DELETE FROM purchases"))).unwrap();
    assert_eq!(version(), before + 3);
}

#[test]
fn a_large_catalogue_shows_its_newest_and_where_to_go_on() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    for number in 0..1_003_u16 {
        put(&db, number, &offer(&format!("n{number}"), 1_000_000, &["instant"], None));
    }
    let shown = all(&db);
    let mut seen = titles(&shown.json);
    assert_eq!((seen.len(), seen[0].as_str()), (1_000, "n1002"));
    let next = shown.next.unwrap();
    let rest = query(&db, &[("cursor", &next)]);
    seen.extend(titles(&rest.json));
    assert_eq!(seen, (0..1_003).rev().map(|number| format!("n{number}")).collect::<Vec<_>>());
    assert_eq!(rest.next, None);

    let page = |after| block(catalogue::creator(&db, &SELLER.parse().unwrap(), after)).unwrap();
    let shown = page(None);
    let whole: Value = serde_json::from_str(&shown.json).unwrap();
    assert_eq!(whole["listings"].as_array().unwrap().len(), 1_000);
    let rest = page(Some(shown.next.unwrap().parse().unwrap()));
    let whole: Value = serde_json::from_str(&rest.json).unwrap();
    assert_eq!((whole["listings"].as_array().unwrap().len(), rest.next), (3, None));
}

#[test]
fn the_whole_catalogue_takes_at_most_two_megabytes() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    for number in 0..400_u16 {
        let mut large = offer(&format!("n{number}"), 1_000_000, &["instant"], None);
        large.description = "\u{1d11e}".repeat(2_000);
        put(&db, number, &large);
    }
    let shown = all(&db);
    assert!((1_900_000..=2_000_001).contains(&shown.json.len()), "{}", shown.json.len());
    let first = titles(&shown.json).len();
    let rest = query(&db, &[("cursor", &shown.next.unwrap())]);
    assert_eq!(titles(&rest.json)[0], format!("n{}", 399 - first));
}

#[test]
fn a_listing_hidden_by_the_operator_is_not_listed_and_stays_readable_to_its_buyers() {
    let (db, ids) = market();
    let before = version(&db);
    block(db.execute::<()>(sql::write!("UPDATE listings SET hidden_at_ms = ?1 WHERE id = ?2", NOW, ids[1].as_str())))
        .unwrap();
    assert_eq!(version(&db), before + 1);
    assert_eq!(titles(&all(&db).json), ["Calm landing", "Aurora hero"]);
    assert_eq!(titles(&query(&db, &[("q", "ledger")]).json), [""; 0]);
    assert_eq!(block(catalogue::one(&db, &ids[1])).unwrap(), None);
    let page = block(catalogue::creator(&db, &SELLER.parse().unwrap(), None)).unwrap();
    assert!(!page.json.contains("Ledger dashboard"));
    let terms: catalogue::ListingTerms = block(db.fetch(catalogue::terms(&ids[1]))).unwrap().unwrap();
    assert!(terms.hidden);
    block(db.execute::<()>(sql::write!("UPDATE listings SET hidden_at_ms = NULL"))).unwrap();
    assert_eq!(titles(&all(&db).json).len(), 3);
}

#[test]
fn the_same_offer_in_a_session_is_one_listing_for_a_day() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let store = |number, listing: &NewListing, now| store(&db, number, listing, None, Quota::default(), now);
    let listing = offer("Once", 1_000_000, &["instant"], None);
    let first = store(1, &listing, NOW);
    assert_eq!(store(2, &listing, NOW + 1), first);
    assert_eq!(store(3, &listing, NOW + DAY - 1), first);
    assert_ne!(store(4, &listing, NOW + DAY), first);
    let mut other = listing.clone();
    other.description = "in other words".into();
    assert_ne!(store(5, &other, NOW + DAY), first);
    assert_eq!((count(&db, "listings"), count(&db, "contents")), ("3".into(), "1".into()));
}

#[test]
fn a_seller_stores_no_more_than_the_quota() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let listing = |number: u16| offer(&format!("n{number}"), 1_000_000, &["instant"], None);
    let bytes = u64::try_from(listing(1).content.len()).unwrap();
    let store = |number: u16, quota| store(&db, number, &listing(number), None, quota, NOW);
    let three = Quota { listings: 3, bytes: 1_000, ..Quota::default() };
    for number in 1..=3 {
        assert!(matches!(store(number, three), Stored::Listing { .. }));
    }
    assert_eq!(store(4, three), Stored::QuotaExceeded(QuotaExceeded::Listings(3)));
    assert!(matches!(store(3, three), Stored::Listing { .. }), "what is there is found");
    let full = Quota { listings: 10, bytes: 4 * bytes - 1, ..Quota::default() };
    assert_eq!(store(4, full), Stored::QuotaExceeded(QuotaExceeded::Bytes(4 * bytes - 1)));
    assert!(matches!(store(4, Quota { bytes: 4 * bytes, ..full }), Stored::Listing { .. }));
    assert_eq!((count(&db, "listings"), count(&db, "contents")), ("4".into(), "4".into()));
}

/// A database that lets another offer in between reading and inserting.
struct Interleaved<'a>(&'a Sqlite, std::cell::Cell<bool>);

impl Database for Interleaved<'_> {
    async fn run_statements(&self, statements: &[&sql::Statement]) -> Result<Vec<String>, sql::DatabaseError> {
        if statements.iter().any(|it| it.sql.starts_with("INSERT INTO listings")) && !self.1.replace(true) {
            let rival = offer("rival", 1_000_000, &["instant"], None);
            assert!(matches!(store(self.0, 99, &rival, None, Quota::default(), NOW), Stored::Listing { .. }));
        }
        self.0.run_statements(statements).await
    }
}

#[test]
fn two_concurrent_offers_for_the_last_free_listing_make_one() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let between = Interleaved(&db, std::cell::Cell::new(false));
    let one = Quota { listings: 1, ..Quota::default() };
    let listing = offer("mine", 1_000_000, &["instant"], None);
    let (contents, mine) = (InDatabase(&db), id(1));
    let stored = catalogue::store(&between, &contents, &mine, &listing, Source::default(), one, NOW);
    assert_eq!(block(stored).unwrap(), Stored::QuotaExceeded(QuotaExceeded::Listings(1)));
    assert_eq!(titles(&all(&db).json), ["rival"]);
}

/// Bytes of an offer that count towards the daily quota.
fn taken(db: &Sqlite) -> u64 {
    let bytes = sql::read!("SELECT coalesce(sum(bytes), 0) FROM daily_listing_usage WHERE network = ''");
    block(db.fetch::<One<u64>>(bytes)).unwrap().0
}

#[test]
fn all_sellers_together_stay_within_the_daily_quota_and_a_refused_offer_writes_nothing() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let listing = |number: u16| offer(&format!("n{number}"), 1_000_000, &["instant"], None);
    assert!(matches!(store(&db, 1, &listing(1), None, Quota::default(), NOW), Stored::Listing { .. }));
    let one = taken(&db);
    assert!(one > u64::try_from(listing(1).content.len()).unwrap(), "what is said of it counts, too: {one}");
    let two = Quota { daily_bytes: 2 * one, ..Quota::default() };
    let store = |number, now| store(&db, number, &listing(number), None, two, now);
    assert!(matches!(store(1, NOW), Stored::Listing { .. }), "what is there takes nothing");
    assert_eq!(taken(&db), one);
    assert!(matches!(store(2, NOW), Stored::Listing { .. }));
    let retry_after_s = (DAY - NOW % DAY) / 1_000;
    assert_eq!(store(3, NOW), Stored::QuotaExceeded(QuotaExceeded::Today { bytes: 2 * one, retry_after_s }));
    assert_eq!((count(&db, "listings"), count(&db, "contents")), ("2".into(), "2".into()));
    assert!(matches!(store(3, NOW + retry_after_s * 1_000), Stored::Listing { .. }), "the next day has room");
}

#[test]
fn one_network_stays_within_its_share_of_the_daily_quota() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let quota = Quota { daily_bytes: 320 << 20, ..Quota::default() };
    let offer = |number: u16, network: &str| {
        let body = json!({
            "title": number.to_string(), "description": "long", "priceLovelace": "1000000", "sellerAddress": SELLER,
            "modes": ["instant"], "content": number.to_string().repeat(200_000),
        });
        let listing = NewListing::read(body.to_string().as_bytes(), None).unwrap();
        let source = Source { proof: None, network };
        let stored = block(catalogue::store(&db, &InDatabase(&db), &id(number), &listing, source, quota, NOW));
        matches!(stored.unwrap(), Stored::Listing { .. })
    };
    let listed = (10_000..10_010).filter(|number| offer(*number, "203.0.113.1")).count();
    assert_eq!((listed, count(&db, "contents")), (5, "5".into()), "a MB each, of five");
    assert!(offer(10_020, "203.0.113.2"), "another network has room");
    assert!(!offer(10_021, "203.0.113.1"));
    let all: u64 = taken(&db);
    let kept: Vec<String> = block(db.fetch(sql::read!("SELECT network FROM daily_listing_usage"))).unwrap();
    assert!(all > 6_000_000 && !kept.concat().contains("203.0"), "{all} {kept:?}");
}

/// A database with an event between the first and the second batch.
struct Meanwhile<'a, F>(&'a Sqlite, std::cell::Cell<u32>, F);

impl<F: Fn()> Database for Meanwhile<'_, F> {
    async fn run_statements(&self, statements: &[&sql::Statement]) -> Result<Vec<String>, sql::DatabaseError> {
        if self.1.replace(self.1.get() + 1) == 1 {
            self.2();
        }
        self.0.run_statements(statements).await
    }
}

#[test]
fn two_concurrent_offers_for_the_last_bytes_of_a_day_make_one_listing_and_one_content() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    put(&db, 9, &offer("some", 1_000_000, &["instant"], None));
    let last = Quota { daily_bytes: 2 * taken(&db) + 100, ..Quota::default() };
    let between = Meanwhile(&db, std::cell::Cell::new(0), || {
        let late = offer("late", 1_000_000, &["instant"], None);
        let outcome = store(&db, 2, &late, None, last, NOW);
        assert!(matches!(outcome, Stored::QuotaExceeded(QuotaExceeded::Today { .. })), "{outcome:?}");
    });
    let (contents, mine) = (InDatabase(&between), offer("mine", 1_000_000, &["instant"], None));
    let stored = block(catalogue::store(&between, &contents, &id(1), &mine, Source::default(), last, NOW)).unwrap();
    assert!(matches!(stored, Stored::Listing { .. }), "{stored:?}");
    assert_eq!((titles(&all(&db).json), count(&db, "contents")), (vec!["mine".into(), "some".into()], "2".into()));
}

#[test]
fn two_concurrent_equal_offers_make_one_listing() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let between = Interleaved(&db, std::cell::Cell::new(false));
    let listing = offer("rival", 1_000_000, &["instant"], None);
    let (contents, mine) = (InDatabase(&db), id(1));
    let stored = catalogue::store(&between, &contents, &mine, &listing, Source::default(), Quota::default(), NOW);
    assert!(matches!(block(stored).unwrap(), Stored::Listing { id: made, .. } if made == id(99).as_str()));
    assert_eq!(titles(&all(&db).json), ["rival"]);
}

#[test]
fn a_count_covers_all_pages_of_a_filter() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    for number in 0..30_u16 {
        let modes: &[&str] = if number % 3 == 0 { &["instant", "protected"] } else { &["instant"] };
        put(&db, number, &offer(&format!("hero number {number}"), 5_000_000 + u64::from(number), modes, Some("Hero")));
    }
    for (query, counted) in [
        ("", 30),
        ("category=Hero", 30),
        ("category=AI", 0),
        ("mode=protected", 10),
        ("q=number", 30),
        ("q=number+7", 1),
        ("q=%21", 0),
        ("limit=5&sort=price_asc", 30),
    ] {
        let pairs = url::form_urlencoded::parse(query.as_bytes());
        let filter = Filter::from_query(pairs).unwrap().unwrap_or_default();
        assert_eq!(block(catalogue::count(&db, &filter)).unwrap(), counted, "{query}");
        let (mut seen, mut filter) = (0, filter);
        loop {
            let page = block(catalogue::page(&db, &filter)).unwrap();
            seen += serde_json::from_str::<Vec<Value>>(&page.json).unwrap().len();
            let Some(next) = page.next else { break };
            filter.cursor = Some(next.parse().unwrap());
        }
        assert_eq!(seen, usize::try_from(counted).unwrap(), "{query}");
    }
}

#[test]
fn a_seller_takes_a_listing_off_and_back_but_cannot_restore_one_hidden_by_the_operator() {
    use catalogue::take_off::{self, NotChanged, SaleState};
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let listing = put(&db, 1, &offer("aurora", 5_000_000, &["instant"], None));
    let (seller, other) = (SELLER.parse().unwrap(), OTHER.parse().unwrap());
    let change = |by, wanted| block(take_off::change(&db, &listing, by, wanted, None, NOW + 1)).unwrap();
    let shown = || block(catalogue::one(&db, &listing)).unwrap().is_some();
    let bought = || block(db.fetch(take_off::bought(&listing))).unwrap().map(|bought| bought.for_sale);
    let off = || block(db.fetch(take_off::taken_off(SELLER))).unwrap().len();
    let operator = |to: &str| {
        block(db.execute::<()>(sql::write!(
            format!("UPDATE listings SET hidden_at_ms = {to} WHERE id = ?1"),
            listing.as_str()
        )))
        .unwrap();
    };
    assert_eq!(change(&other, SaleState::OffSale), Err(NotChanged::NotYours));
    assert!(shown());
    for _ in 0..2 {
        assert_eq!(change(&seller, SaleState::OffSale), Ok(()));
        assert_eq!((shown(), bought(), off()), (false, Some(false), 1));
    }
    assert_eq!(change(&other, SaleState::ForSale), Err(NotChanged::NotYours));
    for _ in 0..2 {
        assert_eq!(change(&seller, SaleState::ForSale), Ok(()));
        assert_eq!((shown(), bought(), off()), (true, Some(true), 0));
    }
    // Hidden by an operator, while on or off sale, at another time and at the same.
    for (first, hidden) in [(SaleState::ForSale, NOW + 2), (SaleState::OffSale, NOW + 2), (SaleState::OffSale, NOW + 1)]
    {
        operator("NULL");
        assert_eq!(change(&seller, first), Ok(()));
        operator(&hidden.to_string());
        for wanted in [SaleState::OffSale, SaleState::ForSale] {
            assert_eq!(change(&seller, wanted), Err(NotChanged::Unknown), "{first:?}");
        }
        assert_eq!((shown(), bought(), off()), (false, None, 0), "{first:?}");
    }
}

#[test]
pub fn an_edit_keeps_former_prices_payable_and_loses_no_concurrent_edit() {
    use market::{
        catalogue::edit::{self, NotEdited},
        listing::changes::Changes,
    };
    let (db, ids) = market();
    let (id, seller) = (&ids[0], SELLER.parse().unwrap());
    let change = |body: Value, now| {
        let changes = Changes::read(body.to_string().as_bytes()).unwrap();
        block(edit::edit(&db, &InDatabase(&db), id, &seller, &changes, now)).unwrap()
    };
    let payable = |now: u64| -> Vec<u64> {
        let mut prices = block(db.fetch(edit::payable_prices(id, now))).unwrap();
        prices.sort();
        prices.into_iter().map(cardano::Lovelace::get).collect()
    };
    let before = block(catalogue::one(&db, id)).unwrap().unwrap();
    let changed =
        change(json!({ "title": "Renamed", "description": "Soft", "priceLovelace": "3000000", "category": "" }), NOW)
            .unwrap();
    let (before, changed): (Value, Value) =
        (serde_json::from_str(&before).unwrap(), serde_json::from_str(&changed).unwrap());
    assert_eq!((changed["title"].as_str(), changed["priceLovelace"].as_str()), (Some("Renamed"), Some("3000000")));
    assert_eq!(changed["category"], Value::Null);
    for kept in ["id", "contentHash", "createdAt", "modes", "sales", "sellerAddress"] {
        assert_eq!(changed[kept], before[kept], "{kept}");
    }
    assert_eq!(titles(&query(&db, &[("q", "renamed")]).json), ["Renamed"]);
    assert!(query(&db, &[("q", "aurora")]).json == "[]" && query(&db, &[("category", "Hero")]).json == "[]");
    assert_eq!(payable(NOW), [1_000_000, 3_000_000]);
    assert_eq!(payable(NOW + 3_600_000), [3_000_000]);
    // As many as may be payable at one time; a title needs no room.
    for price in 4..=12 {
        change(json!({ "priceLovelace": format!("{price}000000") }), NOW).unwrap();
    }
    assert_eq!(change(json!({ "priceLovelace": "20000000" }), NOW), Err(NotEdited::TooOften));
    change(json!({ "title": "Again" }), NOW).unwrap();
    change(json!({ "priceLovelace": "20000000" }), NOW + 3_600_000).unwrap();
    assert_eq!(payable(NOW + 3_600_000), [12_000_000, 20_000_000]);
    let other: cardano::Address = OTHER.parse().unwrap();
    let title = Changes::read(b"{\"title\":\"Mine\"}").unwrap();
    assert_eq!(block(edit::edit(&db, &InDatabase(&db), id, &other, &title, NOW)).unwrap(), Err(NotEdited::NotYours));
}

#[test]
fn a_sellers_proof_changes_the_state_of_a_listing_once() {
    use catalogue::take_off::{self, NotChanged, SaleState};
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let listing = put(&db, 1, &offer("aurora", 5_000_000, &["instant"], None));
    let seller = SELLER.parse().unwrap();
    let change =
        |wanted, signed_at| block(take_off::change(&db, &listing, &seller, wanted, signed_at, NOW + 10)).unwrap();
    let (off, on) = (SaleState::OffSale, SaleState::ForSale);
    // A proof is used up even if the listing had the state already.
    for signed in [NOW + 1, NOW + 3] {
        assert_eq!(change(on, Some(signed)), Ok(()));
        assert_eq!(change(off, Some(signed)), Ok(()), "a proof for another purpose");
        for replayed in [signed, NOW] {
            assert_eq!(change(on, Some(replayed)), Err(NotChanged::ProofUsed));
            assert_eq!(change(off, Some(replayed)), Ok(()), "it is off sale");
        }
    }
    assert_eq!(change(on, None), Ok(()), "in a session");
    assert_eq!(change(off, Some(NOW + 3)), Err(NotChanged::ProofUsed));
    assert_eq!(change(off, Some(NOW + 4)), Ok(()));
}
