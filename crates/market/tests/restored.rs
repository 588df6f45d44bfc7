//! A database that was restored from an older backup while the chain went on. No owned listing is paid again, no
//! creator is paid twice, and every escrow reaches its end.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use std::cell::Cell;

use api_types::Bought;
use cardano::{Lovelace, TxHash, keys::SigningKey};
use escrow::Action;
use market::{
    DeliveryMode, ListingId,
    account::Account,
    catalogue::{self, ListingTerms, Quota, Stored, edit::edit},
    checkout::{BuyError, Order, Unavailable},
    contents::InDatabase,
    listing::{NewListing, changes::Changes},
    watch::number::{NumberStore, TickNumber, begin},
};
use serde_json::json;
use sql::{Database, sqlite::Sqlite};
use x402_cardano::{
    escrow::TransferMethod,
    method::{DefaultMethod, EscrowMethod, PaymentMethod},
    wire::ConfirmationPolicy,
};

use crate::support::{
    NOON, SELLER, block, checkout, fresh_escrow, one, person,
    provider::Meanwhile,
    sales::{PRICE, Sales, creator, output, run},
    sign_up,
};

/// SQL that `make restore` runs after it has restored a backup.
const MARK: &str = include_str!("../src/watch/restored.sql");
/// Minutes after which a restored service reads the chain.
const SETTLED: u64 = 8;

/// A service wallet with 50 ADA, in a market with sales.
struct Buyer {
    account: Account,
    key: SigningKey,
}

impl Buyer {
    fn of(sales: &Sales) -> Self {
        let (account, key) = sign_up(&sales.db, 1, NOON);
        sales.puts(&[output(account.wallet_address.to_string(), Lovelace::from_ada(50), None)]);
        sales.ledger.mine();
        Self { account, key }
    }

    /// Buys a listing, with a block before each poll.
    fn buys(&self, sales: &Sales, listing: &ListingId) -> Result<Bought, BuyError> {
        self.orders(sales, listing, DeliveryMode::Instant)
    }

    /// Locks the price of a listing, and leaves the result to the watcher.
    fn locks(&self, sales: &Sales, listing: &ListingId) -> TxHash {
        match self.orders(sales, listing, DeliveryMode::Protected) {
            Err(BuyError::NoResult(lock)) => lock,
            other => panic!("{other:?}"),
        }
    }

    fn orders(&self, sales: &Sales, listing: &ListingId, mode: DeliveryMode) -> Result<Bought, BuyError> {
        sales.ledger.calls.set(0);
        let instant = DefaultMethod::new(api_types::NETWORK, ConfirmationPolicy::IN_BLOCK).unwrap();
        let (deployment, seller) = (sales.deployment.clone(), sales.platform.seller.clone());
        let protected = EscrowMethod::new(
            api_types::NETWORK,
            deployment,
            seller,
            TransferMethod::Escrow,
            ConfirmationPolicy::IN_BLOCK,
        )
        .unwrap();
        let terms = terms_of(&sales.db, listing);
        let order = Order { account: &self.account, key: &self.key, terms: &terms, mode, agreed: None, nonce: [7; 32] };
        let (mines, contents) = (|| sales.ledger.mine(), InDatabase(&sales.db));
        let sleep = Meanwhile(&mines);
        let options: [(_, &dyn PaymentMethod); 2] =
            [(DeliveryMode::Instant, &instant), (DeliveryMode::Protected, &protected)];
        let checkout = checkout(&sales.db, &sales.ledger, &sleep, &contents, &options, sales.now());
        let bought = block(checkout.buy(&order));
        sales.ledger.calls.set(0);
        bought
    }
}

fn terms_of(db: &Sqlite, listing: &ListingId) -> ListingTerms {
    block(db.fetch(catalogue::terms(listing))).unwrap().unwrap()
}

/// A listing that is sold with protection.
fn list_protected(sales: &Sales, number: u8) -> ListingId {
    let body = json!({
        "title": format!("Listing {number}"), "description": "for sale", "priceLovelace": PRICE.to_string(),
        "sellerAddress": SELLER, "modes": ["instant", "protected"], "content": format!("content {number}"),
    });
    let id = ListingId::new(NOON + u64::from(number), [number; 10]);
    let offer = NewListing::read(body.to_string().as_bytes(), None).unwrap();
    let contents = InDatabase(&sales.db);
    let stored =
        catalogue::store(&sales.db, &contents, &id, &offer, catalogue::Source::default(), Quota::default(), NOON);
    assert!(matches!(block(stored).unwrap(), Stored::Listing { .. }));
    id
}

/// Replaces the database by this backup.
fn restore(sales: &mut Sales, backup: Sqlite) {
    sales.db = backup;
    for statement in MARK.split_inclusive(";\n") {
        run(sales, statement);
    }
    run(sales, &format!("UPDATE restored SET at_ms = {}", sales.now()));
}

/// Runs ticks and blocks for so many minutes.
fn pass(sales: &Sales, minutes: u64) -> Vec<market::watch::Report> {
    sales.until(sales.now().saturating_sub(NOON) / 60_000 + minutes);
    sales.ticks(3)
}

