//! Bounds on the cost of rows that are never deleted, for clients and the watcher, in steps of SQLite's virtual
//! machine.

#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::print_stdout,
    reason = "tests fail by panicking, and say what they measured"
)]

use std::cell::RefCell;

use crate::support::{NOON, SELLER, block, given, list, list_by, paying_for, person, sales::Sales, sign_up, token};
use cardano::Lovelace;
use market::{account, claim::Claim, payment, purchase};
use sql::{Database, Write, sqlite::Sqlite};

/// Number of sales, each with a payment, a result and a collection.
const SALES: u32 = 50_000;
/// Maximum steps of a query: far below one per sale.
const MOST: u64 = 10_000;

/// A market with many sales by one seller, each to another buyer, with actions by the platform's wallet.
fn long_past(db: &Sqlite, listing: &str, platform: &str) {
    let many = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1) ";
    let run = |sql: &str, params: Vec<sql::Param>| {
        block(db.execute::<()>(Write::new(sql.to_owned(), params))).unwrap();
    };
    for (kind, wallet, mark) in
        [("payment", None, "a"), ("result", Some(platform), "b"), ("collect", Some(platform), "c")]
    {
        let entries = format!(
            "INSERT INTO outbox (tx_id, kind, purpose, wallet, cbor, state, valid_until_slot, attempts, provenance, \
               attempted_at_ms, created_at_ms, block_hash, block_height, block_slot, block_time_ms) {many} \
             SELECT '{mark}' || printf('%063d', n), '{kind}', '{kind}:' || n, ?2, '80', 'included', n, 1, 'ours', n, n, \
               printf('%064d', n), n, n, n FROM n"
        );
        run(&entries, vec![SALES.into(), wallet.into()]);
    }
    let payments = format!(
        "INSERT INTO payments (tx_id, listing_id, mode, payer, payer_key, amount_lovelace, creator_lovelace, header_digest) \
         {many} SELECT 'a' || printf('%063d', n), ?2, 'protected', 'buyer' || n, printf('%056d', n), 10000000, 0, 'x' FROM n"
    );
    run(&payments, vec![SALES.into(), listing.into()]);
    let purchases = format!(
        "INSERT INTO purchases (id, listing_id, mode, seller_address, buyer_address, buyer_key, price_lovelace, creator_lovelace, \
           status, bought_at_ms) {many} SELECT 'a' || printf('%063d', n), ?2, 'protected', ?3, 'buyer' || n, printf('%056d', n), 10000000, 0, 'withdrawn', n \
         FROM n"
    );
    run(&purchases, vec![SALES.into(), listing.into(), SELLER.into()]);
}

#[test]
fn no_query_costs_more_as_history_grows() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let listing = list(&db, 1, 10_000_000);
    let (account, key) = sign_up(&db, 5, NOON);
    let platform = person(2).enterprise_address();
    long_past(&db, listing.as_str(), &platform.to_string());
    let told = RefCell::new(Vec::new());
    let cost = |what: &str, ask: &dyn Fn()| {
        let before = db.steps();
        ask();
        let steps = db.steps() - before;
        println!("{what}: {steps} steps");
        told.borrow_mut().push((what.to_owned(), steps));
    };
    fn run<B: sql::Batch>(db: &Sqlite, batch: B) {
        block(db.batch(batch)).unwrap();
    }
    let buyers = account.keys();
    cost("the platform's wallet", &|| run(&db, outbox::snapshot(&platform, SALES.into(), NOON)));
    cost("what is open of the platform's", &|| run(&db, outbox::open(&platform, outbox::Kind::Withdrawal)));
    cost("what is over of the platform's", &|| run(&db, outbox::overdue(&platform, SALES.into())));
    cost("a claim", &|| {
        let built =
            crate::support::payment(&account, &key, &[given(&account, 9, 50_000_000)], 10_000_000, u64::from(SALES));
        let mut paying = paying_for(&account, &listing, &built, 10_000_000);
        paying.mode = market::DeliveryMode::Protected;
        assert!(matches!(paying.claim(&db, NOON), Claim::New(_)));
    });
    cost("earlier payments", &|| run(&db, payment::unresolved(&listing, &buyers, None, NOON)));
    cost("what may be included", &|| run(&db, payment::maybe_included(&listing, &buyers)));
    cost("what is owned", &|| run(&db, payment::owned(&listing, &buyers)));
    cost("an account", &|| drop(block(account::view(&db, &token(5), Lovelace::ZERO, NOON)).unwrap()));
    cost("a buyer's page", &|| drop(block(purchase::of_buyers(&db, &buyers, None)).unwrap()));
    let seller = SELLER.parse().unwrap();
    cost("a buyer's purchases of a seller", &|| {
        drop(block(purchase::of_seller(&db, &seller, &[*person(5).enterprise_address().payment_key()])).unwrap());
    });
    let dear: Vec<_> = told.into_inner().into_iter().filter(|(_, steps)| *steps > MOST).collect();
    assert_eq!(dear, [], "dearer than {MOST} steps");
}

