//! Content of a lock that is given with its result only: whoever brings the payment has it posted.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

use std::{
    cell::{Cell, RefCell},
    pin::Pin,
};

use crate::support::{SELLER, block, entry, interrupted::Interrupted, one, person, sales::Sales};
use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::{ContentHash, TxHash, keys::Native};
use escrow::Action;
use market::{
    catalogue,
    checkout::{Checkout, Paid, PayError, Presented, Redelivered, Results, Unavailable},
    contents::InDatabase,
};
use outbox::Sleep;
use serde_json::json;
use sql::{Database, statement};

/// Who posts results, and how often they were asked.
struct Watcher<'a> {
    sales: &'a Sales,
    answers: bool,
    asked: Cell<u32>,
}

impl Results for Watcher<'_> {
    fn post<'a>(&'a self, _: &'a TxHash) -> Pin<Box<dyn Future<Output = bool> + 'a>> {
        self.asked.set(self.asked.get() + 1);
        if self.answers {
            self.sales.post_results_on(&self.sales.db).unwrap();
        }
        Box::pin(std::future::ready(self.answers))
    }
}

/// What others do while a request waits, once.
struct Meanwhile<'a>(RefCell<Option<&'a dyn Fn()>>);

impl Sleep for Meanwhile<'_> {
    async fn sleep(&self, _: u64) {
        let others = self.0.take();
        others.into_iter().for_each(|others| others());
    }
}

/// A lock in a block whose buyer was told to come back, and the header that they sent.
fn bought(results_first: bool) -> (Sales, TxHash, String) {
    let sales = Sales::new();
    sales.results_first.set(results_first);
    (0..4).for_each(|_| sales.fund(100));
    sales.ledger.evaluates_blocks.set(true);
    sales.ticks(1);
    let (lock, header) = another(&sales, 9);
    sales.ledger.mine();
    (sales, lock, header)
}

fn another(sales: &Sales, buyer: u8) -> (TxHash, String) {
    let lock = sales.sell(&person(buyer));
    let header = json!({
        "x402Version": 2,
        "accepted": {
            "scheme": "exact", "network": "cardano:preprod", "amount": "10000000", "asset": "lovelace",
            "payTo": SELLER, "maxTimeoutSeconds": 300, "extra": {},
        },
        "payload": { "transaction": STANDARD.encode(entry(&sales.db, &lock).cbor), "nonce": format!("{lock}#0") },
        "extensions": { "request-binding": { "info": { "secret": "0123456789abcdef" } } },
    });
    let header = STANDARD.encode(header.to_string());
    let digest = ContentHash::of(header.as_bytes());
    block(sales.db.run(statement!("UPDATE payments SET header_digest = ?1 WHERE tx_id = ?2", digest, lock))).unwrap();
    (lock, header)
}

/// What a request with this header gets, and how often results were asked for by it.
fn pay(sales: &Sales, header: &str, answers: bool, meanwhile: &dyn Fn()) -> (Result<Paid, PayError>, u32) {
    let watcher = Watcher { sales, answers, asked: Cell::new(0) };
    let terms = block(sales.db.run(catalogue::terms(&sales.listing))).unwrap().first_json().unwrap().unwrap();
    let paid = with(sales, &watcher, meanwhile, |checkout| {
        block(checkout.pay(&terms, &Presented::read(header, "network").unwrap(), None))
    });
    (paid, watcher.asked.get())
}

/// What the buyer gets who proves to be one.
fn comes_back(sales: &Sales, buyer: u8) -> Result<Option<Redelivered>, Unavailable> {
    let watcher = Watcher { sales, answers: true, asked: Cell::new(0) };
    let terms = block(sales.db.run(catalogue::terms(&sales.listing))).unwrap().first_json().unwrap().unwrap();
    let buyers = [person(buyer).enterprise_address().to_string()];
    with(sales, &watcher, &|| (), |checkout| block(checkout.redeliver(&terms, &buyers)))
}