/// Number of wallets to be read, and whether the platform's is to be added.
fn unread(sales: &Sales) -> String {
    let sql = "SELECT json_array((SELECT count(*) FROM unread_wallets), platform IS NULL) FROM restored";
    one(&sales.db, sql)
}

fn payments_to_creator(sales: &Sales) -> usize {
    let to = creator().to_string();
    sales.ledger.unspent().into_iter().filter(|utxo| utxo.address == to).count()
}

#[test]
fn a_purchase_of_a_service_wallet_since_the_backup_is_not_paid_for_again() {
    let mut sales = Sales::new();
    let buyer = Buyer::of(&sales);
    sales.ticks(1);
    let backup = sales.db.copy().unwrap();
    let bought = buyer.buys(&sales, &sales.listing).unwrap();
    assert!(!bought.already_owned);
    restore(&mut sales, backup);

    let refused = buyer.buys(&sales, &sales.listing);
    assert_eq!(refused, Err(BuyError::Unavailable(Unavailable::Restoring)), "before the chain is read");
    let ticks = sales.ticks(2);
    assert_eq!(unread(&sales), "[1,1]", "what was sent before may still come into a block: {ticks:#?}");
    let ticks = pass(&sales, SETTLED);
    let again = buyer.buys(&sales, &sales.listing).unwrap();
    assert!(again.already_owned, "{ticks:#?}");
    assert_eq!(again.content, bought.content);
    assert_eq!(payments_to_creator(&sales), 1);
    let owner = one(&sales.db, "SELECT owner FROM payments");
    assert_eq!(owner, buyer.account.owner, "it counts for the limits of its day");
    let figures = "SELECT CAST(sales AS TEXT) FROM listings WHERE sales > 0";
    assert_eq!(one(&sales.db, figures), "1", "and for the listing");
    assert_eq!(unread(&sales), "[0,0]", "nothing is left to read");
}

#[test]
fn an_account_that_the_backup_lacks_does_not_pay_again_when_it_is_made_anew() {
    let mut sales = Sales::new();
    sales.ticks(1);
    let backup = sales.db.copy().unwrap();
    let buyer = Buyer::of(&sales);
    let bought = buyer.buys(&sales, &sales.listing).unwrap();
    restore(&mut sales, backup);
    pass(&sales, SETTLED);
    let (account, key) = sign_up(&sales.db, 1, NOON);
    let buyer = Buyer { account, key };
    let refused = buyer.buys(&sales, &sales.listing);
    assert_eq!(refused, Err(BuyError::Unavailable(Unavailable::Restoring)));
    let ticks = sales.ticks(1);
    let again = buyer.buys(&sales, &sales.listing).unwrap();
    assert!(again.already_owned, "{ticks:#?}");
    assert_eq!((again.content, payments_to_creator(&sales)), (bought.content, 1));
}

/// A backup, followed by a lock from a service wallet.
fn locked_since_a_backup() -> (Sales, Sqlite, TxHash) {
    let sales = Sales::new();
    let listing = list_protected(&sales, 50);
    let buyer = Buyer::of(&sales);
    sales.ticks(1);
    let backup = sales.db.copy().unwrap();
    let lock = buyer.locks(&sales, &listing);
    (sales, backup, lock)
}

#[test]
fn a_lock_of_a_service_wallet_since_the_backup_reaches_its_end() {
    let (mut sales, backup, lock) = locked_since_a_backup();
    restore(&mut sales, backup);
    let ticks = pass(&sales, SETTLED);
    assert_eq!(sales.status(&lock), "ResultSubmitted", "{ticks:#?}");
    let ticks = pass(&sales, 30);
    assert_eq!(sales.status(&lock), "withdrawn", "{ticks:#?}");
    assert_eq!(payments_to_creator(&sales), 1);
}

