//! Each creator is paid once and each sale equals the chain, under random events: killed ticks, concurrent ticks,
//! results posted by requests, returning buyers, actions held back in the mempool, rollbacks, and a lagging provider.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::panic,
    reason = "test"
)]
use std::cell::Cell;

use crate::support::{
    block, checkout,
    interrupted::Interrupted,
    ledger::Tx,
    one, out_of_step, person,
    provider::Meanwhile,
    sales::{PRICE, Sales, creator},
};
use cardano::{KeyHash, Lovelace, TxHash, chain::Utxo};
use escrow::{
    Action, State,
    plan::Escrow,
    rules::{Effect, Rule},
};
use market::{
    ListingId, catalogue, checkout::Checkout, contents::InDatabase, fees::creator_share, result_poster::Seller,
};
use proptest::prelude::*;
use sql::{Database, DatabaseError, Statement, sqlite::Sqlite};

#[derive(Clone, Debug)]
enum Ev {
    Sell(u8),
    Buyer(usize, bool),
    Settle(usize),
    Blocks(u8),
    Back(usize, u64),
    Tick(u32, u32),
    Both(u8, bool),
    /// The API posts the result of a lock, and may be killed after this many writes.
    Post(usize, u32),
    /// The buyer of a lock repeats the request.
    Return(usize, Repeat),
    Hold(usize),
    Lag,
    CatchUp,
    Forget(u64),
    /// The calls of a tick are answered by two nodes on different forks.
    Fork(Fork),
    /// A lock that a node had before this service.
    Public(u8),
}

/// A fork of the chain, and the node that answers each call.
#[derive(Clone, Copy, Debug)]
struct Fork {
    /// Number of blocks by which the nodes differ.
    depth: u8,
    /// Whether each transaction of the removed blocks waits for a block again, one bit each.
    returned: u64,
    /// Whether the other node answers, one bit for each call.
    other_answers: u64,
    /// Whether the buyer of a sale acts on the remaining chain.
    buyer_acts: bool,
    /// Whether the remaining chain is one block longer than the other.
    is_longer: bool,
}

/// A repeated request of a buyer, and what happens meanwhile.
#[derive(Clone, Copy, Debug)]
struct Repeat {
    /// Number of writes after which the request is killed.
    writes: u32,
    /// Whether the provider does not show the lock.
    is_unseen: bool,
    /// Whether a block is made while the request waits.
    mines: bool,
    /// Whether a tick runs while the request waits.
    ticks: bool,
    /// Number of newer blocks that the request requires.
    confirmations: u64,
}

fn fork() -> impl Strategy<Value = Fork> {
    (1..3u8, any::<[u64; 2]>(), any::<[bool; 2]>()).prop_map(
        |(depth, [returned, other_answers], [buyer_acts, is_longer])| Fork {
            depth,
            returned,
            other_answers,
            buyer_acts,
            is_longer,
        },
    )
}

fn repeat() -> impl Strategy<Value = Repeat> {
    let writes = prop_oneof![2 => Just(u32::MAX), 1 => 0..12u32];
    (writes, any::<[bool; 3]>(), 0..2u64).prop_map(|(writes, [is_unseen, mines, ticks], confirmations)| Repeat {
        writes,
        is_unseen,
        mines,
        ticks,
        confirmations,
    })
}

