//! Results that a node took and no block has: content is out with them, and each has to be posted again in time, however
//! many there are.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use std::cell::Cell;

use crate::support::{block, entry, ledger::Tx, person, sales::Sales};
use cardano::{TxHash, TxRef, chain::Utxo, keys::Native, slots::Millis};
use escrow::{Action, rules::Rule};
use market::{catalogue, checkout::Checkout, contents::InDatabase, transitions::Transitions};
use outbox::{Entry, EntryState, Outbox};
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
        seller: None,
        note: &|_| (),
        options: &[],
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
    let outbox = Outbox { database: &sales.db, chain: &sales.ledger, hook: &Transitions };
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
        block(outbox.refresh(first, None, sales.now())).unwrap();
        assert_eq!((first.state, first.was_public), (EntryState::Included, true));
    }
    firsts.into_iter().map(|(first, number)| (first.tx, number)).collect()
}

/// Races between results and steps of their buyers: how often a step comes into a block first, in per cent, and how many buyers
/// try against each transaction.
#[derive(Clone, Copy, Debug)]
struct Races {
    wins: u32,
    tries: usize,
}

const ALWAYS: Races = Races { wins: 100, tries: 1 };

/// Results that wait for a block race against steps of their buyers.
fn overtake(sales: &Sales, locks: &[(TxHash, u8)], races: Races) {
    let pending = std::mem::take(&mut *sales.ledger.mempool.borrow_mut());
    for tx in &pending {
        let acted_on = |lock: &&(TxHash, u8)| tx.utxos.by_script.iter().any(|input| input.tx == lock.0);
        for (lock, buyer) in locks.iter().filter(acted_on).take(races.tries) {
            if u32::from(tx.id.as_bytes()[usize::from(buyer % 31)]) * 100 < races.wins * 256 {
                sales.does(lock, Action::SetRefundRequested);
            }
        }
    }
    for tx in pending {
        sales.ledger.hand_in(tx);
    }
}

/// One transaction that asks for the money of several disputed sales again: a step of each.
fn asks_again(sales: &Sales, disputed: &[TxHash]) {
    let (mut spent, mut made): (Vec<TxRef>, Vec<Utxo>) = (vec![], vec![]);
    for sale in disputed {
        let escrow = sales.escrow(sale);
        assert!(sales.now() + 20_000 >= escrow.datum.buyer_cooldown, "the contract's cooldown");
        let rule = Rule::find(Action::SetRefundRequested, &escrow.datum).unwrap();
        let next = rule.next(&escrow.datum, sales.now() + 30_000, 60_000, None).unwrap();
        spent.push(escrow.utxo.reference);
        made.push(sales.escrow_of(&next));
    }
    assert!(sales.ledger.hand_in(Tx::unsigned(u64::from(sales.unique()), &spent, &made, u64::MAX)));
}

/// What takes a tick's calls, from block to block: sales that are disputed already and whose money is asked for again, eight in a
/// transaction as often as the contract lets them, and payments of somebody to themselves.
struct Load {
    disputed: Vec<TxHash>,
    pays: bool,
    blocks: Cell<u8>,
}

/// Blocks between two steps of one buyer's.
const COOLDOWN: u8 = 5;

impl Load {
    fn new(sales: &Sales, disputed: u8, pays: bool) -> Self {
        sales.issued.set(sales.now());
        let buyers: Vec<u8> = (100..100 + disputed).collect();
        let mut load = Self { disputed: vec![], pays, blocks: Cell::new(0) };
        // No more than may wait for their results.
        for some in buyers.chunks(12) {
            let sold: Vec<TxHash> = some.iter().map(|buyer| sales.sell(&person(*buyer))).collect();
            sales.ledger.mine();
            for sale in &sold {
                sales.includes(sale);
            }
            sales.ticks(4);
            load.disputed.extend(sold);
        }
        for _ in buyers.chunks(4) {
            load.minute(sales, &|| ());
        }
        load
    }

    /// Three blocks and a tick.
    fn minute(&self, sales: &Sales, meanwhile: &dyn Fn()) {
        for _ in 0..3 {
            meanwhile();
            let block = self.blocks.replace(self.blocks.get().wrapping_add(1));
            for (_, eight) in (0..COOLDOWN).zip(self.disputed.chunks(8)).filter(|(turn, _)| block % COOLDOWN == *turn) {
                asks_again(sales, eight);
            }
            let paid = self.pays.then(|| sales.pays(&person(block.wrapping_add(130))));
            sales.ledger.mine();
            if let Some(paid) = paid {
                sales.includes(&paid);
            }
        }
        sales.tick();
    }
}

