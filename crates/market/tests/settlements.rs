//! Settlements for other servers, beside the shop's own transactions in the watcher's ticks.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

use cardano::TxHash;
use outbox::{Decision, EntryState, Kind, NewEntry, Provenance};
use sql::Database;

use crate::support::{
    block, entry,
    ledger::{Tx, faucets},
    one, person,
    sales::{Sales, run},
    step,
};

/// Maximum number of settlements that a tick looks up.
const MOST: usize = 4;
const MONTH_SLOTS: u64 = 30 * 24 * 60 * 60;

/// A transaction to another server, recorded but not submitted.
fn recorded(sales: &Sales, slots: u64) -> Tx {
    let (number, valid_until) = (sales.unique(), sales.ledger.tip().slot + slots);
    let spends = vec![faucets(number)];
    let tx = Tx::unsigned(number.into(), &spends, &[], valid_until);
    let new = NewEntry {
        tx: tx.id,
        kind: Kind::Settlement,
        purpose: format!("settlement {}", tx.id),
        wallet: None,
        cbor: tx.cbor.clone(),
        valid_until,
        provenance: Provenance::Unknown,
        spends,
        collateral: vec![],
        acts_on: vec![],
        guard: None,
    };
    block(sales.db.batch(outbox::write_down(&new, sales.now()))).unwrap().unwrap();
    tx
}

/// A transaction to another server that a node accepted.
fn submitted(sales: &Sales, slots: u64) -> TxHash {
    let tx = recorded(sales, slots);
    let id = tx.id;
    step(&sales.db, &id, &Decision::Accept);
    assert!(sales.ledger.add_to_mempool(tx));
    id
}

fn is_included(sales: &Sales, tx: &TxHash) -> bool {
    entry(&sales.db, tx).state == EntryState::Included
}

#[test]
fn settlements_take_no_place_of_the_shops_payments_in_a_tick() {
    let sales = Sales::new();
    let settlements: Vec<TxHash> = (0..3 * MOST).map(|_| submitted(&sales, 100)).collect();
    let payments: Vec<TxHash> = (11..15).map(|number| sales.sell_instant(&person(number))).collect();
    sales.ledger.mine();
    sales.tick();
    assert!(payments.iter().all(|tx| is_included(&sales, tx)), "although the settlements expire sooner");
    let found = || settlements.iter().filter(|tx| is_included(&sales, tx)).count();
    assert_eq!(found(), MOST);
    sales.ticks(2);
    assert_eq!(found(), settlements.len(), "each tick has a part of its own for settlements");
}

#[test]
fn after_a_rollback_the_shops_payments_are_looked_up_before_settlements() {
    let sales = Sales::new();
    let settlements: Vec<TxHash> = (0..14).map(|_| submitted(&sales, 1_000)).collect();
    let payment = sales.sell_instant(&person(11));
    sales.ticks(5);
    assert!(is_included(&sales, &payment) && settlements.iter().all(|tx| is_included(&sales, tx)));
    sales.ledger.roll_back(5, u64::MAX);
    (0..6).for_each(|_| sales.ledger.mine());
    sales.tick();
    let left = one(&sales.db, "SELECT group_concat(DISTINCT kind) FROM outbox WHERE recheck = 1");
    assert_eq!(left, "settlement", "a tick looks up twelve of fifteen");
    sales.ticks(1);
    assert_eq!(one(&sales.db, "SELECT group_concat(kind) FROM outbox WHERE recheck = 1"), "");
}

#[test]
fn settlements_are_deleted_a_month_after_their_validity_ended() {
    let sales = Sales::new();
    let [old, recent] = [(); 2].map(|()| submitted(&sales, 1_000));
    sales.ledger.mine();
    sales.tick();
    let slot = sales.ledger.tip().slot;
    for (tx, until) in [(old, slot - MONTH_SLOTS - 10_000), (recent, slot - MONTH_SLOTS + 100_000)] {
        run(&sales, &format!("UPDATE outbox SET valid_until_slot = {until} WHERE tx_id = '{tx}'"));
    }
    let kept = |tx: &TxHash| block(sales.db.fetch(outbox::by_id(tx))).unwrap().is_some();
    sales.ticks(1);
    assert!(kept(&old) && kept(&recent), "the inputs of a block are reserved for two hours");
    sales.until(150);
    // A new entry deletes old reservations.
    let new = submitted(&sales, 1_000);
    sales.ticks(1);
    assert!(!kept(&old) && kept(&recent) && kept(&new));
}

#[test]
fn a_settlement_that_no_tick_could_look_up_expires_and_is_found_by_the_next_request() {
    let sales = Sales::new();
    let unanswered: Vec<Tx> = (0..2 * MOST).map(|_| recorded(&sales, 10)).collect();
    let slot = sales.ledger.tip().slot - 2 * 60 * 60;
    run(&sales, &format!("UPDATE outbox SET valid_until_slot = {slot} WHERE kind = 'settlement'"));
    sales.ticks(1);
    for tx in unanswered {
        let entry = entry(&sales.db, &tx.id);
        assert_eq!(entry.state, EntryState::Expired, "not refused: its payer has no way to sign");
    }
}