fn ev() -> impl Strategy<Value = Ev> {
    prop_oneof![
        4 => (11..16u8).prop_map(Ev::Sell),
        4 => (any::<usize>(), any::<bool>()).prop_map(|(e, d)| Ev::Buyer(e, d)),
        3 => any::<usize>().prop_map(Ev::Settle),
        8 => (1..4u8).prop_map(Ev::Blocks),
        4 => (20..60u8).prop_map(Ev::Blocks),
        2 => (1..4usize, any::<u64>()).prop_map(|(b, c)| Ev::Back(b, c)),
        8 => Just(Ev::Tick(u32::MAX, u32::MAX)),
        3 => (0..12u32, Just(u32::MAX)).prop_map(|(w, c)| Ev::Tick(w, c)),
        2 => (Just(u32::MAX), 1..25u32).prop_map(|(w, c)| Ev::Tick(w, c)),
        6 => (0..6u8, any::<bool>()).prop_map(|(a, b)| Ev::Both(a, b)),
        6 => (any::<usize>(), prop_oneof![2 => Just(u32::MAX), 1 => 0..6u32]).prop_map(|(e, w)| Ev::Post(e, w)),
        6 => (any::<usize>(), repeat()).prop_map(|(e, r)| Ev::Return(e, r)),
        4 => any::<usize>().prop_map(Ev::Hold),
        1 => Just(Ev::Lag),
        2 => Just(Ev::CatchUp),
        1 => any::<u64>().prop_map(Ev::Forget),
        5 => fork().prop_map(Ev::Fork),
        2 => (16..20u8).prop_map(Ev::Public),
    ]
}

struct Dying<'a>(&'a Sqlite, Cell<u32>);
impl Database for Dying<'_> {
    async fn run_statements(&self, statements: &[&Statement]) -> Result<Vec<String>, DatabaseError> {
        let left = self.1.get().checked_sub(1).ok_or_else(|| DatabaseError("killed".into()))?;
        self.1.set(left);
        self.0.run_statements(statements).await
    }
}

fn tick(sales: &Sales, database: &impl Database) {
    // Killing the tick here is the point of the test.
    let _ = sales.try_tick_at(database, sales.now());
}

fn disputed_over(sales: &Sales, escrow: &Escrow) -> bool {
    escrow.datum.state == State::Disputed && sales.now() >= escrow.datum.deadlines.external_dispute_unlock
}

fn nth_lock(sales: &Sales, at: usize) -> Option<TxHash> {
    let ids = one(&sales.db, "SELECT coalesce(group_concat(tx_id), '') FROM outbox WHERE kind = 'lock'");
    let ids: Vec<TxHash> = ids.split(',').filter_map(|id| id.parse().ok()).collect();
    at.checked_rem(ids.len()).map(|at| ids[at])
}

fn returns(sales: &Sales, lock: &TxHash, repeat: Repeat) {
    let of = |column: &str| one(&sales.db, &format!("SELECT {column} FROM payments WHERE tx_id = '{lock}'"));
    let (listing, buyer): (ListingId, KeyHash) = (of("listing_id").parse().unwrap(), of("payer_key").parse().unwrap());
    let terms = block(sales.db.fetch(catalogue::terms(&listing))).unwrap().unwrap();
    let waits = || {
        if repeat.mines {
            sales.ledger.mine();
        }
        if repeat.ticks {
            tick(sales, &sales.db);
        }
    };
    if repeat.is_unseen {
        sales.ledger.unseen.borrow_mut().insert(*lock);
    }
    sales.ledger.calls.set(0);
    let dying = Dying(&sales.db, Cell::new(repeat.writes));
    let contents = InDatabase(&sales.db);
    let sleeps = Meanwhile(&waits);
    let request = Checkout {
        seller: Some(Seller { deployment: &sales.deployment, key: &sales.platform.seller }),
        schedule: &[500, 500, 500],
        confirmations: repeat.confirmations,
        ..checkout(&dying, &sales.ledger, &sleeps, &contents, &[], sales.now())
    };
    if let Ok(Some(given)) = block(request.redeliver(&terms, &[buyer])) {
        let safe = format!(
            "SELECT CAST(EXISTS (SELECT 1 FROM outbox_purchases JOIN outbox USING (tx_id) WHERE purchase_id = '{0}' \
               AND kind = 'result' AND state = 'included') OR EXISTS (SELECT 1 FROM escrow_steps \
               WHERE purchase_id = '{0}' AND (result_hash IS NOT NULL OR status IN ('withdrawn', 'closed'))) AS TEXT)",
            given.purchase
        );
        assert_eq!(one(&sales.db, &safe), "1", "{} is released before its seller is safe", given.purchase);
    }
    sales.ledger.calls.set(0);
    sales.ledger.unseen.borrow_mut().clear();
}

