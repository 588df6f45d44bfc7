//! Results that a node took and no block has: content is out with them, and each has to be posted again in time, however
//! many there are.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use crate::support::{block, entry, person, sales::Sales, step};
use cardano::{TxHash, keys::Native, slots::Millis};
use escrow::Action;
use market::{catalogue, checkout::Checkout, contents::InDatabase, transitions::Transitions};
use outbox::{Decision, Entry, EntryState, Outbox};
use sql::{Database, statement};

const MINUTE: Millis = 60_000;

/// A shop whose wallet has so many outputs, and a provider that runs scripts on what blocks have, or on what waits for one, too.
fn world(outputs: u32, on_blocks: bool) -> Sales {
    let sales = Sales::new();
    sales.results_first.set(true);
    (0..outputs).for_each(|_| sales.fund(100));
    sales.ledger.evaluates_blocks.set(on_blocks);
    sales.ticks(1);
    sales
}

/// Whether whoever proves to be the buyer gets the content now.
fn is_given(sales: &Sales, buyer: u8) -> bool {
    let terms = block(sales.db.run(catalogue::terms(&sales.listing))).unwrap().first_json().unwrap().unwrap();
    sales.ledger.calls.set(0);
    let checkout = Checkout {
        database: &sales.db,
        chain: &sales.ledger,
        signatures: &Native,
        sleep: sales,
        contents: &InDatabase(&sales.db),
        results: &(),
        ways: &[],
        now: sales.now(),
        clock: sales.now(),
        schedule: &[],
        confirmations: 0,
        hung_up: &|| false,
    };
    let buyers = [person(buyer).enterprise_address().to_string()];
    matches!(block(checkout.redeliver(&terms, &buyers)), Ok(Some(_)))
}

/// Somebody each brings a lock that a block has already, and proves to have paid.
fn present(sales: &Sales, buyers: std::ops::Range<u8>) -> Vec<(TxHash, u8)> {
    let outbox = Outbox { database: &sales.db, chain: &sales.ledger, follow: &Transitions };
    let mut firsts: Vec<(Entry, u8)> = buyers
        .map(|number| {
            let mut first = entry(&sales.db, &sales.sell(&person(number)));
            sales.ledger.calls.set(0);
            assert!(block(outbox.submit_first(&mut first, None, sales.now())).unwrap().is_some(), "a node had it");
            (first, number)
        })
        .collect();
    sales.ledger.mine();
    for (first, _) in &mut firsts {
        sales.ledger.calls.set(0);
        block(outbox.look(first, None, sales.now())).unwrap();
        assert_eq!((first.state, first.was_public), (EntryState::Included, true));
    }
    firsts.into_iter().map(|(first, number)| (first.tx, number)).collect()
}

/// Results that wait for a block lose against a step of one of their buyers, one in so many.
fn overtake(sales: &Sales, locks: &[(TxHash, u8)], one_in: u8) {
    let pending = std::mem::take(&mut *sales.ledger.mempool.borrow_mut());
    for tx in &pending {
        let acted_on = |lock: &&(TxHash, u8)| tx.utxos.by_script.iter().any(|input| input.tx == lock.0);
        if tx.id.as_bytes()[0].is_multiple_of(one_in)
            && let Some((lock, _)) = locks.iter().find(acted_on)
        {
            sales.does(lock, Action::SetRefundRequested);
        }
    }
    for tx in pending {
        sales.ledger.hand_in(tx);
    }
}

fn without_result(sales: &Sales, locks: &[(TxHash, u8)]) -> usize {
    locks.iter().filter(|(lock, _)| !sales.escrow(lock).datum.has_result()).count()
}

/// Results asked for ten times, each a moment after the other.
fn ask(sales: &Sales) {
    for _ in 0..10 {
        sales.post_results_on(&sales.db).unwrap();
        block(sales.db.run(statement!("UPDATE chain_reading SET results_from_ms = 0"))).unwrap();
    }
}

/// Minutes to the end of the time for results: three blocks each, results asked for before each, then a tick.
fn to_the_end(sales: &Sales, end: Millis, meanwhile: &dyn Fn()) {
    while sales.now() + 20_000 < end {
        for _ in 0..3 {
            meanwhile();
            sales.ledger.mine();
            // Refused where it cannot be asked now.
            drop(sales.post_results_on(&sales.db));
        }
        sales.tick();
    }
    (0..2).for_each(|_| sales.ledger.mine());
}

