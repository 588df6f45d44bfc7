//! Buyers who keep a step in the mempool that no block will have: its time is over by the clock, but not by the slot after
//! the newest block, by which nodes judge what they take. It costs nothing, and what conflicts with it is refused.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use crate::support::{NOON, one, person, sales::Sales};
use cardano::{TxHash, slots::Millis};
use std::{cell::Cell, rc::Rc};

const MINUTE: Millis = 60_000;
/// Until when a result may be posted, from the lock on.
const TIME: Millis = 16 * MINUTE;

fn world() -> Sales {
    let sales = Sales::new();
    (0..4).for_each(|_| sales.fund(1_000));
    sales.ledger.evaluates_blocks.set(true);
    sales.until(4);
    sales
}

/// When the result of an honest sale is in a block, beside so many sales of others who hold theirs back whenever a tick begins,
/// each due a second earlier.
fn posted_beside(others: u8) -> Option<Millis> {
    let sales = world();
    let held: Vec<TxHash> = (0..others).map(|number| sales.sell_another(&person(50 + number))).collect();
    let honest = sales.sell(&person(11));
    sales.ledger.mine();
    let earlier =
        format!("UPDATE escrows SET submit_result_ms = {} WHERE purchase_id <> '{honest}'", NOON + TIME - 1_000);
    while sales.now() < NOON + TIME {
        one(&sales.db, &earlier);
        held.iter().for_each(|lock| {
            sales.holds_back(lock);
        });
        sales.tick();
        (0..3).for_each(|_| sales.ledger.mine());
        if sales.escrow(&honest).datum.has_result() {
            return Some(sales.now() - NOON);
        }
    }
    None
}

#[test]
fn nobody_else_is_held_back() {
    for others in [0, 1, 5, 9, 19] {
        let posted = posted_beside(others);
        assert!(posted.is_some_and(|at| at <= 10 * MINUTE), "beside {others}: {posted:?}");
    }
}

#[test]
fn a_result_is_tried_in_every_tick_and_between_blocks() {
    let sales = world();
    let lock = sales.sell(&person(11));
    sales.ledger.mine();
    let refused = Rc::new(Cell::new(0_u32));
    // The buyer is there again within a moment of each block.
    *sales.meanwhile.borrow_mut() = Rc::new(move |sales: &Sales| {
        sales.ledger.mine();
        sales.holds_back(&lock);
    });
    let mut ticks = 0;
    while sales.now() < NOON + 10 * MINUTE {
        sales.holds_back(&lock);
        let report = sales.tick();
        refused.set(refused.get() + u32::try_from(report.acted.len()).unwrap());
        ticks += 1;
        (0..3).for_each(|_| sales.ledger.mine());
    }
    assert_eq!(sales.status(&lock), "FundsLocked");
    assert_eq!(refused.get(), 1 + 5 * (ticks - 1), "{ticks} ticks");
}

#[test]
fn what_was_held_back_leaves_nothing_after_a_day() {
    let sales = world();
    let lock = sales.sell(&person(11));
    sales.ledger.mine();
    while sales.now() < NOON + TIME {
        sales.holds_back(&lock);
        sales.tick();
        (0..3).for_each(|_| sales.ledger.mine());
    }
    let tried =
        || one(&sales.db, "SELECT CAST(count(*) AS TEXT) FROM outbox WHERE kind = 'result'").parse::<u32>().unwrap();
    let acted = "SELECT CAST(count(*) AS TEXT) FROM outbox_purchases JOIN outbox USING (tx_id) WHERE kind = 'result'";
    assert!(tried() > 5, "{}", tried());
    assert_eq!(one(&sales.db, acted), tried().to_string());
    sales.until(25 * 60);
    sales.tick();
    assert_eq!((tried(), one(&sales.db, acted).as_str()), (0, "0"));
}

#[test]
fn a_buyer_who_lets_go_for_one_moment_is_too_late() {
    let sales = world();
    let lock = sales.sell(&person(11));
    sales.ledger.mine();
    for _ in 0..2 {
        sales.holds_back(&lock);
        sales.tick();
        sales.ledger.mine();
    }
    assert_eq!(sales.status(&lock), "FundsLocked", "it is held back");
    let blocks = Rc::new(Cell::new(0));
    let made = Rc::clone(&blocks);
    *sales.meanwhile.borrow_mut() = Rc::new(move |sales: &Sales| {
        sales.ledger.mine();
        made.set(made.get() + 1);
        if made.get() != 2 {
            sales.holds_back(&lock);
        }
    });
    sales.holds_back(&lock);
    sales.tick();
    assert_eq!(blocks.get(), 2, "nothing is tried again that was taken");
    sales.ticks(2);
    assert_eq!(sales.status(&lock), "ResultSubmitted");
}

#[test]
fn what_came_into_no_block_holds_back_nothing_else() {
    let sales = world();
    let locks: Vec<TxHash> = (0..3).map(|number| sales.sell_another(&person(50 + number))).collect();
    sales.ledger.mine();
    // A node takes the result, and no block has it: who makes blocks has the buyer's step.
    let blocks = |count: u32, withhold: bool| {
        for _ in 0..count {
            if withhold && !sales.escrow(&locks[0]).datum.has_result() {
                let escrow = sales.escrow(&locks[0]).utxo.reference;
                sales.ledger.mempool.borrow_mut().retain(|tx| !tx.utxos.spent.contains(&escrow));
            }
            sales.ledger.mine();
        }
    };
    while sales.now() < NOON + 12 * MINUTE {
        sales.tick();
        blocks(3, true);
    }
    for lock in &locks[1..] {
        assert_eq!(sales.status(lock), "ResultSubmitted", "it was not the one that no block has");
    }
}
