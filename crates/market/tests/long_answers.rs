//! Escrow steps whose answers from the provider are megabytes long, because they have outputs full of tokens. Each
//! costs the reading tick some calls, but does not end its actions.

#![allow(clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

use crate::support::{fresh_escrow, person, sales::Sales};
use cardano::TxHash;
use escrow::Action;

/// Ninety-five megabytes, counted in calls.
const LONG: u32 = 15;

/// Transactions of strangers at the contract's address, which delay the reading of its history.
fn flood(sales: &Sales) {
    for number in 0..300 {
        sales.puts(&[sales.escrow_of(&fresh_escrow(100_000 + number))]);
    }
}

/// The buyer's own step, with a long answer.
fn step(sales: &Sales, lock: &TxHash) {
    let step = sales.does(lock, Action::SetRefundRequested);
    sales.ledger.long.borrow_mut().insert(step, LONG);
}

#[test]
fn steps_with_long_answers_delay_no_result() {
    let sales = Sales::new();
    (0..12).for_each(|_| sales.fund(1_000));
    let taken: Vec<TxHash> = (0..12).map(|number| sales.sell_another(&person(20 + number))).collect();
    sales.ledger.mine();
    sales.issued.set(sales.now());
    let honest = sales.sell_another(&person(50));
    sales.ledger.mine();
    flood(&sales);
    taken.iter().for_each(|lock| step(&sales, lock));
    for lock in taken.iter().chain([&honest]) {
        sales.includes(lock);
    }
    let mut reports = vec![];
    while sales.status(&honest) != "ResultSubmitted" {
        (0..3).for_each(|_| sales.ledger.mine());
        reports.push(sales.tick());
        assert!(reports.len() < 5, "{reports:#?}");
    }
}

#[test]
fn a_steps_long_answer_is_read_once_for_all_escrows() {
    let calls = |long: u32| {
        let sales = Sales::new();
        (0..12).for_each(|_| sales.fund(1_000));
        let taken: Vec<TxHash> = (0..4).map(|number| sales.sell_another(&person(20 + number))).collect();
        sales.ledger.mine();
        for lock in &taken {
            sales.ledger.long.borrow_mut().insert(sales.does(lock, Action::SetRefundRequested), long);
            sales.includes(lock);
        }
        (0..3).for_each(|_| sales.ledger.mine());
        sales.tick();
        sales.tick_calls.take()
    };
    assert_eq!(calls(LONG), calls(0));
}