fn without_result(sales: &Sales, locks: &[(TxHash, u8)]) -> usize {
    locks.iter().filter(|(lock, _)| !sales.escrow(lock).datum.has_result()).count()
}

/// Results asked for, a moment after the last time.
fn ask_once(sales: &Sales) {
    sales.post_results_on(&sales.db).unwrap();
    block(sales.db.run(statement!("UPDATE chain_reading SET results_from_ms = 0"))).unwrap();
}

/// The same ten times.
fn ask(sales: &Sales) {
    (0..10).for_each(|_| ask_once(sales));
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

/// What a course is about.
#[derive(Clone, Copy, Debug)]
struct Beside {
    /// Locks that count, and locks that a node had first, of which nothing bounds how many there are.
    locks: (u8, u8),
    /// As [`Load`] has them.
    disputed: u8,
    pays: bool,
    /// Whether scripts run on what blocks have, or on what waits for one, too.
    on_blocks: bool,
    races: Races,
    /// Whether results that a block did not have in the first minute are held back from then on.
    held: bool,
}

/// Outputs of the shop's wallet: as many as there are results at once.
const OUTPUTS: u32 = 24;

/// Locks that were quoted some minutes ago and whose results are all asked for at once. Who has the content then asks for no
/// result any more: ticks alone post those that are overtaken.
fn course(beside: Beside) -> Course {
    let sales = world(OUTPUTS, beside.on_blocks);
    (0..3).for_each(|_| sales.ledger.mine());
    let load = Load::new(&sales, beside.disputed, beside.pays);
    let (counted, public) = beside.locks;
    sales.issued.set(sales.now() - 3 * MINUTE);
    let mut locks = present(&sales, 60..60 + public);
    let own: Vec<(TxHash, u8)> = (20..20 + counted).map(|buyer| (sales.sell(&person(buyer)), buyer)).collect();
    let honest = sales.sell(&person(19));
    sales.ledger.mine();
    // Each asks as soon as its lock is there: its result goes alone, and content is given with it at once.
    for lock in own.iter().map(|(lock, _)| lock).chain([&honest]) {
        sales.includes(lock);
        ask_once(&sales);
    }
    locks.extend(&own);
    let end = sales.escrow(&honest).datum.deadlines.submit_result;
    ask(&sales);
    let given: Vec<_> = locks.iter().copied().filter(|(_, buyer)| is_given(&sales, *buyer)).collect();
    load.minute(&sales, &|| overtake(&sales, &locks, beside.races));
    while sales.now() + 20_000 < end {
        load.minute(&sales, &|| {
            if beside.held {
                given.iter().for_each(|(lock, _)| {
                    sales.holds_back(lock);
                });
            } else {
                overtake(&sales, &locks, beside.races);
            }
        });
    }
    (0..2).for_each(|_| sales.ledger.mine());
    Course {
        given: given.len(),
        free: without_result(&sales, &given),
        honest: sales.escrow(&honest).datum.has_result(),
    }
}

fn none_is_free(beside: Beside) {
    let all = Course { given: beside.locks.0.into(), free: 0, honest: true };
    assert_eq!(course(beside), all, "{beside:?}");
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
    for races in [ALWAYS, Races { wins: 50, tries: 1 }] {
        for on_blocks in [true, false] {
            for locks in [(18, 0), (18, 100), (7, 180)] {
                for held in [false, true] {
                    none_is_free(Beside { locks, disputed: 0, pays: false, on_blocks, races, held });
                }
            }
        }
    }
}

#[test]
fn content_is_given_for_no_result_that_cannot_be_posted_again_in_ticks_that_have_much_else_to_do() {
    for races in [ALWAYS, Races { wins: 80, tries: 1 }, Races { wins: 50, tries: 3 }] {
        for (disputed, pays) in [(24, false), (24, true), (0, true)] {
            for on_blocks in [true, false] {
                none_is_free(Beside { locks: (18, 0), disputed, pays, on_blocks, races, held: false });
            }
        }
    }
}

#[test]
fn content_of_results_that_one_buyer_can_keep_out_for_all_waits_for_their_block() {
    let sales = world(OUTPUTS, true);
    let locks: Vec<(TxHash, u8)> = (20..38).map(|buyer| (sales.sell(&person(buyer)), buyer)).collect();
    sales.ledger.mine();
    for (lock, _) in &locks {
        sales.includes(lock);
    }
    let end = sales.escrow(&locks[0].0).datum.deadlines.submit_result;
    ask(&sales);
    let given = |sales: &Sales| locks.iter().filter(|(_, buyer)| is_given(sales, *buyer)).count();
    assert_eq!(given(&sales), 0, "five in each transaction");
    // One of each, and then they hold theirs back.
    overtake(&sales, &locks, ALWAYS);
    while sales.now() + 20_000 < end {
        locks.iter().for_each(|(lock, _)| {
            sales.holds_back(lock);
        });
        sales.tick();
        (0..3).for_each(|_| sales.ledger.mine());
        let free =
            locks.iter().filter(|(lock, buyer)| is_given(&sales, *buyer) && !sales.escrow(lock).datum.has_result());
        assert_eq!(free.count(), 0);
    }
}

#[test]
fn who_keeps_results_out_until_the_last_that_gives_content_gets_none_free() {
    for buyers in [7, 19] {
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
            overtake(&sales, &locks, ALWAYS);
            (0..3).for_each(|_| sales.ledger.mine());
        }
        while sales.now() + 20_000 < end {
            (0..3).for_each(|_| sales.ledger.mine());
            sales.tick();
        }
        (0..2).for_each(|_| sales.ledger.mine());
        assert!(!given.is_empty());
        assert_eq!(without_result(&sales, &given), 0, "of {}", given.len());
    }
}