/// What came of contents that were given.
#[derive(Debug, PartialEq, Eq)]
struct Course {
    given: usize,
    /// Of these, whose buyers take the money back.
    free: usize,
    /// Whether the result of an honest sale beside them was in time.
    honest: bool,
}

/// So many locks that count, and as many that a node had first as nothing bounds, quoted some minutes ago and all asked for at
/// once; some of their buyers' own steps come into each block before the results.
fn course((counted, public): (u8, u8), quoted: Millis, on_blocks: bool, one_in: u8) -> Course {
    let sales = world(10, on_blocks);
    (0..3).for_each(|_| sales.ledger.mine());
    sales.issued.set(sales.now() - quoted);
    let mut locks = present(&sales, 60..60 + public);
    let own: Vec<(TxHash, u8)> = (20..20 + counted).map(|buyer| (sales.sell(&person(buyer)), buyer)).collect();
    let honest = sales.sell(&person(19));
    sales.ledger.mine();
    for lock in own.iter().map(|(lock, _)| lock).chain([&honest]) {
        step(&sales.db, lock, &Decision::Include(sales.ledger.inclusion(lock).unwrap()));
    }
    locks.extend(&own);
    let end = sales.escrow(&honest).datum.deadlines.submit_result;
    ask(&sales);
    let given: Vec<_> = locks.iter().copied().filter(|(_, buyer)| is_given(&sales, *buyer)).collect();
    to_the_end(&sales, end, &|| overtake(&sales, &locks, one_in));
    Course {
        given: given.len(),
        free: without_result(&sales, &given),
        honest: sales.escrow(&honest).datum.has_result(),
    }
}

#[test]
fn content_of_a_lock_that_a_node_had_first_waits_for_the_block_of_its_result() {
    let sales = world(10, true);
    let locks = present(&sales, 60..80);
    ask(&sales);
    sales.tick();
    assert_eq!(sales.ledger.mempool.borrow().len(), 2, "as many as one tick sends of them");
    assert!(!locks.iter().any(|(_, buyer)| is_given(&sales, *buyer)));
    sales.ledger.mine();
    sales.tick();
    assert_eq!(locks.iter().filter(|(_, buyer)| is_given(&sales, *buyer)).count(), 10);
}

#[test]
fn content_is_given_for_no_result_that_cannot_be_posted_again_in_time() {
    for one_in in [1, 2] {
        for on_blocks in [true, false] {
            for (counted, public) in [(28, 0), (28, 100), (7, 180)] {
                let course = course((counted, public), 3 * MINUTE, on_blocks, one_in);
                let all = Course { given: counted.into(), free: 0, honest: true };
                assert_eq!(course, all, "one in {one_in}, beside {public}, scripts on blocks: {on_blocks}");
            }
        }
    }
}

#[test]
fn who_keeps_results_out_until_the_last_that_gives_content_gets_none_free() {
    for buyers in [7, 29] {
        let sales = world(24, true);
        sales.issued.set(sales.now());
        let locks: Vec<(TxHash, u8)> = (20..20 + buyers).map(|buyer| (sales.sell(&person(buyer)), buyer)).collect();
        sales.ledger.mine();
        let end = sales.escrow(&locks[0].0).datum.deadlines.submit_result;
        // What a result may wait for a block, and what is left then for another.
        let last = end - (180 + 480) * 1_000;
        while sales.now() + 70_000 < last {
            locks.iter().for_each(|(lock, _)| {
                sales.holds_back(lock);
            });
            sales.tick();
            (0..3).for_each(|_| sales.ledger.mine());
        }
        // They let go.
        let mut given: Vec<(TxHash, u8)> = vec![];
        for _ in 0..2 {
            sales.tick();
            let known = given.clone();
            given.extend(locks.iter().filter(|it| !known.contains(it) && is_given(&sales, it.1)));
            overtake(&sales, &locks, 1);
            (0..3).for_each(|_| sales.ledger.mine());
        }
        to_the_end(&sales, end, &|| ());
        assert!(!given.is_empty());
        assert_eq!(without_result(&sales, &given), 0, "of {}", given.len());
    }
}