const AT: [&str; 6] = [
    "INSERT INTO outbox ",
    "UPDATE outbox SET state",
    "UPDATE chain_reading",
    "INSERT INTO chain_blocks",
    "INSERT INTO escrow_steps",
    "SELECT e.purchase_id AS purchase, e.utxo",
];

fn happens(sales: &Sales, event: &Ev, lag: &mut Option<u64>, sold: &mut u32) {
    let nth = |at: usize| {
        let mut all = sales.open();
        at.checked_rem(all.len()).map(|at| all.swap_remove(at))
    };
    if lag.is_some_and(|since| sales.now() > since + 40 * 60_000) {
        sales.ledger.catch_up();
        *lag = None;
    }
    match *event {
        Ev::Sell(buyer) => {
            if *sold < 12 && lag.is_none() {
                *sold += 1;
                // A current quote: the fixture's deadlines begin at noon.
                if sales.now() < crate::support::NOON + 200_000 {
                    sales.sell_another(&person(buyer));
                }
            }
        }
        Ev::Buyer(at, dispute) => {
            if let Some(escrow) = nth(at) {
                let action = if dispute { Action::SetRefundRequested } else { Action::AuthorizeWithdrawal };
                let Some(rule) = Rule::find(action, &escrow.datum) else { return };
                if action == Action::SetRefundRequested && sales.now() + 60_000 > escrow.datum.deadlines.unlock {
                    return;
                }
                if escrow.datum.buyer_cooldown > sales.now() {
                    return;
                }
                let Effect::Continue { .. } = rule.effect else { return };
                let Some(next) = rule.next(&escrow.datum, sales.now(), 60_000, None) else { return };
                sales.ledger.add_to_mempool(Tx::unsigned(
                    sales.unique().into(),
                    &[escrow.utxo.reference],
                    &[sales.escrow_of(&next)],
                    u64::MAX,
                ));
            }
        }
        Ev::Settle(at) => {
            if let Some(escrow) = nth(at).filter(|escrow| disputed_over(sales, escrow)) {
                sales.settle(&escrow);
            }
        }
        Ev::Blocks(count) => (0..count).for_each(|_| sales.ledger.mine()),
        Ev::Back(blocks, coins) => {
            if lag.is_some() || sales.ledger.blocks.borrow().len() < 8 {
                return;
            }
            sales.ledger.roll_back(blocks, coins);
            (0..=blocks).for_each(|_| sales.ledger.mine());
        }
        Ev::Tick(writes, calls) => {
            sales.ledger.silent_from.set(calls);
            tick(sales, &Dying(&sales.db, Cell::new(writes)));
            sales.ledger.silent_from.set(u32::MAX);
        }
        Ev::Both(at, after) => {
            let at = AT[usize::from(at) % AT.len()];
            let what = || {
                sales.ledger.mine();
                tick(sales, &sales.db);
            };
            if after {
                tick(sales, &Interrupted::after(&sales.db, at, what).may_miss());
            } else {
                tick(sales, &Interrupted::before(&sales.db, at, what).may_miss());
            }
        }
        Ev::Post(at, writes) => {
            let Some(lock) = nth_lock(sales, at) else { return };
            drop(sales.post_on(&Dying(&sales.db, Cell::new(writes)), &lock));
        }
        Ev::Return(at, repeat) => {
            if let Some(lock) = nth_lock(sales, at) {
                returns(sales, &lock, repeat);
            }
        }
        // Valid only in the slot after the newest block, which is over.
        Ev::Hold(at) => {
            let without = |escrow: &Escrow| escrow.datum.state == State::FundsLocked;
            let Some(escrow) = nth(at).filter(without) else { return };
            let Some(rule) = Rule::find(Action::SetRefundRequested, &escrow.datum) else { return };
            let Some(next) = rule.next(&escrow.datum, sales.now(), 60_000, None) else { return };
            let (made, until) = ([sales.escrow_of(&next)], sales.ledger.tip().slot + 1);
            sales.ledger.add_to_mempool(Tx::unsigned(sales.unique().into(), &[escrow.utxo.reference], &made, until));
        }
        Ev::Lag => {
            if lag.is_none() {
                sales.ledger.stand_still();
                *lag = Some(sales.now())
            }
        }
        Ev::CatchUp => {
            sales.ledger.catch_up();
            *lag = None
        }
        Ev::Fork(Fork { depth, returned, other_answers, buyer_acts, is_longer }) => {
            if lag.is_some() || sales.ledger.blocks.borrow().len() < 8 {
                return;
            }
            let theirs = sales.ledger.blocks.borrow().clone();
            sales.ledger.roll_back(depth.into(), returned);
            if buyer_acts {
                happens(sales, &Ev::Buyer(0, true), lag, sold);
            }
            (0..depth + u8::from(is_longer)).for_each(|_| sales.ledger.mine());
            sales.ledger.beside(theirs, other_answers);
            tick(sales, &sales.db);
            sales.ledger.agree();
        }
        Ev::Public(buyer) => {
            if lag.is_none() && *sold < 12 && sales.now() < crate::support::NOON + 200_000 {
                *sold += 1;
                let lock = sales.sell_another(&person(buyer));
                let outbox = outbox::Outbox {
                    database: &sales.db,
                    chain: &sales.ledger,
                    hook: &market::transitions::statements,
                };
                let mut first = crate::support::entry(&sales.db, &lock);
                sales.ledger.calls.set(0);
                let _ = crate::support::block(outbox.submit_first(&mut first, None, sales.now()));
                sales.ledger.mine();
                sales.ledger.calls.set(0);
                let _ = crate::support::block(outbox.refresh(&mut first, None, outbox::Trust::Unproven, sales.now()));
                sales.ledger.calls.set(0);
            }
        }
        Ev::Forget(coins) => {
            let mut at = coins;
            sales.ledger.mempool.borrow_mut().retain(|_| {
                at = at.rotate_right(1);
                at & 1 == 1
            })
        }
    }
}