/// A sale in each block, and a tick a minute, where the shop's wallet has this, and what strangers sent it, of lovelace or of
/// tokens: the milliseconds from each lock's block to the content.
fn waits((outputs, ada): (u32, u32), gifts: (u32, u32), on_blocks: bool) -> Vec<Option<Millis>> {
    let sales = world(0, on_blocks);
    let platform = sales.platform.seller.enterprise_address().to_string();
    sales.lose(|utxo| utxo.address == platform);
    (0..outputs).for_each(|_| sales.fund(ada));
    (0..gifts.0).for_each(|_| sales.fund(1));
    (0..gifts.1).for_each(|_| sales.give_tokens(1));
    sales.tick();
    let mut waited = vec![];
    for number in 0..15_u8 {
        sales.issued.set(sales.now());
        let lock = sales.sell(&person(20 + number));
        sales.ledger.mine();
        sales.includes(&lock);
        let since = sales.now();
        if number % 3 == 2 {
            sales.tick();
        }
        ask(&sales);
        waited.push(is_given(&sales, 20 + number).then(|| sales.now() - since));
    }
    waited
}

#[test]
fn content_of_one_sale_a_block_comes_at_once_however_few_outputs_the_shop_has() {
    for on_blocks in [true, false] {
        for (wallet, gifts) in [
            ((1, 500), (0, 0)),
            ((1, 500), (5, 0)),
            ((1, 500), (0, 5)),
            ((10, 5), (0, 0)),
            ((10, 5), (5, 0)),
            ((10, 50), (20, 20)),
        ] {
            let waited = waits(wallet, gifts, on_blocks);
            let late = waited.iter().filter(|waited| waited.is_none()).count();
            assert_eq!(late, 0, "outputs and ADA in each: {wallet:?}, {gifts:?} gifts: {waited:?}");
        }
    }
}

#[test]
fn content_of_several_sales_a_block_comes_at_once_and_no_run_tries_what_a_block_has() {
    for (outputs, each) in [(5_u32, 5_u8), (10, 5), (3, 3), (8, 4)] {
        let sales = world(0, true);
        let platform = sales.platform.seller.enterprise_address().to_string();
        sales.lose(|utxo| utxo.address == platform);
        (0..outputs).for_each(|_| sales.fund(50));
        sales.tick();
        for first in (20..).step_by(usize::from(each)).take(6) {
            sales.issued.set(sales.now());
            let buyers = first..first + each;
            let locks: Vec<TxHash> = buyers.clone().map(|number| sales.sell(&person(number))).collect();
            sales.ledger.mine();
            for lock in &locks {
                sales.includes(lock);
            }
            let calls: Vec<u32> = (0..3)
                .map(|_| {
                    let report = sales.post_results_on(&sales.db).unwrap();
                    block(sales.db.run(statement!("UPDATE chain_reading SET results_from_ms = 0"))).unwrap();
                    report.calls
                })
                .collect();
            let given = buyers.filter(|buyer| is_given(&sales, *buyer)).count();
            assert_eq!(given, usize::from(each), "of {each}, {outputs} outputs, from {first}: {calls:?}");
            assert_eq!(calls[1..], [0, 0], "{outputs} outputs, from {first}");
        }
    }
}