type Selling<'a> = Checkout<'a, sql::sqlite::Sqlite, crate::support::ledger::Ledger, Native, Meanwhile<'a>, Stored<'a>>;
type Stored<'a> = InDatabase<'a, sql::sqlite::Sqlite>;

fn with<T>(sales: &Sales, results: &dyn Results, meanwhile: &dyn Fn(), run: impl FnOnce(&Selling<'_>) -> T) -> T {
    sales.ledger.calls.set(0);
    let checkout = Checkout {
        database: &sales.db,
        chain: &sales.ledger,
        signatures: &Native,
        sleep: &Meanwhile(RefCell::new(Some(meanwhile))),
        contents: &InDatabase(&sales.db),
        results,
        ways: &[],
        now: sales.now(),
        clock: sales.now(),
        schedule: &[],
        confirmations: 0,
        hung_up: &|| false,
    };
    run(&checkout)
}

fn results(sales: &Sales) -> String {
    one(
        &sales.db,
        "SELECT CAST(count(*) AS TEXT) FROM outbox WHERE kind = 'result' AND state IN ('submitted', 'included')",
    )
}

#[test]
fn who_brings_the_payment_has_its_result_posted_and_gets_the_content() {
    let (sales, lock, header) = bought(true);
    let (paid, asked) = pay(&sales, &header, true, &|| ());
    assert_eq!((paid.unwrap().content.as_str(), asked, results(&sales)), ("content 1", 1, "1".into()));
    let (again, _) = pay(&sales, &header, true, &|| ());
    assert!(again.is_err(), "the header opens it once: {again:?}");
    assert_eq!(comes_back(&sales, 9).unwrap().unwrap().content, "content 1");
    sales.ticks(2);
    assert_eq!(sales.status(&lock), "ResultSubmitted");
    assert_eq!(comes_back(&sales, 9).unwrap().unwrap().content, "content 1");
}

#[test]
fn nothing_is_given_while_its_buyer_keeps_the_result_out() {
    let (sales, lock, header) = bought(true);
    assert!(sales.holds_back(&lock));
    let (held, _) = pay(&sales, &header, true, &|| ());
    assert_eq!(held, Err(Unavailable::NoResult(lock).into()));
    assert_eq!(comes_back(&sales, 9), Err(Unavailable::NoResult(lock)));
    let until = sales.escrow(&lock).datum.deadlines.submit_result;
    while sales.now() < until {
        sales.ledger.mine();
        assert!(sales.holds_back(&lock));
        sales.tick();
        assert_eq!(pay(&sales, &header, true, &|| ()).0, Err(Unavailable::NoResult(lock).into()));
    }
    sales.ledger.mine();
    sales.does(&lock, Action::WithdrawRefund);
    sales.ticks(2);
    assert_eq!((sales.status(&lock).as_str(), results(&sales)), ("refunded", "0".into()));
    assert!(pay(&sales, &header, true, &|| ()).0.is_err());
    assert_eq!(comes_back(&sales, 9), Ok(None));
}

#[test]
fn who_lets_go_gets_it_by_the_same_header() {
    let (sales, lock, header) = bought(true);
    assert!(sales.holds_back(&lock));
    assert!(pay(&sales, &header, true, &|| ()).0.is_err());
    sales.ticks(3);
    assert_eq!(pay(&sales, &header, true, &|| ()).0.unwrap().content, "content 1");
}

#[test]
fn where_nobody_answers_it_comes_with_the_next_tick() {
    let (sales, lock, header) = bought(true);
    let (paid, asked) = pay(&sales, &header, false, &|| ());
    assert_eq!((paid, asked), (Err(Unavailable::NoResult(lock).into()), 1));
    sales.tick();
    let (paid, asked) = pay(&sales, &header, false, &|| ());
    assert_eq!((paid.unwrap().content.as_str(), asked), ("content 1", 0));
}

#[test]
fn what_two_runs_and_a_tick_do_at_once_is_done_once() {
    let (sales, first, header) = bought(true);
    let mut all = vec![(first, header)];
    all.extend((0..8).map(|number| another(&sales, 20 + number)));
    sales.ledger.mine();
    for (lock, _) in &all {
        sales.includes(lock);
    }
    // One has read what is due, and writes nothing down yet, while the others run from end to end.
    let meanwhile = || {
        let late = Interrupted::before(&sales.db, "INSERT INTO outbox ", || drop(sales.tick()));
        sales.post_results_on(&late).unwrap();
    };
    sales.post_results_on(&Interrupted::before(&sales.db, "INSERT INTO outbox ", meanwhile)).unwrap();
    // So many go together, and content waits for their block.
    assert!(all.iter().any(|(_, header)| pay(&sales, header, true, &|| ()).0.is_err()));
    sales.ledger.mine();
    sales.tick();
    for (lock, header) in &all {
        assert_eq!(pay(&sales, header, true, &|| ()).0.unwrap().content, "content 1");
        let live = format!(
            "SELECT CAST(count(*) AS TEXT) FROM outbox_purchases op JOIN outbox o ON o.tx_id = op.tx_id \
             WHERE op.purchase_id = '{lock}' AND o.state IN ('claimed', 'submitted', 'included')"
        );
        assert_eq!(one(&sales.db, &live), "1");
        assert_eq!(
            one(&sales.db, &format!("SELECT CAST(failures AS TEXT) FROM escrows WHERE purchase_id = '{lock}'")),
            "0"
        );
    }
    sales.ticks(3);
    for (lock, _) in &all {
        assert_eq!(sales.status(lock), "ResultSubmitted");
    }
}

#[test]
fn what_the_wallet_has_too_little_for_waits_for_the_next_block_and_its_tick() {
    let (sales, _, first) = bought(true);
    let (_, second) = another(&sales, 20);
    sales.ledger.mine();
    let platform = sales.platform.seller.enterprise_address().to_string();
    let kept = Cell::new(None);
    sales.lose(|utxo| utxo.address == platform && kept.replace(kept.get().or(Some(utxo.reference))).is_some());
    // Who runs scripts knows of no change before it is in a block.
    let both = [&first, &second].map(|header| (header, pay(&sales, header, true, &|| ()).0));
    let (given, waiting): (Vec<_>, _) = both.into_iter().partition(|(_, paid)| paid.is_ok());
    assert_eq!((given.len(), waiting.len()), (1, 1), "{given:?} {waiting:?}");
    sales.ledger.mine();
    sales.tick();
    for (header, _) in waiting {
        assert_eq!(pay(&sales, header, true, &|| ()).0.unwrap().content, "content 1");
    }
}

#[test]
fn where_no_watcher_said_so_it_is_given_at_once() {
    let (sales, _, header) = bought(false);
    let (paid, asked) = pay(&sales, &header, true, &|| ());
    assert_eq!((paid.unwrap().content.as_str(), asked, results(&sales)), ("content 1", 0, "0".into()));
}

#[test]
fn who_comes_back_while_it_is_held_has_nobody_asked() {
    let (sales, lock, header) = bought(true);
    assert!(sales.holds_back(&lock));
    let (_, asked) = pay(&sales, &header, true, &|| ());
    assert_eq!(asked, 1, "it was refused");
    for _ in 0..3 {
        let (held, asked) = pay(&sales, &header, true, &|| ());
        assert_eq!((held, asked), (Err(Unavailable::NoResult(lock).into()), 0));
    }
}

#[test]
fn a_refusal_that_two_runs_meet_counts_once() {
    let (sales, lock, _) = bought(true);
    sales.includes(&lock);
    assert!(sales.holds_back(&lock));
    let meanwhile = || drop(sales.post_results_on(&sales.db).unwrap());
    sales.post_results_on(&Interrupted::before(&sales.db, "UPDATE escrows SET next_at_ms", meanwhile)).unwrap();
    assert_eq!(one(&sales.db, "SELECT CAST(failures AS TEXT) FROM escrows"), "1");
}

/// Its result was kept out until the time for it was over; the last step is one that a block has, so that what failed before is
/// forgotten.
fn held_to_the_end() -> (Sales, TxHash, String) {
    let (sales, lock, header) = bought(true);
    sales.includes(&lock);
    let until = sales.escrow(&lock).datum.deadlines.submit_result;
    while sales.now() < until {
        assert!(sales.holds_back(&lock));
        sales.tick();
        sales.ledger.mine();
    }
    sales.does(&lock, Action::SetRefundRequested);
    sales.ticks(2);
    assert_eq!(one(&sales.db, "SELECT CAST(failures AS TEXT) FROM escrows"), "0");
    (sales, lock, header)
}

#[test]
fn what_is_refunded_while_a_request_waits_is_not_given() {
    let (sales, lock, header) = held_to_the_end();
    sales.does(&lock, Action::WithdrawRefund);
    sales.ledger.mine();
    let tick = || drop(sales.tick());
    assert_eq!(pay(&sales, &header, true, &tick).0, Err(Unavailable::NoResult(lock).into()));
    assert_eq!(sales.status(&lock), "refunded");
    assert_eq!(pay(&sales, &header, true, &|| ()).0, Err(PayError::Refunded));
}

#[test]
fn what_is_refunded_between_two_reads_is_not_given() {
    let (sales, lock, header) = bought(true);
    sales.includes(&lock);
    while sales.now() < sales.escrow(&lock).datum.deadlines.submit_result {
        assert!(sales.holds_back(&lock));
        sales.tick();
        sales.ledger.mine();
    }
    sales.does(&lock, Action::WithdrawRefund);
    sales.ledger.mine();
    let gone = Cell::new(0);
    let terms = block(sales.db.run(catalogue::terms(&sales.listing))).unwrap().first_json().unwrap().unwrap();
    // Whenever the payment is read: the first time to take it up, the last to give what it bought.
    for read in 1..=4 {
        let (sales, gone) = (&sales, &gone);
        let db = At(&sales.db, gone, read, &|| drop(sales.tick()));
        gone.set(0);
        let checkout = Checkout {
            database: &db,
            chain: &sales.ledger,
            signatures: &Native,
            sleep: &Meanwhile(RefCell::new(None)),
            contents: &InDatabase(&sales.db),
            results: &(),
            ways: &[],
            now: sales.now(),
            clock: sales.now(),
            schedule: &[],
            confirmations: 0,
            hung_up: &|| false,
        };
        let given = block(checkout.pay(&terms, &Presented::read(&header, "network").unwrap(), None));
        assert!(given.is_err(), "{read}: {given:?}");
    }
    assert_eq!(sales.status(&lock), "refunded");
}

/// A database before whose so-manieth reading of a payment something happens.
struct At<'a>(&'a sql::sqlite::Sqlite, &'a Cell<u32>, u32, &'a dyn Fn());

