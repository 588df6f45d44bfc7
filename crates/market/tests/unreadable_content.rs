//! Payments whose content cannot be read when it is due.

#![allow(clippy::unwrap_used, clippy::panic, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

use std::{cell::Cell, collections::BTreeSet};

use crate::support::{
    block, checkout, deployment, entry,
    ledger::{Ledger, Tx, faucets},
    list, person,
    provider::{Meanwhile, Provider},
    sales::output,
    without_echoes,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::{
    ContentHash, Lovelace, TxHash, TxRef,
    chain::Utxo,
    keys::{Native, SigningKey},
    params::ProtocolParameters,
    slots::SlotConfig,
    tx::build::{TxPlan, Validity, Wallet, build},
};
use market::{
    DeliveryMode,
    catalogue::{self, ListingTerms},
    checkout::{Checkout, PaidContent, PayError, PaymentOption, Presented},
    contents::{Contents, ContentsError, InDatabase},
    result_poster::Seller,
    transitions,
};
use outbox::{Outbox, Trust};
use serde_json::json;
use sql::{Database, sqlite::Sqlite};
use x402_cardano::{
    escrow::TransferMethod,
    method::{DefaultMethod, EscrowMethod, PaymentMethod},
    wire::ConfirmationPolicy,
};

pub struct World {
    pub db: Sqlite,
    pub provider: Provider,
    pub escrow: EscrowMethod,
    /// The platform, whose wallet pays for results.
    pub seller: SigningKey,
    pub instant: DefaultMethod,
    pub terms: ListingTerms,
    pub header: String,
    pub tx: TxHash,
    /// Number of reads of paid content that fail, because no memory was free for ten seconds or the store failed.
    failing: Cell<u32>,
    /// Whether the payer's network has used up its reads.
    read_up: Cell<bool>,
    /// Number of times that a request has waited.
    slept: Cell<u32>,
}

pub struct Store<'a>(pub &'a World);

impl Contents for Store<'_> {
    async fn put(&self, _: &ContentHash, _: &str) -> Result<(), ContentsError> {
        Ok(())
    }

    fn reading(&self, hash: &ContentHash) -> Option<sql::Read<Option<String>>> {
        InDatabase(&self.0.db).reading(hash)
    }

    async fn get(&self, hash: &ContentHash) -> Result<Option<String>, ContentsError> {
        if self.0.read_up.get() {
            return Err(ContentsError::TooMuch);
        }
        InDatabase(&self.0.db).get(hash).await
    }

    async fn bought(&self, hash: &ContentHash, _: &TxHash) -> Result<Option<String>, ContentsError> {
        if self.0.failing.get() > 0 {
            self.0.failing.set(self.0.failing.get() - 1);
            return Err(ContentsError::Store("too many contents are read at once".into()));
        }
        InDatabase(&self.0.db).get(hash).await
    }
}

