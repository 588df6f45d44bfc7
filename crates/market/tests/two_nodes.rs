//! Two nodes on two forks, of which now one answers a call, and now the other.

#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use std::cell::RefCell;

use crate::support::{entry, one, person, sales::Sales};
use cardano::TxHash;
use escrow::Action;
use outbox::EntryState;
use sql::{Database, DatabaseError, Rows, Statement, sqlite::Sqlite};

/// Once.
type Once<'a> = RefCell<Option<Box<dyn FnOnce() + 'a>>>;

/// A database behind which something happens when an entry is read by its id, and another thing when a step is written.
struct Between<'a> {
    db: &'a Sqlite,
    after_entry: Once<'a>,
    after_step: Once<'a>,
}

impl Database for Between<'_> {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Rows>, DatabaseError> {
        let has = |part: &str| statements.iter().any(|statement| statement.sql.contains(part));
        let (entry, step) = (has("FROM outbox WHERE tx_id = ?1"), has("INSERT INTO escrow_steps"));
        let done = self.db.batch(statements).await;
        let what = if step { &self.after_step } else { &self.after_entry };
        if (step || entry)
            && let Some(what) = what.borrow_mut().take()
        {
            what();
        }
        done
    }
}

/// The newest action of this kind on a purchase.
fn action(sales: &Sales, purchase: &TxHash, kind: &str) -> TxHash {
    let sql = format!(
        "SELECT tx_id FROM outbox JOIN outbox_purchases USING (tx_id) WHERE purchase_id = '{purchase}' \
         AND kind = '{kind}' ORDER BY created_at_ms DESC LIMIT 1"
    );
    one(&sales.db, &sql).parse().unwrap()
}

#[test]
fn a_result_in_no_block_that_a_node_of_another_fork_shows_is_asked_for_again() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(1);
    // Two blocks of one height: one with the result, and the one that stays, with the buyer's own step; another on top.
    sales.ledger.mine();
    let theirs = sales.ledger.blocks.borrow().clone();
    assert!(sales.ledger.inclusion(&action(&sales, &lock, "result")).is_some());
    sales.ledger.roll_back(1, 0);
    sales.does(&lock, Action::SetRefundRequested);
    (0..2).for_each(|_| sales.ledger.mine());
    let stays = sales.ledger.blocks.borrow().clone();
    sales.tick_on(&Between {
        db: &sales.db,
        after_entry: RefCell::new(Some(Box::new(|| drop(sales.ledger.blocks.replace(theirs))))),
        after_step: RefCell::new(Some(Box::new(|| drop(sales.ledger.blocks.replace(stays))))),
    });
    let reports = sales.ticks(45);
    assert_eq!(sales.status(&lock), "Disputed", "{:#?}", reports.last());
}

#[test]
fn a_block_that_one_node_shows_while_another_shows_what_replaced_it_is_asked_for_again() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(1);
    sales.ledger.mine();
    let posted = action(&sales, &lock, "result");
    sales.tick();
    assert_eq!(
        (sales.status(&lock).as_str(), entry(&sales.db, &posted).state),
        ("ResultSubmitted", EntryState::Included)
    );
    let theirs = sales.ledger.blocks.borrow().clone();
    sales.ledger.roll_back(1, 0);
    sales.does(&lock, Action::SetRefundRequested);
    (0..2).for_each(|_| sales.ledger.mine());
    // The newest block comes from a node of the chain that stays; that the one before is there, from one that has it still.
    sales.ledger.beside(theirs, 0b100);
    sales.tick();
    sales.ledger.agree();
    let reports = sales.ticks(50);
    assert_eq!(sales.status(&lock), "Disputed", "{:#?}", reports.last());
}

/// A database that loses one answer where an action that was overtaken is given up.
struct LosesOne<'a>(&'a Sqlite, RefCell<bool>);

impl Database for LosesOne<'_> {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Rows>, DatabaseError> {
        let gives_up = statements.iter().any(|statement| statement.sql.contains("SET state = 'refused'"));
        if gives_up && !self.1.replace(true) {
            return Err(DatabaseError("Network connection lost.".into()));
        }
        self.0.batch(statements).await
    }
}

#[test]
fn an_action_that_was_overtaken_is_given_up_by_the_next_tick_where_one_could_not() {
    let sales = Sales::new();
    let locks: Vec<TxHash> = (11..16).map(|number| sales.sell_another(&person(number))).collect();
    sales.ledger.mine();
    sales.tick();
    sales.ledger.mempool.borrow_mut().clear();
    sales.does(&locks[0], Action::SetRefundRequested);
    let loses = LosesOne(&sales.db, RefCell::new(false));
    for _ in 0..3 {
        (0..3).for_each(|_| sales.ledger.mine());
        sales.tick_on(&loses);
    }
    assert!(*loses.1.borrow(), "an answer was lost");
    assert!(locks.iter().skip(1).all(|lock| sales.status(lock) == "ResultSubmitted"));
}
