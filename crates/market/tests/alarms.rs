//! Alarms of a watcher that cannot act, raised at every tick while their cause lasts.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use api_types::{Alarm, AlarmName};
use cardano::{ScriptHash, keys::SigningKey};
use escrow::{Action, Deployment};
use market::{
    chain_state::ClockLead,
    contents::InDatabase,
    status::{self, StoredStatus, TickOutcome},
    watch::{ArbiterClient, Keys, ServiceWallet, Watch},
};

use sql::Database;

use crate::support::{NOON, block, ledger::CALLS, person, sales::Sales, sign_up};

/// Keys of a watcher: the seller's, and that of every service wallet.
struct Holding {
    seller: Option<SigningKey>,
    buyer: Option<SigningKey>,
}

impl Keys for Holding {
    fn seller(&self) -> Option<&SigningKey> {
        self.seller.as_ref()
    }
    fn buyer(&self, _: &ServiceWallet) -> Option<SigningKey> {
        self.buyer.clone()
    }
}

impl ArbiterClient for Holding {
    async fn resolve(
        &self,
        _: &api_types::arbiter::ResolveRequest,
    ) -> Result<api_types::arbiter::ResolveResult, String> {
        Err("status 401".into())
    }
}

/// Returns the alarms of a watcher with this key and contract.
fn cried(sales: &Sales, key: Option<SigningKey>, deployment: Option<&Deployment>, sells: bool) -> Vec<String> {
    cried_with(sales, &Holding { seller: key, buyer: Some(person(9)) }, deployment, sells)
}

fn cried_with(sales: &Sales, holding: &Holding, deployment: Option<&Deployment>, sells: bool) -> Vec<String> {
    sales.ledger.calls.set(0);
    let watch = Watch {
        database: &sales.db,
        chain: &sales.ledger,
        contents: &InDatabase(&sales.db),
        keys: holding,
        arbiter: holding,
        deployment,
        sells,
        lead: ClockLead::Bounded,
        number: 1,
        now: sales.now(),
        calls_left: &|| CALLS.saturating_sub(sales.ledger.calls.get()),
    };
    block(watch.tick()).unwrap().alarms.into_iter().map(|alarm| alarm.message).collect()
}

#[test]
fn a_watcher_without_the_right_key_or_contract_alarms_at_every_tick() {
    let sales = Sales::new();
    let own = || Some(person(2));
    let elsewhere = Deployment { script_hash: ScriptHash::new([0xdd; 28]), ..sales.deployment.clone() };
    let here = Some(&sales.deployment);
    assert_eq!(cried(&sales, None, None, true), Vec::<String>::new(), "nothing is sold yet");
    let lock = sales.sell(&person(9));
    sales.ledger.mine();
    sales.includes(&lock);
    for _ in 0..2 {
        let says = |key, deployment, words: &str| {
            let cried = cried(&sales, key, deployment, true);
            assert!(cried.iter().any(|alarm| alarm.contains(words)), "{words}: {cried:?}");
        };
        says(None, here, "SELLER_SECRET is not set here");
        says(own(), None, "ESCROW_DEPLOYMENT is not set here");
        says(Some(person(4)), here, "has another seller than the watcher's SELLER_SECRET");
        says(own(), Some(&elsewhere), "is at another contract than the watcher's ESCROW_DEPLOYMENT");
        let off = cried(&sales, None, None, false);
        assert!(
            off.iter().any(|alarm| alarm.contains("SELLER_AGENT is off, and 1 escrows or more are open")),
            "{off:?}"
        );
    }
    assert_eq!(cried(&sales, own(), here, true), Vec::<String>::new());
}

#[test]
fn a_watcher_without_a_service_wallets_key_alarms_at_every_tick() {
    let sales = Sales::new();
    let (account, key) = sign_up(&sales.db, 1, NOON);
    let lock = sales.sell(&key);
    sales.ledger.mine();
    sales.includes(&lock);
    let wallet = account.wallet_address.to_string();
    let with = |buyer| cried_with(&sales, &Holding { seller: Some(person(2)), buyer }, Some(&sales.deployment), true);
    for _ in 0..2 {
        let cried = with(None);
        let named = cried.iter().any(|alarm| alarm.contains(&wallet) && alarm.contains("master secret"));
        assert!(named, "{cried:?}");
    }
    assert_eq!(with(Some(key)), Vec::<String>::new());
}

#[test]
fn a_dispute_that_is_not_decided_in_time_alarms_at_every_tick() {
    let sales = Sales::new();
    let lock = sales.sell(&person(11));
    sales.ticks(3);
    sales.does(&lock, Action::SetRefundRequested);
    sales.ticks(2);
    sales.until(8);
    sales.ticks(1);
    assert_eq!(sales.status(&lock), "Disputed");
    let late = |sales: &Sales| {
        let cried = cried(sales, Some(person(2)), Some(&sales.deployment), true);
        cried.iter().any(|alarm| alarm.contains(&format!("the dispute of {lock} is not settled in time")))
    };
    let unlock = sales.escrow(&lock).datum.deadlines.external_dispute_unlock;
    let minutes = unlock.saturating_sub(NOON).div_ceil(60_000);
    sales.until(minutes.saturating_add(5));
    assert!(!late(&sales));
    sales.until(minutes.saturating_add(11));
    for _ in 0..3 {
        assert!(late(&sales));
        sales.ledger.mine();
    }
}

#[test]
fn the_status_tells_how_many_escrows_are_open_and_which_deadline_comes_first() {
    let sales = Sales::new();
    let read = || block(status::read(&sales.db, sales.now())).unwrap();
    assert_eq!((read().open_escrows, read().oldest_deadline), (0, None));
    assert_eq!(read().vitals.last_tick(), None);
    let lock = sales.sell(&person(11));
    sales.ticks(3);
    let deadlines = sales.escrow(&lock).datum.deadlines;
    let StoredStatus { open_escrows: open, oldest_deadline: deadline, .. } = read();
    let deadline = deadline.unwrap();
    assert_eq!((open, deadline.purchase, deadline.at), (1, lock, deadlines.unlock));
    let alarm = Alarm::new(AlarmName::DisputeLate, "a dispute");
    let told = TickOutcome { alarms: vec![alarm.clone()], ..TickOutcome::default() };
    for calls in [3, 4] {
        block(sales.db.execute(status::note_tick(told.clone(), None, calls, sales.now()))).unwrap();
    }
    let status = read();
    assert_eq!((status.vitals.watcher_calls(), status.vitals.last_tick().unwrap().at), (7, sales.now()));
    assert_eq!(status.vitals.alarms(&[], ClockLead::Bounded, sales.now()), [alarm]);
}
