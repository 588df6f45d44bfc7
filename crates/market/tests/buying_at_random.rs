//! A listing is paid for once, and an account's spending is counted, however requests, ticks and rollbacks interleave
//! and whatever the provider answers.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::panic,
    reason = "test"
)]
use crate::support::{
    NOON, SELLER, block, checkout,
    idle::Idle,
    interrupted::Interrupted,
    ledger::{CALLS, Ledger, Tx, faucets},
    list, person,
    provider::{Meanwhile, Provider, SubmitOutcome},
    reread,
    sales::output,
    sign_up,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::{
    Address, Lovelace,
    chain::Utxo,
    keys::SigningKey,
    params::ProtocolParameters,
    tx::build::{NewOutput, TxPlan, Validity, Wallet, build},
};
use market::{
    DeliveryMode, ListingId,
    account::{self, Account},
    catalogue::{self, ListingTerms},
    chain_state::ClockLead,
    checkout::{Checkout, Order, Presented},
    contents::InDatabase,
    watch::Watch,
    withdraw::withdraw,
};
use proptest::prelude::*;
use serde_json::json;
use sql::{Database, sqlite::Sqlite};
use x402_cardano::{
    method::{DefaultMethod, PaymentMethod},
    wire::ConfirmationPolicy,
};

#[derive(Clone, Debug)]
enum Ev {
    Buy(usize, u8, bool),
    Beside(usize, usize, u8, u8, u8, bool),
    Withdraw(u8),
    Own(usize, u8, usize),
    Mine(u8),
    Back(usize, u64),
    Tick,
    Still,
    CatchUp,
    Fund(u32),
    Forget,
}

fn ev() -> impl Strategy<Value = Ev> {
    prop_oneof![
        8 => (0..3usize, 0..10u8, any::<bool>()).prop_map(|(l, h, m)| Ev::Buy(l, h, m)),
        5 => (0..3usize, 0..3usize, 0..5u8, 0..10u8, 0..10u8, any::<bool>()).prop_map(|(a, b, at, h, g, m)| Ev::Beside(a, b, at, h, g, m)),
        1 => (0..10u8).prop_map(Ev::Withdraw),
        4 => (0..3usize, 0..10u8, any::<usize>()).prop_map(|(l, h, c)| Ev::Own(l, h, c)),
        6 => (1..3u8).prop_map(Ev::Mine),
        4 => (13..25u8).prop_map(Ev::Mine),
        1 => (100..200u8).prop_map(Ev::Mine),
        1 => (1..3usize, any::<u64>()).prop_map(|(b, c)| Ev::Back(b, c)),
        5 => Just(Ev::Tick), 2 => Just(Ev::Still), 2 => Just(Ev::CatchUp), 2 => (3..30u32).prop_map(Ev::Fund), 1 => Just(Ev::Forget),
    ]
}

const fn submit_outcome(number: u8) -> SubmitOutcome {
    match number {
        0 => SubmitOutcome::Limited,
        1 => SubmitOutcome::Late,
        2 => SubmitOutcome::Lost,
        3 | 4 => SubmitOutcome::Denied,
        _ => SubmitOutcome::Answered,
    }
}

struct World {
    db: Sqlite,
    provider: Provider,
    method: DefaultMethod,
    terms: Vec<ListingTerms>,
    account: Account,
    key: SigningKey,
    still: std::cell::Cell<Option<u64>>,
    count: std::cell::Cell<u32>,
    own: bool,
    log: std::cell::RefCell<Vec<String>>,
    secret: std::cell::Cell<u32>,
    later: std::cell::Cell<u64>,
}

fn terms_of(db: &Sqlite, listing: &ListingId) -> ListingTerms {
    block(db.fetch(catalogue::terms(listing))).unwrap().unwrap()
}

impl World {
    fn new(own: bool) -> Self {
        let (db, ledger) = (Sqlite::of(market::schema::MIGRATIONS).unwrap(), Ledger::new());
        let (account, key) = sign_up(&db, 1, NOON);
        block(
            db.execute::<()>(sql::write!("UPDATE accounts SET daily_budget = 500000000, max_per_payment = 100000000")),
        )
        .unwrap();
        let own_address = person(1).enterprise_address().to_string();
        assert_eq!(own_address, account.owner);
        let mut coins: Vec<Utxo> = [8, 9, 30, 15]
            .iter()
            .map(|ada| output(account.wallet_address.to_string(), Lovelace::from_ada(*ada), None))
            .collect();
        coins.extend([20, 25, 30].iter().map(|ada| output(own_address.clone(), Lovelace::from_ada(*ada), None)));
        assert!(ledger.add_to_mempool(Tx::unsigned(1, &[faucets(1)], &coins, u64::MAX)));
        ledger.mine();
        let method = DefaultMethod::new(api_types::NETWORK, ConfirmationPolicy::new(0).unwrap()).unwrap();
        let terms =
            (1..).zip([5, 6, 7]).map(|(n, ada): (u8, u64)| terms_of(&db, &list(&db, n, ada * 1_000_000))).collect();
        let account = reread(&db, 1, NOON);
        let provider = Provider::new(ledger);
        provider.shows_mempool.set(true);
        Self {
            provider,
            db,
            method,
            terms,
            account,
            key,
            still: Default::default(),
            count: std::cell::Cell::new(10),
            own,
            log: Default::default(),
            secret: Default::default(),
            later: Default::default(),
        }
    }
    fn now(&self) -> u64 {
        self.provider.ledger.tip().time_ms + self.later.get()
    }
    fn unique(&self) -> u32 {
        self.count.set(self.count.get() + 1);
        self.count.get()
    }
    fn buy_on(&self, database: &impl Database, listing: usize, mines: bool) {
        self.provider.ledger.calls.set(0);
        let now = self.now();
        let mine = || {
            if mines {
                self.provider.ledger.mine()
            }
        };
        let ways: [(DeliveryMode, &dyn PaymentMethod); 1] = [(DeliveryMode::Instant, &self.method)];
        let sleep = Meanwhile(&mine);
        let contents = InDatabase(&self.db);
        let mut nonce = [0; 32];
        nonce[..4].copy_from_slice(&self.unique().to_be_bytes());
        let order = Order {
            account: &self.account,
            key: &self.key,
            terms: &self.terms[listing],
            mode: DeliveryMode::Instant,
            agreed: None,
            nonce,
        };
        let done = block(
            Checkout { schedule: &[500, 500], ..checkout(database, &self.provider, &sleep, &contents, &ways, now) }
                .buy(&order),
        );
        self.log.borrow_mut().push(format!("buy {listing}: {done:?}"));
    }
    /// Outputs of the owner's own wallet.
    fn own_coins(&self) -> Vec<Utxo> {
        self.provider.ledger.unspent().into_iter().filter(|utxo| utxo.address == self.account.owner).collect()
    }
    /// A payment that the provider rejects but relays, retried every four seconds while it waits for its block.
    fn denied_and_retried(&self, retries: u32, pay: impl Fn()) {
        self.provider.submit_outcome.set(SubmitOutcome::Denied);
        pay();
        self.provider.submit_outcome.set(SubmitOutcome::Answered);
        for _ in 0..retries {
            self.later.set(self.later.get() + 4_000);
            pay();
        }
        self.later.set(0);
        self.provider.ledger.mine();
        assert_eq!(self.paid(0), 1);
    }
    fn own(&self, listing: usize, which: usize) {
        let mut coins = self.own_coins();
        coins.retain(|utxo| utxo.value.lovelace > Lovelace::from_ada(9));
        if coins.is_empty() {
            return;
        }
        self.own_with(listing, coins[which % coins.len()].clone());
    }
    fn own_with(&self, listing: usize, coin: Utxo) {
        let ledger = &self.provider.ledger;
        ledger.calls.set(0);
        let key = person(1);
        let address = key.enterprise_address();
        let terms = &self.terms[listing];
        let plan = TxPlan {
            outputs: vec![NewOutput::pay(SELLER.parse::<Address>().unwrap(), terms.price_lovelace)],
            validity: Validity { from: None, until: ledger.tip().slot + 200 + u64::from(self.unique() % 20) },
            ..TxPlan::default()
        };
        let wallet = Wallet { address, utxos: &[coin], reserved: &[].into() };
        let Ok(built) = build(&plan, &wallet, &ProtocolParameters::preprod()).and_then(|b| b.sign(&[&key])) else {
            return;
        };
        self.secret.set(self.secret.get() + 1);
        let header = json!({ "x402Version": 2, "accepted": self.method.listed(&terms.sale()).unwrap(), "payload": { "transaction": STANDARD.encode(&built.cbor), "nonce": built.facts.inputs.first().unwrap().to_string() }, "extensions": { "request-binding": { "info": { "secret": format!("0123456789abcdef{}", self.secret.get()) } } } });
        let header = STANDARD.encode(header.to_string());
        let now = self.now();
        let ways: [(DeliveryMode, &dyn PaymentMethod); 1] = [(DeliveryMode::Instant, &self.method)];
        let contents = InDatabase(&self.db);
        let none = || ();
        let sleep = Meanwhile(&none);
        let done = block(checkout(&self.db, &self.provider, &sleep, &contents, &ways, now).pay(
            terms,
            &Presented::read(&header, "network", None).unwrap(),
            None,
        ));
        self.log.borrow_mut().push(format!("own {listing} {}: {done:?}", built.facts.tx_id));
    }
    fn tick(&self) {
        let ledger = &self.provider.ledger;
        ledger.calls.set(0);
        let watch = Watch {
            database: &self.db,
            chain: ledger,
            contents: &InDatabase(&self.db),
            keys: &Idle,
            arbiter: &Idle,
            deployment: None,
            sells: true,
            lead: ClockLead::Bounded,
            number: 1,
            now: self.now(),
            calls_left: &|| CALLS.saturating_sub(ledger.calls.get()),
        };
        let _ = block(watch.tick());
    }
    fn withdraw(&self) {
        self.provider.ledger.calls.set(0);
        let done = block(withdraw(&self.db, &self.provider, &self.account, &self.key, self.now()));
        self.log.borrow_mut().push(format!("withdraw: {done:?}"));
    }
    fn paid(&self, listing: usize) -> usize {
        let terms = &self.terms[listing];
        let pays = |made: &Utxo| {
            made.address == terms.seller_address.to_string() && made.value.lovelace == terms.price_lovelace
        };
        let blocks = self.provider.ledger.blocks.borrow();
        blocks.iter().flat_map(|b| &b.txs).filter(|tx| tx.utxos.created.iter().any(pays)).count()
    }
    fn happens(&self, event: &Ev) {
        let ledger = &self.provider.ledger;
        if self.still.get().is_some_and(|since| self.now() > since + 30 * 60_000) {
            ledger.catch_up();
            self.still.set(None)
        }
        const AT: [&str; 5] = [
            "INSERT INTO outbox ",
            "UPDATE outbox SET state",
            "UPDATE outbox SET attempts",
            "UPDATE outbox SET state = 'included'",
            "SELECT outbox.tx_id, outbox.kind",
        ];
        match *event {
            Ev::Buy(listing, how, mines) => {
                self.provider.submit_outcome.set(submit_outcome(how));
                self.buy_on(&self.db, listing, mines)
            }
            Ev::Beside(a, b, at, how, other, mines) => {
                self.provider.submit_outcome.set(submit_outcome(how));
                let beside = || {
                    self.provider.submit_outcome.set(submit_outcome(other));
                    if b == 2 && other == 9 {
                        self.withdraw()
                    } else {
                        self.buy_on(&self.db, b, mines)
                    }
                    self.provider.submit_outcome.set(submit_outcome(how))
                };
                self.buy_on(&Interrupted::before(&self.db, AT[usize::from(at)], beside).may_miss(), a, false)
            }
            Ev::Withdraw(how) => {
                self.provider.submit_outcome.set(submit_outcome(how));
                self.withdraw()
            }
            Ev::Own(listing, how, which) => {
                if self.own {
                    self.provider.submit_outcome.set(submit_outcome(how));
                    self.own(listing, which)
                }
            }
            Ev::Mine(count) => {
                for _ in 0..count {
                    if self.still.get().is_some_and(|since| self.now() > since + 30 * 60_000) {
                        ledger.catch_up();
                        self.still.set(None)
                    }
                    ledger.mine()
                }
            }
            Ev::Back(blocks, coins) => {
                if self.still.get().is_none() && ledger.blocks.borrow().len() > 8 {
                    ledger.roll_back(blocks, coins | 1);
                    for _ in 0..=blocks {
                        ledger.mine()
                    }
                }
            }
            Ev::Tick => {
                self.provider.submit_outcome.set(SubmitOutcome::Answered);
                self.tick()
            }
            Ev::Still => {
                if self.still.get().is_none() && !self.own {
                    ledger.stand_still();
                    self.still.set(Some(self.now()))
                }
            }
            Ev::CatchUp => {
                ledger.catch_up();
                self.still.set(None)
            }
            Ev::Fund(ada) => {
                let coin = output(self.account.wallet_address.to_string(), Lovelace::from_ada(ada), None);
                ledger.add_to_mempool(Tx::unsigned(self.unique().into(), &[faucets(self.unique())], &[coin], u64::MAX));
            }
            Ev::Forget => {
                if !self.own {
                    ledger.mempool.borrow_mut().clear()
                }
            }
        }
    }
}

fn check(own: bool, events: &[Ev]) -> Result<(), TestCaseError> {
    let world = World::new(own);
    for event in events {
        world.log.borrow_mut().push(format!("-- {event:?} at {} s", (world.now() - NOON) / 1_000));
        world.happens(event);
    }
    world.provider.ledger.catch_up();
    world.provider.submit_outcome.set(SubmitOutcome::Answered);
    for _ in 0..10 {
        world.provider.ledger.mine();
        world.tick()
    }
    for _ in 0..20 {
        for _ in 0..3 {
            world.provider.ledger.mine()
        }
        world.tick()
    }
    for listing in 0..3 {
        let paid = world.paid(listing);
        prop_assert!(paid <= 1, "listing {} paid {} times\n{}", listing, paid, world.log.borrow().join("\n"));
        // A payer who returns learns whether the payment is in a block.
        if paid == 1 && !own {
            world.buy_on(&world.db, listing, true);
            world.buy_on(&world.db, listing, true);
            let last = world.log.borrow().last().unwrap().clone();
            prop_assert!(last.contains("Ok("), "listing {}\n{}", listing, world.log.borrow().join("\n"));
            prop_assert_eq!(world.paid(listing), 1, "paid again\n{}", world.log.borrow().join("\n"));
        }
    }
    // The counted spending equals the amounts paid out of the wallet.
    let spent = block(account::view(&world.db, &crate::support::token(1), Lovelace::ZERO, NOON))
        .unwrap()
        .unwrap()
        .limits
        .spent_today_lovelace
        .get();
    let mut out = 0;
    for tx in world.provider.ledger.blocks.borrow().iter().flat_map(|b| &b.txs) {
        let ours: Option<String> = block(world.db.fetch(sql::read!("SELECT p.tx_id FROM payments p JOIN outbox o ON o.tx_id = p.tx_id WHERE p.tx_id = ?1 AND owner IS NOT NULL AND o.state = 'included'", tx.id))).unwrap();
        if ours.is_some() {
            out += tx.utxos.created.iter().filter(|m| m.address == SELLER).map(|m| m.value.lovelace.get()).sum::<u64>()
        }
    }
    prop_assert!(spent >= out, "counted {spent}, paid {out}\n{}", world.log.borrow().join("\n"));
    Ok(())
}

fn cases() -> ProptestConfig {
    ProptestConfig { cases: 16, max_shrink_iters: 3000, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]
    #[test]
    #[ignore = "takes long: make load runs it"]
    fn a_service_wallet_pays_once_under_any_provider_answers(events in proptest::collection::vec(ev(), 3..50)) { check(false, &events)?; }
    #[test]
    #[ignore = "takes long: make load runs it"]
    fn an_owner_who_pays_beside_the_service_wallet_pays_once(events in proptest::collection::vec(ev(), 3..50)) { check(true, &events)?; }
}

/// Requests it once more, hours later.
#[test]
fn retries_hours_later_do_not_hide_an_earlier_payment() {
    for retries in [2, 3, 6] {
        let world = World::new(false);
        world.denied_and_retried(retries, || world.buy_on(&world.db, 0, false));
        // The provider is up to date, and ticks run.
        for _ in 0..65 {
            for _ in 0..3 {
                world.provider.ledger.mine()
            }
            world.tick();
        }
        world.buy_on(&world.db, 0, true);
        world.buy_on(&world.db, 0, true);
        world.provider.ledger.mine();
        assert_eq!(world.paid(0), 1, "after {retries} retries");
    }
}

/// The owner's own wallet pays with another output, minutes later.
#[test]
fn retries_with_another_output_do_not_hide_an_outside_payment() {
    for retries in [2, 3, 6] {
        let world = World::new(true);
        world.provider.shows_mempool.set(false);
        let coins = world.own_coins();
        world.denied_and_retried(retries, || world.own_with(0, coins[0].clone()));
        for _ in 0..3 {
            world.provider.ledger.mine();
        }
        // The provider shows the block and its mempool.
        world.provider.shows_mempool.set(true);
        world.own_with(0, coins[1].clone());
        world.provider.ledger.mine();
        assert_eq!(world.paid(0), 1, "after {retries} retries");
    }
}

/// The owner's own wallet signs for the payment instead.
#[test]
fn retries_do_not_hide_an_outside_payment_that_its_payer_signs_for() {
    for retries in [2, 3, 6] {
        let world = World::new(true);
        world.provider.shows_mempool.set(false);
        let coins = world.own_coins();
        world.denied_and_retried(retries, || world.own_with(0, coins[0].clone()));
        for _ in 0..3 {
            world.tick();
            world.provider.ledger.mine();
        }
        world.tick();
        let none = || ();
        let (sleep, contents) = (Meanwhile(&none), InDatabase(&world.db));
        let again = block(
            Checkout { schedule: &[], ..checkout(&world.db, &world.provider, &sleep, &contents, &[], world.now()) }
                .redeliver(&world.terms[0], &world.account.keys()[1..]),
        )
        .unwrap();
        assert!(again.is_some(), "after {retries} retries");
    }
}