impl Database for At<'_> {
    async fn batch(&self, statements: Vec<sql::Statement>) -> Result<Vec<sql::Rows>, sql::DatabaseError> {
        if statements.iter().any(|statement| statement.sql.contains("FROM payments p JOIN outbox")) {
            self.1.set(self.1.get() + 1);
            if self.1.get() == self.2 {
                (self.3)();
            }
        }
        self.0.batch(statements).await
    }
}

#[test]
fn a_result_that_a_node_takes_when_there_is_no_time_for_another_gives_nothing_before_a_block_has_it() {
    for in_time in [true, false] {
        let (sales, lock, header) = bought(true);
        sales.includes(&lock);
        let end = sales.escrow(&lock).datum.deadlines.submit_result;
        // What a result may wait for a block, and what is left then for another.
        let last = end - (180 + 480) * 1_000;
        while sales.now() + 60_000 < if in_time { last } else { end - 120_000 } {
            sales.ledger.mine();
        }
        let report = sales.tick();
        assert_eq!((report.acted.len(), results(&sales)), (1, "1".into()), "{report:?}");
        let given = pay(&sales, &header, true, &|| ()).0;
        if in_time {
            assert_eq!(given.unwrap().content, "content 1");
        } else {
            assert_eq!(given, Err(Unavailable::NoResult(lock).into()), "no block has it yet");
            sales.ledger.mine();
            sales.tick();
            assert_eq!(pay(&sales, &header, true, &|| ()).0.unwrap().content, "content 1");
        }
    }
}

