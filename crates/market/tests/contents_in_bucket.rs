//! Contents in a bucket: each read costs a tick one of its calls, most of which strangers' payments take.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

use crate::support::{NOON, block, ledger::CALLS, person, sales::Sales, sign_up, step};
use cardano::{ContentHash, TxHash};
use market::{
    DeliveryMode,
    chain_state::ClockLead,
    contents::{Contents, ContentsError, InDatabase},
    purchase::{self, Verification},
    watch::Watch,
};
use outbox::Decision;
use sql::Read;

struct Bucket<'a>(&'a Sales);

impl Contents for Bucket<'_> {
    async fn put(&self, _: &ContentHash, _: &str) -> Result<(), ContentsError> {
        Ok(())
    }

    fn reading(&self, _: &ContentHash) -> Option<Read<Option<String>>> {
        None
    }

    async fn get(&self, hash: &ContentHash) -> Result<Option<String>, ContentsError> {
        let calls = self.0.ledger.calls.get() + 1;
        if calls > CALLS {
            return Err(ContentsError::Store("no outside calls are left".into()));
        }
        self.0.ledger.calls.set(calls);
        InDatabase(&self.0.db).get(hash).await
    }
}

fn tick(sales: &Sales) {
    let before = sales.ledger.calls.replace(0);
    let watch = Watch {
        database: &sales.db,
        chain: &sales.ledger,
        contents: &Bucket(sales),
        keys: &sales.platform,
        arbiter: &sales.platform,
        deployment: Some(&sales.deployment),
        sells: true,
        lead: ClockLead::Bounded,
        number: 1,
        now: sales.now(),
        calls_left: &|| CALLS.saturating_sub(sales.ledger.calls.get()),
    };
    block(watch.tick()).unwrap();
    sales.ledger.calls.set(before);
}

/// Payments of a stranger that spends their inputs elsewhere; they are submitted again when they expire.
#[derive(Default)]
struct Stranger {
    open: Vec<u64>,
    number: u8,
}

impl Stranger {
    fn acts(&mut self, sales: &Sales) {
        let slot = sales.ledger.tip().slot;
        self.open.retain(|until| slot < until + 60);
        while self.open.len() < 8 {
            self.number = (self.number + 1) % 150;
            let mode = [DeliveryMode::Protected, DeliveryMode::Instant].into_iter().nth(self.open.len() % 2).unwrap();
            let tx = sales.pays_in_vain(&person(100 + self.number), mode, 230);
            step(&sales.db, &tx, &Decision::Accept);
            self.open.push(slot + 230);
        }
    }
}

fn have(sales: &Sales, locks: &[TxHash], status: &[&str]) -> usize {
    locks.iter().filter(|lock| status.contains(&sales.status(lock).as_str())).count()
}

#[test]
fn sales_are_collected_beside_any_number_of_a_strangers_open_escrows() {
    let sales = Sales::new();
    (0..12).for_each(|_| sales.fund(1_000));
    let sold: Vec<TxHash> = (0..12).map(|number| sales.sell_another(&person(20 + number))).collect();
    sales.ticks(12);
    assert_eq!(have(&sales, &sold, &["ResultSubmitted"]), 12);
    let mut stranger = Stranger::default();
    sales.until(32);
    stranger.acts(&sales);
    (0..9).for_each(|_| sales.ledger.mine());
    for _ in 0..60 {
        stranger.acts(&sales);
        (0..3).for_each(|_| sales.ledger.mine());
        tick(&sales);
    }
    assert_eq!(have(&sales, &sold, &["withdrawn", "withdrawing"]), 12);
}

#[test]
fn results_are_posted_beside_any_number_of_a_strangers_open_escrows() {
    let sales = Sales::new();
    (0..12).for_each(|_| sales.fund(1_000));
    let mut stranger = Stranger::default();
    let sold: Vec<TxHash> = (0..12).map(|number| sales.sell_another(&person(20 + number))).collect();
    sales.ledger.mine();
    for lock in &sold {
        sales.includes(lock);
    }
    while sales.now() < crate::support::NOON + 16 * 60_000 {
        stranger.acts(&sales);
        (0..3).for_each(|_| sales.ledger.mine());
        tick(&sales);
    }
    assert_eq!(have(&sales, &sold, &["ResultSubmitted"]), 12);
}

/// A buyer who changes the verdict again and again has the escrow checked in every tick, which reads nothing twice.
#[test]
fn sales_are_collected_though_buyers_change_their_verdicts_before_each_tick() {
    let mut sales = Sales::new();
    let (_, buyer) = sign_up(&sales.db, 1, NOON);
    sales.platform.wallets.push(buyer.clone());
    (0..12).for_each(|_| sales.fund(1_000));
    let honest: Vec<TxHash> = (0..8).map(|number| sales.sell_another(&person(20 + number))).collect();
    sales.ticks(8);
    sales.until(15);
    sales.issued.set(sales.now());
    let turned: Vec<TxHash> = (0..20).map(|_| sales.sell_another(&buyer)).collect();
    sales.ticks(12);
    assert_eq!(have(&sales, &turned, &["ResultSubmitted"]), 20);
    sales.until(32);
    for _ in 0..10 {
        for lock in &turned {
            for verdict in [Verification::Mismatch, Verification::Ok] {
                block(purchase::verify(&sales.db, lock, verdict)).unwrap();
            }
        }
        (0..3).for_each(|_| sales.ledger.mine());
        tick(&sales);
    }
    assert_eq!(have(&sales, &honest, &["withdrawn"]), 8);
}