impl World {
    pub fn new(mode: DeliveryMode, bytes: usize) -> Self {
        let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
        let listing = list(&db, 1, 5_000_000);
        block(db.execute::<()>(sql::write!("UPDATE contents SET content = ?1", "x".repeat(bytes)))).unwrap();
        let terms: ListingTerms = block(db.fetch(catalogue::terms(&listing))).unwrap().unwrap();
        let terms = ListingTerms { modes: vec![mode], ..terms };
        let policy = ConfirmationPolicy::IN_BLOCK;
        let escrow =
            EscrowMethod::new(api_types::NETWORK, deployment(), person(2), TransferMethod::Escrow, policy).unwrap();
        let provider = Provider::new(Ledger::new());
        let payer = person(9);
        let address = payer.enterprise_address();
        let coin = output(address.to_string(), Lovelace::from_ada(100), None);
        let fees = output(person(2).enterprise_address().to_string(), Lovelace::from_ada(100), None);
        let funds = Tx::unsigned(1, &[faucets(1)], &[coin.clone(), fees], u64::MAX);
        let coin = Utxo { reference: TxRef { tx: funds.id, index: 0 }, ..coin };
        assert!(provider.ledger.add_to_mempool(funds));
        provider.ledger.mine();
        let instant = DefaultMethod::new(api_types::NETWORK, policy).unwrap();
        let tip = provider.ledger.tip();
        let method: &dyn PaymentMethod = if mode == DeliveryMode::Instant { &instant } else { &escrow };
        let offered = method.offer(&terms.sale(), tip.time_ms, [5; 32]).unwrap();
        let parameters = ProtocolParameters::preprod();
        let paid = method.output(&offered, &address, None, &parameters, &SlotConfig::PREPROD).unwrap();
        let until = paid.latest_end_slot.min(tip.slot + 200);
        let plan = TxPlan { outputs: vec![paid.output], validity: Validity { from: None, until }, ..TxPlan::default() };
        let wallet = Wallet { address, utxos: std::slice::from_ref(&coin), reserved: &BTreeSet::new() };
        let built = build(&plan, &wallet, &parameters).unwrap().sign(&[&payer]).unwrap();
        let header = json!({
            "x402Version": 2,
            "accepted": offered.requirements,
            "payload": { "transaction": STANDARD.encode(&built.cbor), "nonce": coin.reference.to_string() },
            "extensions": { "request-binding": { "info": { "secret": "0123456789abcdef" } } },
        });
        let header = STANDARD.encode(header.to_string());
        let (failing, read_up, slept) = Default::default();
        Self {
            db,
            provider,
            escrow,
            seller: person(2),
            instant,
            terms,
            header,
            tx: built.facts.tx_id,
            failing,
            read_up,
            slept,
        }
    }

    /// The payer's request; `mines` tells whether a block is made while it waits.
    fn pay(&self, mines: bool) -> Result<PaidContent, PayError> {
        self.pay_with(mines, true, 0)
    }

    fn pay_with(&self, mines: bool, posts: bool, confirmations: u64) -> Result<PaidContent, PayError> {
        let meanwhile = || {
            self.slept.set(self.slept.get() + 1);
            if mines {
                self.provider.ledger.mine();
            }
        };
        let sleep = Meanwhile(&meanwhile);
        let run = async |checkout: &Asked<'_, Sqlite>| {
            checkout.pay(&self.terms, &Presented::read(&self.header, "network", None).unwrap(), None).await
        };
        let store = Store(self);
        let ways = self.ways();
        let checkout = self.checkout(&self.db, &sleep, &store, &ways);
        let seller = checkout.seller.filter(|_| posts);
        block(run(&Checkout { seller, confirmations, ..checkout }))
    }

    pub fn ways(&self) -> [PaymentOption<'_>; 2] {
        [(DeliveryMode::Instant, &self.instant), (DeliveryMode::Protected, &self.escrow)]
    }

    /// A checkout as of the newest block, on this database.
    pub fn checkout<'a, D>(
        &'a self,
        database: &'a D,
        sleep: &'a Meanwhile<'a>,
        contents: &'a Store<'a>,
        ways: &'a [PaymentOption<'a>],
    ) -> Asked<'a, D> {
        self.provider.ledger.calls.set(0);
        let now = self.provider.ledger.tip().time_ms;
        Checkout {
            seller: Some(Seller { deployment: self.escrow.deployment(), key: &self.seller }),
            schedule: &[500; 9],
            ..checkout(database, &self.provider, sleep, contents, ways, now)
        }
    }
}

/// A checkout on a database.
pub type Asked<'a, D> = Checkout<'a, D, Provider, Native, Meanwhile<'a>, Store<'a>>;

/// Longer than contents that are read in the batch of a claim.
const LONG: usize = (64 << 10) + 1;

#[test]
fn content_that_could_not_be_read_is_delivered_at_the_next_request() {
    for mode in [DeliveryMode::Instant, DeliveryMode::Protected] {
        let world = World::new(mode, LONG);
        world.failing.set(1);
        let first = world.pay(true);
        assert!(matches!(first, Err(PayError::Unavailable(_))), "{mode:?}: {:?}", first.map(|_| ()));
        let again = world.pay(true);
        assert!(again.is_ok(), "{mode:?}, paid and never delivered: {again:?}");
    }
}

