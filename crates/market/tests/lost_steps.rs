//! Steps that the address's history passed over are found by the escrows' own outputs, whatever state these are in.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    reason = "test"
)]
mod support;

use std::cell::Cell;

use cardano::keys::SigningKey;
use escrow::Action;
use market::{
    chain_state::Lead,
    contents::InDatabase,
    watch::{ArbiterClient, Dispute, Holder, Keys, Report, Watch},
};
use sql::{Database, DatabaseError, Rows, Statement, sqlite::Sqlite};
use support::{
    block,
    ledger::CALLS,
    one, person,
    sales::{Sales, creator},
};

/// The platform, with an arbiter that says that it has paid.
struct Paid<'a>(&'a Sales);
impl Keys for Paid<'_> {
    fn seller(&self) -> Option<&SigningKey> {
        self.0.platform.seller()
    }
    fn buyer(&self, holder: &Holder) -> Option<SigningKey> {
        self.0.platform.buyer(holder)
    }
}
impl ArbiterClient for Paid<'_> {
    async fn resolve(&self, _: &Dispute<'_>) -> Result<String, String> {
        Ok("paid".into())
    }
}

/// A database that is away for the first batches that write steps.
struct Away<'a>(&'a Sqlite, Cell<u32>);
impl Database for Away<'_> {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Rows>, DatabaseError> {
        if self.1.get() > 0 && statements.iter().any(|it| it.sql.starts_with("INSERT INTO escrow_steps")) {
            self.1.set(self.1.get() - 1);
            return Err(DatabaseError("D1_ERROR: Network connection lost.".into()));
        }
        self.0.batch(statements).await
    }
}

fn tick(sales: &Sales, database: &impl Database) -> Report {
    sales.ledger.calls.set(0);
    let watch = Watch {
        database,
        chain: &sales.ledger,
        contents: &InDatabase(database),
        deployment: Some(&sales.deployment),
        sells: true,
        lead: Lead::Bounded,
        now: sales.now(),
        calls_left: &|| CALLS.saturating_sub(sales.ledger.calls.get()),
    };
    block(watch.tick(&Paid(sales), &Paid(sales))).unwrap()
}

fn paid_to_creator(sales: &Sales) -> usize {
    let blocks = sales.ledger.blocks.borrow();
    blocks
        .iter()
        .flat_map(|b| &b.txs)
        .flat_map(|tx| &tx.utxos.made)
        .filter(|made| made.address == creator().to_string())
        .count()
}

/// A dispute whose time has come, and its settlement in a block.
fn settled() -> (Sales, cardano::TxHash) {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    for _ in 0..3 {
        sales.ledger.mine();
        tick(&sales, &sales.db);
    }
    sales.does(&lock, Action::SetRefundRequested);
    sales.ledger.mine();
    tick(&sales, &sales.db);
    assert_eq!(sales.status(&lock), "Disputed");
    sales.until(47);
    tick(&sales, &sales.db);
    sales.settles(&lock);
    sales.ledger.mine();
    (sales, lock)
}

fn ends(failures: u32) {
    let (sales, lock) = settled();
    tick(&sales, &Away(&sales.db, Cell::new(failures)));
    let mut asked = 0;
    for _ in 0..24 * 60 {
        for _ in 0..3 {
            sales.ledger.mine()
        }
        let report = tick(&sales, &sales.db);
        asked += report.acted.iter().filter(|it| it.starts_with("asked")).count();
        if sales.status(&lock) == "withdrawn" && paid_to_creator(&sales) == 1 {
            return;
        }
    }
    panic!(
        "a day later: {}, asked the arbiter {asked} times, creator paid {} times, {}",
        sales.status(&lock),
        paid_to_creator(&sales),
        one(&sales.db, "SELECT json_object('due', creator_due, 'utxo', utxo) FROM escrows")
    );
}

#[test]
fn a_settlement_is_found_where_the_database_was_away_once() {
    ends(1)
}

#[test]
fn a_settlement_is_found_where_the_database_was_away_twice() {
    ends(2)
}

/// The control: the same of a step of another kind is found by its output.
#[test]
fn a_dispute_is_found_where_the_database_was_away_twice() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    for _ in 0..3 {
        sales.ledger.mine();
        tick(&sales, &sales.db);
    }
    sales.does(&lock, Action::SetRefundRequested);
    sales.ledger.mine();
    tick(&sales, &Away(&sales.db, Cell::new(2)));
    assert_eq!(sales.status(&lock), "ResultSubmitted");
    for _ in 0..60 {
        sales.ledger.mine();
        sales.ledger.mine();
        sales.ledger.mine();
        tick(&sales, &sales.db);
        if sales.status(&lock) == "Disputed" {
            return;
        }
    }
    panic!("{}", sales.status(&lock));
}

/// The buyer disputes twice and the arbiter settles while no tick runs; the second dispute is not handed out once.
#[test]
fn a_settlement_behind_a_step_that_was_not_handed_out_once_is_found() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    for _ in 0..3 {
        sales.ledger.mine();
        tick(&sales, &sales.db);
    }
    sales.does(&lock, Action::SetRefundRequested);
    sales.ledger.mine();
    tick(&sales, &sales.db);
    sales.until(20);
    tick(&sales, &sales.db);
    let again = sales.does(&lock, Action::SetRefundRequested);
    sales.until(47);
    sales.settles(&lock);
    sales.ledger.mine();
    sales.ledger.withheld.borrow_mut().insert(again);
    tick(&sales, &sales.db);
    sales.ledger.withheld.borrow_mut().clear();
    for _ in 0..24 * 60 {
        for _ in 0..3 {
            sales.ledger.mine()
        }
        tick(&sales, &sales.db);
        if sales.status(&lock) == "withdrawn" && paid_to_creator(&sales) == 1 {
            return;
        }
    }
    panic!("a day later: {}, creator paid {} times", sales.status(&lock), paid_to_creator(&sales));
}
