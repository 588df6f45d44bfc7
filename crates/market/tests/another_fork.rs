//! What a node on another fork shows in the middle of a tick, and what never comes into the chain that stays.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use crate::support::{interrupted::Interrupted, one, person, sales::Sales};
use cardano::TxHash;
use escrow::Action;

/// The buyer's step is in another node's fork, of this depth, from when the tick comes to this statement until it ends; the
/// chain that stays never has it. What is told of the sale, in the tick and two hours later.
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
        sales.ledger.hand_in(tx);
    }
    (0..=depth).for_each(|_| sales.ledger.mine());
    let stays = sales.ledger.blocks.borrow().clone();
    sales.tick_on(&Interrupted::after(&sales.db, at, || drop(sales.ledger.blocks.replace(theirs))));
    sales.ledger.blocks.replace(stays);
    let told = sales.status(&lock);
    for _ in 0..120 {
        (0..3).for_each(|_| sales.ledger.mine());
        sales.tick();
    }
    (told, lock, sales)
}

#[test]
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
fn a_step_of_the_chain_that_stays_is_sure_in_the_end() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(3);
    sales.does(&lock, Action::SetRefundRequested);
    let unsure = || one(&sales.db, "SELECT CAST(count(*) AS TEXT) FROM escrow_steps WHERE unsure = 1");
    sales.ticks(2);
    assert_eq!((sales.status(&lock).as_str(), unsure().as_str()), ("Disputed", "1"));
    sales.ticks(8);
    assert_eq!((sales.status(&lock).as_str(), unsure().as_str()), ("Disputed", "0"));
}