fn check(events: &[Ev]) -> Result<(), TestCaseError> {
    let sales = Sales::new();
    let (mut lag, mut sold) = (None, 0);
    for buyer in 11..14 {
        sales.sell_another(&person(buyer));
    }
    for event in events {
        happens(&sales, event, &mut lag, &mut sold);
        prop_assert_eq!(out_of_step(&sales.db), "", "after {:?}", event);
    }
    sales.ledger.catch_up();
    for _ in 0..110 {
        for _ in 0..3 {
            sales.ledger.mine();
        }
        for escrow in sales.open() {
            if disputed_over(&sales, &escrow) {
                sales.settle(&escrow);
            }
        }
        tick(&sales, &sales.db);
    }
    for _ in 0..70 {
        for _ in 0..3 {
            sales.ledger.mine();
        }
        tick(&sales, &sales.db);
    }
    let share = creator_share(Lovelace::new(PRICE).unwrap());
    let blocks = sales.ledger.blocks.borrow();
    let made: Vec<&Utxo> = blocks.iter().flat_map(|b| &b.txs).flat_map(|tx| &tx.utxos.created).collect();
    let paid = made.iter().filter(|utxo| utxo.address == creator().to_string() && utxo.value.lovelace == share).count();
    let fresh = made
        .iter()
        .filter_map(|utxo| Escrow::read((*utxo).clone(), &sales.deployment).ok())
        .filter(|e| e.datum.state == State::FundsLocked)
        .count();
    drop(blocks);
    let left = sales.open();
    let withdrawn: usize =
        one(&sales.db, "SELECT CAST(count(*) AS TEXT) FROM purchases WHERE status = 'withdrawn'").parse().unwrap();
    prop_assert_eq!(paid, fresh - left.len(), "creators paid; {} locks, {} open", fresh, left.len());
    prop_assert_eq!(withdrawn, fresh - left.len(), "told");
    let late = left.iter().filter(|e| e.datum.has_result()).count();
    prop_assert_eq!(late, 0, "stuck with a result: {:?}", left.iter().map(|e| e.datum.state).collect::<Vec<_>>());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, max_shrink_iters: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    #[ignore = "takes long: make load runs it"]
    fn each_creator_is_paid_once(events in proptest::collection::vec(ev(), 5..90)) {
        check(&events)?;
    }
}
