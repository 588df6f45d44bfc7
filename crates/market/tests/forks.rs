//! Nodes on two forks, and rollbacks during a tick: whichever node answers, no sale is lost and no step is performed
//! twice.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use std::cell::RefCell;

use crate::support::{
    block, checkout, entry, interrupted::Interrupted, ledger::Block, one, out_of_step, person, provider::Meanwhile,
    sales::Sales,
};
use cardano::{ScriptHash, TxHash};
use escrow::Action;
use market::{catalogue, contents::InDatabase};
use outbox::EntryState;
use sql::{Database, DatabaseError, Statement, sqlite::Sqlite};

/// The newest entry of this kind that acts on a purchase.
fn acting(sales: &Sales, purchase: &TxHash, kind: &str) -> TxHash {
    let sql = format!(
        "SELECT tx_id FROM outbox JOIN outbox_purchases USING (tx_id) WHERE purchase_id = '{purchase}' \
         AND kind = '{kind}' ORDER BY created_at_ms DESC LIMIT 1"
    );
    one(&sales.db, &sql).parse().unwrap()
}

/// A tick in which a node on another fork answers after the first batch with such a statement.
fn ticks_beside(sales: &Sales, at: &str, theirs: Vec<Block>, stays: Vec<Block>) {
    let other_node = || drop(sales.ledger.blocks.replace(theirs));
    sales.tick_on(&Interrupted::after(&sales.db, at, other_node));
    sales.ledger.blocks.replace(stays);
}

/// Two blocks of the same height: one with the result, and the final one, with the buyer's own step.
struct Forked {
    sales: Sales,
    lock: TxHash,
    theirs: Vec<Block>,
    stays: Vec<Block>,
}

impl Forked {
    /// `blocks` of the final fork.
    fn of(blocks: u32) -> Self {
        let sales = Sales::new();
        let lock = sales.sell(&person(11));
        sales.ticks(1);
        sales.ledger.mine();
        let theirs = sales.ledger.blocks.borrow().clone();
        assert!(sales.ledger.inclusion(&acting(&sales, &lock, "result")).is_some());
        sales.ledger.roll_back(1, 0);
        sales.does(&lock, Action::SetRefundRequested);
        (0..blocks).for_each(|_| sales.ledger.mine());
        let stays = sales.ledger.blocks.borrow().clone();
        Self { sales, lock, theirs, stays }
    }
}

#[test]
fn a_result_that_one_node_shows_in_a_block_of_another_fork_hides_no_step_of_its_buyers() {
    let Forked { sales, lock, theirs, stays } = Forked::of(1);
    ticks_beside(&sales, "INSERT INTO chain_blocks", theirs, stays);
    let reports = sales.ticks(30);
    assert_eq!(sales.status(&lock), "Disputed", "{:#?}", reports.last());
}

#[test]
fn a_result_that_a_slow_tick_found_before_a_rollback_is_posted_again() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(1);
    sales.ledger.mine();
    let posted = acting(&sales, &lock, "result");
    // The block was rolled back, and no node has the result any more.
    let meanwhile = || {
        sales.ledger.roll_back(1, 0);
        sales.ledger.mine();
        sales.tick();
    };
    sales.tick_on(&Interrupted::before(&sales.db, "UPDATE outbox SET state = 'included'", meanwhile));
    let reports = sales.ticks(30);
    assert_eq!(sales.status(&lock), "ResultSubmitted", "{:?} {:#?}", entry(&sales.db, &posted).state, reports.last());
}

#[test]
fn a_result_that_one_node_shows_in_a_block_of_another_fork_is_posted_again() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(1);
    sales.ledger.mine();
    let theirs = sales.ledger.blocks.borrow().clone();
    sales.ledger.roll_back(1, 0);
    sales.ledger.mine();
    let stays = sales.ledger.blocks.borrow().clone();
    ticks_beside(&sales, "INSERT INTO chain_blocks", theirs, stays);
    let reports = sales.ticks(30);
    let posted = acting(&sales, &lock, "result");
    assert!(sales.ledger.inclusion(&posted).is_some(), "{} {:#?}", sales.status(&lock), reports.last());
}

#[test]
pub fn a_step_that_one_node_shows_in_a_block_of_another_fork_freezes_no_sale() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(1);
    // The buyer acts first in the removed block, our result in the final one.
    let posted = sales.ledger.mempool.borrow().clone();
    sales.ledger.mempool.borrow_mut().clear();
    sales.does(&lock, Action::SetRefundRequested);
    sales.ledger.mine();
    let theirs = sales.ledger.blocks.borrow().clone();
    sales.ledger.roll_back(1, 0);
    posted.into_iter().for_each(|tx| assert!(sales.ledger.add_to_mempool(tx)));
    sales.ledger.mine();
    let stays = sales.ledger.blocks.borrow().clone();
    ticks_beside(&sales, "INSERT INTO chain_blocks", theirs, stays);
    sales.until(32);
    let reports = sales.ticks(8);
    assert_eq!(sales.status(&lock), "withdrawn", "{:#?}", reports.last());
}