#[test]
fn a_lock_whose_time_is_over_costs_nobody_a_call_however_often_it_is_asked_for() {
    let (sales, _, header) = held_to_the_end();
    block(sales.db.run(statement!("UPDATE escrows SET next_at_ms = 0"))).unwrap();
    sales.ledger.calls.set(0);
    for _ in 0..20 {
        assert!(pay(&sales, &header, true, &|| ()).0.is_err());
        sales.ledger.mine();
        assert_eq!(sales.post_results_on(&sales.db).unwrap().calls, 0);
    }
}

#[test]
fn however_many_ask_at_once_results_are_posted_by_one() {
    let (sales, lock, _) = bought(true);
    sales.includes(&lock);
    let others = Cell::new(0);
    let meanwhile =
        || (0..100).for_each(|_| others.set(others.get() + sales.post_results_on(&sales.db).unwrap().calls));
    let report = sales.post_results_on(&Interrupted::before(&sales.db, "INSERT INTO outbox ", meanwhile)).unwrap();
    assert_eq!((report.acted.len(), others.get()), (1, 0));
    // One that was cut off has had its time after a while, and nobody's clock keeps the others out for longer.
    for (buyer, wait) in [(40, 20_000), (41, 3_600_000)] {
        let (other, _) = another(&sales, buyer);
        sales.ledger.mine();
        let until = sales.now() + wait;
        sales.includes(&other);
        block(sales.db.run(statement!("UPDATE chain_reading SET results_from_ms = ?1", until))).unwrap();
        let early = sales.post_results_on(&sales.db).unwrap().acted.len();
        (0..2).for_each(|_| sales.ledger.mine());
        let late = sales.post_results_on(&sales.db).unwrap().acted.len();
        assert_eq!(early + late, 1);
    }
}