#[test]
fn a_lock_is_recorded_at_the_price_that_was_paid_whatever_the_listing_costs_since() {
    let (mut sales, backup, lock) = locked_since_a_backup();
    restore(&mut sales, backup);
    let (listing, seller) = (ListingId::new(NOON + 50, [50; 10]), SELLER.parse().unwrap());
    let changes = Changes::read(br#"{"priceLovelace":"90000000"}"#).unwrap();
    block(edit(&sales.db, &InDatabase(&sales.db), &listing, &seller, &changes, sales.now())).unwrap().unwrap();
    let ticks = pass(&sales, SETTLED);
    assert_eq!(one(&sales.db, "SELECT CAST(price_lovelace AS TEXT) FROM purchases"), PRICE.to_string(), "{ticks:#?}");
    let spent = block(sales.db.fetch(market::limits::spent_today(&one(&sales.db, "SELECT owner FROM payments"), NOON)));
    assert_eq!(spent.unwrap().0.get(), PRICE);
    let ticks = pass(&sales, 30);
    assert_eq!((sales.status(&lock).as_str(), payments_to_creator(&sales)), ("withdrawn", 1), "{ticks:#?}");
}

#[test]
fn a_lock_of_a_service_wallet_that_ended_since_the_backup_is_a_purchase_with_its_timeline() {
    let (mut sales, backup, lock) = locked_since_a_backup();
    sales.ticks(3);
    pass(&sales, 32);
    assert_eq!(sales.status(&lock), "withdrawn");
    restore(&mut sales, backup);
    let ticks = pass(&sales, SETTLED);
    assert_eq!(sales.status(&lock), "withdrawn", "{ticks:#?}");
    assert_eq!(one(&sales.db, "SELECT CAST(count(*) AS TEXT) FROM escrow_steps"), "3");
    assert_eq!(payments_to_creator(&sales), 1);
}

#[test]
pub fn transactions_that_others_send_to_a_wallet_do_not_keep_it_unread() {
    let mut sales = Sales::new();
    let buyer = Buyer::of(&sales);
    sales.ticks(1);
    let backup = sales.db.copy().unwrap();
    let bought = buyer.buys(&sales, &sales.listing).unwrap();
    restore(&mut sales, backup);
    let dust = || sales.puts(&[output(buyer.account.wallet_address.to_string(), Lovelace::from_ada(2), None)]);
    for _ in 0..120 {
        dust();
    }
    sales.until(SETTLED + 1);
    for _ in 0..8 {
        dust();
        sales.ticks(1);
    }
    assert_eq!(unread(&sales), "[0,0]");
    assert_eq!(buyer.buys(&sales, &sales.listing).unwrap().content, bought.content);
    assert_eq!(payments_to_creator(&sales), 1);
}

#[test]
fn a_creator_who_was_paid_since_the_backup_is_not_paid_again() {
    let mut sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(3);
    sales.does(&lock, Action::SetRefundRequested);
    sales.ticks(2);
    sales.until(50);
    sales.settles(&lock);
    sales.ledger.mine();
    let backup = sales.db.copy().unwrap();
    let ticks = sales.ticks(3);
    assert_eq!(payments_to_creator(&sales), 1, "{ticks:#?}");
    restore(&mut sales, backup);
    let ticks = [sales.ticks(2), pass(&sales, SETTLED), sales.ticks(3)].concat();
    assert_eq!(payments_to_creator(&sales), 1, "{ticks:#?}");
    assert_eq!(sales.status(&lock), "withdrawn");
    assert_eq!(one(&sales.db, "SELECT state FROM outbox WHERE kind = 'payout'"), "included");
}

#[test]
fn a_lock_that_no_wallet_of_the_service_signed_makes_no_purchase_and_raises_an_alarm() {
    let sales = Sales::new();
    let lock = sales.puts(&[sales.escrow_of(&fresh_escrow(7))]);
    for statement in MARK.split_inclusive(";\n") {
        run(&sales, statement);
    }
    let alarms: Vec<String> =
        pass(&sales, SETTLED).into_iter().flat_map(|report| report.alarms).map(|alarm| alarm.message).collect();
    let cried: Vec<&String> = alarms.iter().filter(|alarm| alarm.contains(&lock.to_string())).collect();
    assert_eq!(cried.len(), 1, "{alarms:?}");
    assert!(cried[0].contains("names this seller, but belongs to no known purchase"), "{cried:?}");
    assert_eq!(one(&sales.db, "SELECT CAST(count(*) AS TEXT) FROM purchases"), "0");
}

/// A number store in memory.
#[derive(Default)]
struct Store(Cell<Option<u64>>);

impl NumberStore for Store {
    async fn read(&self) -> Result<Option<u64>, String> {
        Ok(self.0.get())
    }

    async fn write(&self, number: u64) -> Result<(), String> {
        self.0.set(Some(number));
        Ok(())
    }
}

#[test]
pub fn a_database_behind_the_stored_tick_number_freezes_its_wallets_by_itself() {
    let sales = Sales::new();
    let store = Store::default();
    let next = || block(begin(&sales.db, &store, sales.now())).unwrap();
    let unread = || one(&sales.db, "SELECT CAST(count(*) AS TEXT) FROM unread_wallets");
    let buyer = Buyer::of(&sales);
    for number in 1..=5 {
        assert_eq!(next(), TickNumber { number, notes: vec![] });
    }
    assert_eq!(store.0.get(), Some(4), "every second number is stored");
    run(&sales, "UPDATE last_tick SET number = 4");
    assert_eq!(next().number, 5, "one tick was forgotten, and the store has not more");
    assert_eq!(unread(), "0");
    let version = || block(sales.db.fetch(market::state::read())).unwrap().0.version;
    let before = version();
    run(&sales, "UPDATE last_tick SET number = 2");
    let begun = next();
    // Versions count changes from 1. None that an isolate may have of the forgotten time is reached again.
    assert!(before < 1_000_000 && version() > NOON.cast_signed(), "{before} {}", version());
    assert_eq!((begun.number, begun.notes.len()), (5, 1), "{begun:?}");
    assert_eq!(unread(), "1", "{}", buyer.account.wallet_address);
    assert_eq!(next(), TickNumber { number: 6, notes: vec![] }, "noticed once");
}