#[test]
fn a_claim_of_a_frequent_buyer_costs_no_more_as_history_grows() {
    let steps = |sales: u32| {
        let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
        let (listing, other) = (list(&db, 1, 10_000_000), list(&db, 2, 5_000_000));
        let (account, key) = sign_up(&db, 5, NOON);
        let payer = person(5).enterprise_address();
        let signer = payer.payment_key();
        for rows in [
            "outbox (tx_id, kind, purpose, cbor, state, valid_until_slot, attempts, provenance, attempted_at_ms, created_at_ms, \
               block_hash, block_height, block_slot, block_time_ms) \
             SELECT id, 'payment', 'payment:' || n, '80', 'included', n, 1, 'ours', n, n, id, n, n, n"
                .to_owned(),
            format!(
                "payments (tx_id, listing_id, mode, payer, payer_key, amount_lovelace, creator_lovelace, header_digest) \
                 SELECT id, '{other}', 'instant', '{payer}', '{signer}', 5000000, 0, 'x'"
            ),
            format!(
                "purchases (id, listing_id, mode, seller_address, buyer_address, buyer_key, price_lovelace, creator_lovelace, \
                   status, bought_at_ms) SELECT id, '{other}', 'instant', '{SELLER}', '{payer}', '{signer}', 5000000, 0, 'settled', n"
            ),
        ] {
            let many = "WITH RECURSIVE m (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM m WHERE n < ?1), \
                sold AS (SELECT n, printf('%064d', n) AS id FROM m)";
            let sql = format!("INSERT INTO {} FROM sold", rows.replacen("SELECT", &format!("{many} SELECT"), 1));
            block(db.execute::<()>(sql::write!(sql, sales))).unwrap();
        }
        let built = crate::support::payment(&account, &key, &[given(&account, 9, 50_000_000)], 10_000_000, 50_000);
        let paying =
            crate::support::Paying { payer, account: None, ..paying_for(&account, &listing, &built, 10_000_000) };
        let before = db.steps();
        assert!(matches!(paying.claim(&db, NOON), Claim::New(_)));
        db.steps() - before
    };
    let (few, many) = (steps(10), steps(10_000));
    assert!(many < 2 * few, "{few} steps, {many} after 10,000 purchases");
}

#[test]
fn a_tick_costs_no_more_as_history_grows() {
    let sales = Sales::new();
    let steps = |first: u8| -> Vec<u64> {
        let tick = |number| {
            sales.sell(&person(number));
            sales.ledger.mine();
            let before = sales.db.steps();
            assert!(!sales.tick().acted.is_empty());
            sales.db.steps() - before
        };
        (first..first + 3).map(tick).collect()
    };
    let before = steps(11);
    long_past(&sales.db, sales.listing.as_str(), &sales.platform.seller.enterprise_address().to_string());
    sales.ticks(2);
    let later = steps(14);
    println!("{before:?} steps, {later:?} after {SALES} sales");
    assert!(later.iter().max() < before.iter().max().map(|most| most + MOST).as_ref());
}

#[test]
fn the_largest_account_fits_the_bound_of_one_page() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    let (account, _) = sign_up(&db, 5, NOON);
    let listing = list_by(&db, &account.owner, 1, 10_000_000);
    let longest = "UPDATE listings SET description = ?1, card = json_set(card, '$.description', ?1)";
    block(db.execute::<()>(sql::write!(longest, "\u{1f3a8}".repeat(2_000)))).unwrap();
    let copies = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 999) \
        INSERT INTO listings (id, card, title, description, price_lovelace, seller_address, instant, protected, content_hash, \
          content_bytes, created_at_ms) \
        SELECT 'lst_' || n, card, title, description, price_lovelace, seller_address, instant, protected, content_hash, \
          content_bytes, created_at_ms FROM n, listings WHERE id = ?1";
    block(db.execute::<()>(sql::write!(copies, listing.as_str()))).unwrap();
    let shown = block(account::view(&db, &token(5), Lovelace::ZERO, NOON)).unwrap().unwrap().listings;
    let bytes = serde_json::json!(shown).to_string().len();
    assert!(bytes < 2_100_000, "{bytes} bytes");
    assert!(shown.len() > 200, "{}", shown.len());
}

#[test]
fn an_account_with_a_long_history_reads_only_the_shown_rows() {
    let steps = |bought: u32| {
        let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
        let listing = list(&db, 1, 10_000_000);
        let (account, _) = sign_up(&db, 5, NOON);
        let many = "INSERT INTO purchases (id, listing_id, mode, seller_address, buyer_address, buyer_key, price_lovelace, \
              creator_lovelace, status, bought_at_ms) \
            WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1) \
            SELECT printf('%064d', n), ?2, 'instant', ?3, ?4, ?5, 10000000, 0, 'settled', n FROM n";
        block(db.execute::<()>(sql::write!(
            many,
            bought,
            listing.as_str(),
            SELLER,
            account.owner.as_str(),
            account.keys()[1]
        )))
        .unwrap();
        let before = db.steps();
        let shown = block(account::view(&db, &token(5), Lovelace::ZERO, NOON)).unwrap().unwrap().purchases;
        assert_eq!(shown.len(), 1_000);
        db.steps() - before
    };
    let (few, many) = (steps(1_000), steps(11_000));
    println!("{few} steps where all is shown, {many} with ten thousand more");
    assert!(many - few < 50 * 10_000, "{} steps for each that is not shown", (many - few) / 10_000);
}
