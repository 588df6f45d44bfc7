//! The platform's wallet among outputs that cannot pay: what tokens hold stays with them.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use cardano::TxHash;
use sql::Database;

use crate::support::{block, person, sales::Sales};

/// Sells to these buyers at once, and posts the due results.
fn sell(sales: &Sales, buyers: std::ops::Range<u8>) -> Vec<TxHash> {
    sales.issued.set(sales.now());
    let locks: Vec<TxHash> = buyers.map(|buyer| sales.sell_another(&person(buyer))).collect();
    sales.ledger.mine();
    for lock in &locks {
        sales.includes(lock);
        sales.tick();
    }
    (0..3).for_each(|_| sales.ledger.mine());
    locks
}

#[test]
fn a_wallet_behind_outputs_full_of_tokens_is_read_until_it_pays() {
    let sales = Sales::new();
    sales.ledger.evaluates_blocks.set(true);
    (0..6).for_each(|_| sales.fund(100));
    sales.tick();
    // A page of outputs that together hold enough for a tick, but no three of which can be collateral.
    (0..3).for_each(|_| sales.give_tokens(48));
    (0..97).for_each(|_| sales.give_tokens(7));
    sales.ledger.mine();
    // Each result spends an older output of the wallet; the change of them is listed after the others.
    let before = sell(&sales, 20..30);
    sales.tick();
    // An hour without purchases, so that the snapshot has no entry.
    block(sales.db.execute::<()>(sql::write!("UPDATE outbox SET created_at_ms = created_at_ms - 3960000"))).unwrap();
    let after = sell(&sales, 60..63);
    sales.ticks(2);
    assert!(after.iter().all(|lock| sales.status(lock) == "ResultSubmitted"));
    sales.until(60);
    sales.ticks(6);
    assert!(before.iter().chain(&after).all(|lock| sales.status(lock) == "withdrawn"));
}

/// Outputs with only their minimum cannot pay, and three of them fill a transaction.
#[test]
fn change_that_is_on_its_way_pays_where_outputs_full_of_tokens_do_not_fit() {
    let sales = Sales::new();
    sales.ledger.evaluates_blocks.set(false);
    (0..8).for_each(|_| sales.give_tokens(130));
    sales.ledger.mine();
    let locks: Vec<TxHash> = (20..24).map(|buyer| sales.sell_another(&person(buyer))).collect();
    sales.ledger.mine();
    for lock in &locks {
        sales.includes(lock);
        assert!(sales.post(lock).is_ok(), "each spends some of these, or what is left of them");
    }
}