#[test]
fn a_result_that_goes_with_one_whose_time_is_nearly_over_gives_nothing_before_a_block_has_it() {
    let sales = Sales::new();
    sales.results_first.set(true);
    (0..4).for_each(|_| sales.fund(100));
    sales.ledger.evaluates_blocks.set(true);
    sales.ticks(1);
    // Its result is held back until its time is nearly over; then a block has a step of its buyer's: nothing failed since.
    sales.issued.set(crate::support::NOON + 6_000);
    let (old, _) = another(&sales, 9);
    sales.ledger.mine();
    let end = sales.escrow(&old).datum.deadlines.submit_result;
    while sales.now() + 66_000 < end {
        assert!(sales.holds_back(&old));
        sales.tick();
        sales.ledger.mine();
    }
    sales.does(&old, Action::SetRefundRequested);
    sales.ledger.mine();
    sales.tick();
    assert_eq!((sales.status(&old).as_str(), results(&sales)), ("RefundRequested", "0".into()));
    sales.issued.set(sales.now());
    let (fresh, header) = another(&sales, 10);
    sales.ledger.mine();
    assert_eq!(end - sales.now(), 26_000);
    let (given, _) = pay(&sales, &header, true, &|| ());
    // No block for half a minute, as for every fourth: what ends before has had none.
    sales.ledger.no_block();
    sales.ledger.mine();
    sales.ticks(2);
    assert!(given.is_err() || sales.status(&fresh) == "ResultSubmitted", "its buyer could take the money back as well");
}