#[test]
fn paid_content_is_delivered_though_the_network_used_up_its_reads() {
    for mode in [DeliveryMode::Instant, DeliveryMode::Protected] {
        for bytes in [9, LONG] {
            let world = World::new(mode, bytes);
            world.read_up.set(true);
            let paid = world.pay(true);
            assert!(paid.is_ok(), "{mode:?}, {bytes} bytes: {paid:?}");
        }
    }
}

#[test]
fn a_payer_told_to_retry_gets_the_content_though_the_network_used_up_its_reads() {
    for mode in [DeliveryMode::Instant, DeliveryMode::Protected] {
        for bytes in [9, LONG] {
            let world = World::new(mode, bytes);
            world.read_up.set(true);
            let first = world.pay(false);
            assert!(matches!(first, Err(PayError::NotSettled(..))), "{mode:?}: {:?}", first.map(|_| ()));
            world.provider.ledger.mine();
            let again = world.pay(true);
            assert!(again.is_ok(), "{mode:?}, {bytes} bytes: {again:?}");
        }
    }
}

#[test]
fn a_retry_without_provider_calls_left_does_not_wait_and_a_new_payment_does() {
    let world = World::new(DeliveryMode::Instant, 9);
    world.provider.used_up.set(true);
    let first = world.pay(true);
    assert!(matches!(first, Err(PayError::NotSettled(..))), "{:?}", first.map(|_| ()));
    assert_eq!(world.slept.replace(0), 9, "more may be asked in a moment");
    let again = world.pay(true);
    assert!(matches!(again, Err(PayError::NotSettled(..))), "{:?}", again.map(|_| ()));
    assert_eq!(world.slept.get(), 0, "asked once");
    world.provider.used_up.set(false);
    assert!(world.pay(true).is_ok());
}

/// A header without echoed extensions, as some clients send it.
fn without_secret(mode: DeliveryMode) -> World {
    let mut world = World::new(mode, 9);
    world.header = without_echoes(&world.header);
    world
}

#[test]
fn content_delivered_by_a_signature_is_not_opened_by_a_rebuilt_header() {
    let world = without_secret(DeliveryMode::Instant);
    world.provider.used_up.set(true);
    assert!(matches!(world.pay(true), Err(PayError::NotSettled(..))), "its network may ask no more");
    world.provider.used_up.set(false);
    world.provider.ledger.mine();
    // As found by the watcher.
    let mut paid = entry(&world.db, &world.tx);
    let outbox = Outbox { database: &world.db, chain: &world.provider, hook: &transitions::statements };
    world.provider.ledger.calls.set(0);
    block(outbox.refresh(&mut paid, None, Trust::Unproven, world.provider.ledger.tip().time_ms)).unwrap();
    (0..200).for_each(|_| world.provider.ledger.mine());
    let made_again = world.pay(true);
    assert!(made_again.is_err(), "{made_again:?}");
}

#[test]
fn a_client_without_extensions_gets_content_that_waits_for_twenty_blocks() {
    let world = without_secret(DeliveryMode::Instant);
    let mut told = vec![];
    for _ in 0..6 {
        match world.pay_with(true, true, 20) {
            Ok(_) => return,
            Err(error) => told.push(error.to_string()),
        }
    }
    panic!("paid, asked again at once as told, and never delivered: {told:#?}");
}

#[test]
fn a_client_without_extensions_gets_content_that_waits_for_its_result() {
    let world = without_secret(DeliveryMode::Protected);
    let mut told = vec![];
    // Each request takes minutes; the result is posted in the third.
    for _ in 0..2 {
        match world.pay_with(true, false, 0) {
            Ok(_) => panic!("there is no result"),
            Err(error) => told.push(error.to_string()),
        }
        (0..3).for_each(|_| world.provider.ledger.mine());
    }
    let paid = world.pay_with(true, true, 0);
    assert!(paid.is_ok(), "paid, the result is posted, and never delivered: {paid:?} after {told:#?}");
}