#[test]
fn a_lagging_node_removes_no_sale_from_the_watcher() {
    let sales = Sales::new();
    sales.ticks(1);
    let behind = sales.ledger.blocks.borrow().clone();
    let lock = sales.sell(&person(11));
    // As long as a lock must be valid.
    let until = sales.ledger.tip().slot + 31;
    block(sales.db.execute::<()>(sql::write!("UPDATE outbox SET valid_until_slot = ?2 WHERE tx_id = ?1", lock, until)))
        .unwrap();
    sales.ledger.mine();
    sales.ticks(1);
    assert_eq!(sales.status(&lock), "FundsLocked");
    sales.ledger.mine();
    for _ in 0..2 {
        sales.ledger.mine();
        let all = sales.ledger.blocks.borrow().clone();
        let other_node = || drop(sales.ledger.blocks.replace(behind.clone()));
        sales.tick_on(&Interrupted::after(&sales.db, "UPDATE outbox SET recheck = 1", other_node));
        sales.ledger.blocks.replace(all);
    }
    sales.until(32);
    let reports = sales.ticks(8);
    assert_eq!(sales.status(&lock), "withdrawn", "{:?} {:#?}", entry(&sales.db, &lock).state, reports.last());
}

#[test]
fn a_sale_goes_on_as_it_is_while_another_deployment_takes_over() {
    let mut sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(1);
    sales.deployment.script_hash = ScriptHash::new([0xdd; 28]);
    let reports = sales.ticks(2);
    assert_eq!(sales.status(&lock), "ResultSubmitted", "{reports:#?}");
}

/// The buyer's step is in a fork of this depth, from when the tick reaches this statement until it ends, and never in
/// the final chain. Returns the sale's state after the tick, and two hours later.
fn shown_once(depth: usize, at: &'static str, action: Action) -> (String, TxHash, Sales) {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    if action == Action::AuthorizeWithdrawal {
        sales.ticks(3);
        sales.does(&lock, Action::SetRefundRequested);
        sales.ticks(2);
        sales.until(8);
        sales.ticks(1);
        assert_eq!(sales.status(&lock), "Disputed");
    } else {
        sales.ledger.mine();
        sales.tick();
    }
    let ours = std::mem::take(&mut *sales.ledger.mempool.borrow_mut());
    sales.does(&lock, action);
    (0..depth).for_each(|_| sales.ledger.mine());
    let theirs = sales.ledger.blocks.borrow().clone();
    sales.ledger.roll_back(depth, 0);
    sales.ledger.mempool.borrow_mut().clear();
    for tx in ours {
        sales.ledger.add_to_mempool(tx);
    }
    (0..=depth).for_each(|_| sales.ledger.mine());
    let stays = sales.ledger.blocks.borrow().clone();
    ticks_beside(&sales, at, theirs, stays);
    let told = sales.status(&lock);
    for _ in 0..120 {
        (0..3).for_each(|_| sales.ledger.mine());
        sales.tick();
    }
    (told, lock, sales)
}

#[test]
#[ignore = "takes long: make load runs it"]
fn a_step_of_another_fork_is_taken_back() {
    for depth in [1, 2, 3] {
        for at in ["INSERT INTO chain_blocks", "UPDATE outbox SET recheck = 1"] {
            let (told, lock, sales) = shown_once(depth, at, Action::SetRefundRequested);
            assert_eq!(told, "RefundRequested", "{depth} deep, {at}: the tick believed it");
            assert_eq!(sales.status(&lock), "withdrawn", "{depth} deep, {at}: the result was posted, and collected");
            assert!(sales.open().is_empty());
            let (told, lock, sales) = shown_once(depth, at, Action::AuthorizeWithdrawal);
            assert_eq!(told, "withdrawing", "{depth} deep, {at}: the tick believed it");
            assert_eq!(sales.status(&lock), "Disputed", "{depth} deep, {at}: as the chain has it");
        }
    }
}

#[test]
fn a_step_on_the_surviving_fork_needs_no_more_rechecks() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(3);
    sales.does(&lock, Action::SetRefundRequested);
    let recheck = || one(&sales.db, "SELECT CAST(count(*) AS TEXT) FROM escrow_steps WHERE recheck = 1");
    sales.ticks(2);
    assert_eq!((sales.status(&lock).as_str(), recheck().as_str()), ("Disputed", "1"));
    sales.ticks(8);
    assert_eq!((sales.status(&lock).as_str(), recheck().as_str()), ("Disputed", "0"));
}

#[test]
fn a_step_that_moved_to_another_block_of_another_fork_shows_that_blocks_time() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(3);
    let by = sales.does(&lock, Action::SetRefundRequested);
    let moved = sales.ledger.mempool.borrow().clone();
    sales.ledger.mine();
    let theirs = sales.ledger.blocks.borrow().clone();
    sales.ledger.roll_back(1, 0);
    sales.ledger.mempool.borrow_mut().clear();
    sales.ledger.mine();
    moved.into_iter().for_each(|tx| assert!(sales.ledger.add_to_mempool(tx)));
    sales.ledger.mine();
    let stays = sales.ledger.blocks.borrow().clone();
    ticks_beside(&sales, "INSERT INTO chain_blocks", theirs, stays);
    assert_eq!(sales.status(&lock), "Disputed");
    sales.ticks(8);
    let told = one(&sales.db, &format!("SELECT height || ' ' || at_ms FROM escrow_steps WHERE tx_id = '{by}'"));
    let block = sales.ledger.inclusion(&by).unwrap();
    assert_eq!(told, format!("{} {}", block.height, block.time_ms));
}

