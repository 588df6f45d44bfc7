//! What the watcher believes while nodes are on two forks, or while a rollback is undone beside it: no sale is lost by it.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use crate::support::{block, entry, interrupted::Interrupted, one, person, sales::Sales};
use cardano::{ScriptHash, TxHash};
use escrow::Action;
use sql::{Database, statement};

/// The newest entry of this kind that acts on a purchase.
fn acting(sales: &Sales, purchase: &TxHash, kind: &str) -> TxHash {
    let sql = format!(
        "SELECT tx_id FROM outbox JOIN outbox_purchases USING (tx_id) WHERE purchase_id = '{purchase}' \
         AND kind = '{kind}' ORDER BY created_at_ms DESC LIMIT 1"
    );
    one(&sales.db, &sql).parse().unwrap()
}

#[test]
fn a_result_that_one_node_shows_in_a_block_of_another_fork_hides_no_step_of_its_buyers() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(1);
    // Two blocks of one height: one with the result, and the one that stays, with the buyer's own step.
    sales.ledger.mine();
    let theirs = sales.ledger.blocks.borrow().clone();
    assert!(sales.ledger.inclusion(&acting(&sales, &lock, "result")).is_some());
    sales.ledger.roll_back(1, 0);
    sales.does(&lock, Action::SetRefundRequested);
    sales.ledger.mine();
    let stays = sales.ledger.blocks.borrow().clone();
    let other_node = || drop(sales.ledger.blocks.replace(theirs));
    sales.tick_on(&Interrupted::after(&sales.db, "INSERT INTO chain_blocks", other_node));
    sales.ledger.blocks.replace(stays);
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
    // The block is gone, and no node has the result any more.
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
    let other_node = || drop(sales.ledger.blocks.replace(theirs));
    sales.tick_on(&Interrupted::after(&sales.db, "INSERT INTO chain_blocks", other_node));
    sales.ledger.blocks.replace(stays);
    let reports = sales.ticks(30);
    let posted = acting(&sales, &lock, "result");
    assert!(sales.ledger.inclusion(&posted).is_some(), "{} {:#?}", sales.status(&lock), reports.last());
}

#[test]
fn a_step_that_one_node_shows_in_a_block_of_another_fork_freezes_no_sale() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(1);
    // The buyer is first in the block that goes away, our result in the one that stays.
    let posted = sales.ledger.mempool.borrow().clone();
    sales.ledger.mempool.borrow_mut().clear();
    sales.does(&lock, Action::SetRefundRequested);
    sales.ledger.mine();
    let theirs = sales.ledger.blocks.borrow().clone();
    sales.ledger.roll_back(1, 0);
    posted.into_iter().for_each(|tx| assert!(sales.ledger.hand_in(tx)));
    sales.ledger.mine();
    let stays = sales.ledger.blocks.borrow().clone();
    let other_node = || drop(sales.ledger.blocks.replace(theirs));
    sales.tick_on(&Interrupted::after(&sales.db, "INSERT INTO chain_blocks", other_node));
    sales.ledger.blocks.replace(stays);
    sales.until(32);
    let reports = sales.ticks(8);
    assert_eq!(sales.status(&lock), "withdrawn", "{:#?}", reports.last());
}

#[test]
fn a_node_that_is_behind_takes_no_sale_out_of_the_watchers_sight() {
    let sales = Sales::new();
    sales.ticks(1);
    let behind = sales.ledger.blocks.borrow().clone();
    let lock = sales.sell(&person(11));
    // As long as a lock must be valid.
    let until = sales.ledger.tip().slot + 31;
    block(sales.db.run(statement!("UPDATE outbox SET valid_until_slot = ?2 WHERE tx_id = ?1", lock, until))).unwrap();
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