#[test]
fn a_result_that_a_slow_request_found_before_a_rollback_is_posted_again() {
    for later in [1, 2] {
        let (sales, buyer) = (Sales::new(), person(11));
        let lock = sales.sell(&buyer);
        sales.ticks(1);
        sales.ledger.mine();
        // The block was rolled back, and no node has the result any more.
        let meanwhile = || {
            sales.ledger.roll_back(1, 0);
            (0..later).for_each(|_| sales.ledger.mine());
            sales.tick();
        };
        let slow = Interrupted::before(&sales.db, "UPDATE outbox SET state = 'included'", meanwhile);
        let terms = block(sales.db.fetch(catalogue::terms(&sales.listing))).unwrap().unwrap();
        let (sleep, contents) = (Meanwhile(&|| ()), InDatabase(&sales.db));
        let request = checkout(&slow, &sales.ledger, &sleep, &contents, &[], sales.now());
        sales.ledger.calls.set(0);
        let given = block(request.redeliver(&terms, &[*buyer.enterprise_address().payment_key()]));
        assert!(given.unwrap().is_some(), "it saw the result in a block");
        sales.ledger.calls.set(0);
        let reports = sales.ticks(30);
        let posted = acting(&sales, &lock, "result");
        assert!(sales.ledger.inclusion(&posted).is_some(), "{later}: {} {:#?}", sales.status(&lock), reports.last());
        assert_eq!(out_of_step(&sales.db), "");
    }
}

/// An event that takes place once.
type Once<'a> = RefCell<Option<Box<dyn FnOnce() + 'a>>>;

/// A database with one event when an entry is read by its id, and another when a step is written.
struct Between<'a> {
    db: &'a Sqlite,
    after_entry: Once<'a>,
    after_step: Once<'a>,
}

impl Database for Between<'_> {
    async fn run_statements(&self, statements: &[&Statement]) -> Result<Vec<String>, DatabaseError> {
        let has = |part: &str| statements.iter().any(|statement| statement.sql.contains(part));
        let (entry, step) = (has("FROM outbox WHERE tx_id = ?1"), has("INSERT INTO escrow_steps"));
        let done = self.db.run_statements(statements).await;
        let what = if step { &self.after_step } else { &self.after_entry };
        if (step || entry)
            && let Some(what) = what.borrow_mut().take()
        {
            what();
        }
        done
    }
}

#[test]
pub fn a_result_shown_only_on_another_fork_is_requested_again() {
    let Forked { sales, lock, theirs, stays } = Forked::of(2);
    sales.tick_on(&Between {
        db: &sales.db,
        after_entry: RefCell::new(Some(Box::new(|| drop(sales.ledger.blocks.replace(theirs))))),
        after_step: RefCell::new(Some(Box::new(|| drop(sales.ledger.blocks.replace(stays))))),
    });
    let reports = sales.ticks(45);
    assert_eq!(sales.status(&lock), "Disputed", "{:#?}", reports.last());
}

#[test]
fn a_block_that_two_nodes_show_differently_is_requested_again() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(1);
    sales.ledger.mine();
    let posted = acting(&sales, &lock, "result");
    sales.tick();
    assert_eq!(
        (sales.status(&lock).as_str(), entry(&sales.db, &posted).state),
        ("ResultSubmitted", EntryState::Included)
    );
    let theirs = sales.ledger.blocks.borrow().clone();
    sales.ledger.roll_back(1, 0);
    sales.does(&lock, Action::SetRefundRequested);
    (0..2).for_each(|_| sales.ledger.mine());
    // The newest block is reported by a node of the final chain; the existence of the one before, by a node that still
    // has it.
    sales.ledger.beside(theirs, 0b100);
    sales.tick();
    sales.ledger.agree();
    let reports = sales.ticks(50);
    assert_eq!(sales.status(&lock), "Disputed", "{:#?}", reports.last());
}

/// A database that loses an answer while a conflicting action is given up.
struct LosesOne<'a>(&'a Sqlite, RefCell<bool>);

impl Database for LosesOne<'_> {
    async fn run_statements(&self, statements: &[&Statement]) -> Result<Vec<String>, DatabaseError> {
        let gives_up = statements.iter().any(|statement| statement.sql.contains("SET state = 'refused'"));
        if gives_up && !self.1.replace(true) {
            return Err(DatabaseError("Network connection lost.".into()));
        }
        self.0.run_statements(statements).await
    }
}

#[test]
fn a_conflicting_action_is_given_up_by_the_next_tick_after_a_failed_one() {
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
