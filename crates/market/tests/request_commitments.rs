//! Payments with a request commitment: they count as their payer's even if they were public before, and for no other
//! request.

#![allow(clippy::unwrap_used, clippy::panic, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::{
    Address, Lovelace, TxRef,
    chain::Utxo,
    params::ProtocolParameters,
    tx::build::{BuiltTx, NewOutput, TxPlan, Validity, Wallet, build},
};
use market::{
    DeliveryMode,
    catalogue::{self, ListingTerms},
    checkout::{PaidContent, PayError, Presented},
    contents::InDatabase,
};
use serde_json::{Map, Value, json};
use sql::{Database, sqlite::Sqlite};
use x402_cardano::{
    method::{DefaultMethod, PaymentMethod},
    request_commitment::{HttpRequest, RequestDigest, Salt},
    settlement::NotSettled,
    wire::ConfirmationPolicy,
};

use crate::support::{
    SELLER, block, checkout,
    ledger::{Ledger, Tx, faucets},
    list, person,
    provider::{Meanwhile, Provider},
    sales::output,
};

const PRICE: u64 = 5_000_000;
const SALT: Salt = Salt::new([5; 32]);

/// A transaction that commits to the request for one of two listings.
struct World {
    db: Sqlite,
    provider: Provider,
    method: DefaultMethod,
    terms: [ListingTerms; 2],
    built: BuiltTx,
}

impl World {
    fn new() -> Self {
        let (db, ledger) = (Sqlite::of(market::schema::MIGRATIONS).unwrap(), Ledger::new());
        let terms = [1, 2].map(|number| {
            let listing = list(&db, number, PRICE);
            block(db.fetch(catalogue::terms(&listing))).unwrap().unwrap()
        });
        let method = DefaultMethod::new(api_types::NETWORK, ConfirmationPolicy::new(0).unwrap()).unwrap();
        let key = person(9);
        let coin = output(key.enterprise_address().to_string(), Lovelace::from_ada(100), None);
        let funds = Tx::unsigned(1, &[faucets(1)], std::slice::from_ref(&coin), u64::MAX);
        let coin = Utxo { reference: TxRef { tx: funds.id, index: 0 }, ..coin };
        assert!(ledger.add_to_mempool(funds));
        ledger.mine();
        let plan = TxPlan {
            outputs: vec![NewOutput::pay(SELLER.parse::<Address>().unwrap(), Lovelace::new(PRICE).unwrap())],
            validity: Validity { from: None, until: ledger.tip().slot + 200 },
            auxiliary_data: Some(request(&terms[0]).salted(&SALT).auxiliary_data()),
            ..TxPlan::default()
        };
        let wallet = Wallet { address: key.enterprise_address(), utxos: &[coin], reserved: &BTreeSet::new() };
        let built = build(&plan, &wallet, &ProtocolParameters::preprod()).unwrap().sign(&[&key]).unwrap();
        Self { db, provider: Provider::new(ledger), method, terms, built }
    }

    /// The header of the transaction for a listing.
    fn header(&self, terms: &ListingTerms, extensions: Map<String, Value>) -> String {
        let header = json!({
            "x402Version": 2,
            "accepted": self.method.listed(&terms.sale()).unwrap(),
            "payload": {
                "transaction": STANDARD.encode(&self.built.cbor),
                "nonce": self.built.facts.inputs.first().unwrap().to_string(),
            },
            "extensions": extensions,
        });
        STANDARD.encode(header.to_string())
    }

    fn broadcast(&self) {
        assert!(
            self.provider.ledger.add_to_mempool(Tx::new(self.built.cbor.clone(), self.built.facts.valid_until_slot))
        );
    }

    fn pay(&self, terms: &ListingTerms, header: &str) -> Result<PaidContent, PayError> {
        let now = self.provider.ledger.tip().time_ms;
        let presented = Presented::read(header, "network", Some(&request(terms)))?;
        block(
            checkout(
                &self.db,
                &self.provider,
                &Meanwhile(&|| {
                    self.provider.ledger.mine();
                }),
                &InDatabase(&self.db),
                &[(DeliveryMode::Instant, &self.method)],
                now,
            )
            .pay(terms, &presented, None),
        )
    }
}

fn request(terms: &ListingTerms) -> RequestDigest {
    let url = format!("https://shop.example/listings/{}/unlock", terms.id);
    RequestDigest::of(&HttpRequest { method: "GET", url: &url, body: b"", headers: &[] }).unwrap()
}

fn code(paid: Result<PaidContent, PayError>) -> String {
    match paid {
        Err(PayError::Refused(refusal)) => refusal.code().to_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_client_with_the_salt_gets_the_content_of_a_public_payment() {
    for mined in [false, true] {
        let world = World::new();
        let [terms, _] = &world.terms;
        world.provider.shows_mempool.set(true);
        world.broadcast();
        if mined {
            world.provider.ledger.mine();
        }
        // A node rejects it as known; the request waits for its block.
        assert_eq!(world.pay(terms, &world.header(terms, SALT.disclosed())).unwrap().content, "content 1");
    }
}

#[test]
fn a_client_with_the_salt_gets_the_content_of_a_payment_refused_as_known() {
    let world = World::new();
    let [terms, _] = &world.terms;
    world.broadcast();
    let header = world.header(terms, SALT.disclosed());
    assert!(world.pay(terms, &header).is_err(), "the provider shows no mempool, and its node takes nothing twice");
    world.provider.ledger.mine();
    assert_eq!(world.pay(terms, &header).unwrap().content, "content 1");
}

#[test]
fn a_committed_payment_copied_from_the_chain_opens_nothing() {
    let world = World::new();
    let [terms, other] = &world.terms;
    world.broadcast();
    let thief = |salt: Option<Salt>, terms: &ListingTerms| {
        let extensions = salt.map(|salt| salt.disclosed()).unwrap_or_default();
        code(world.pay(terms, &world.header(terms, extensions)))
    };
    for _ in 0..2 {
        assert_eq!(thief(None, terms), "request_commitment_malformed");
        assert_eq!(thief(Some(Salt::new([6; 32])), terms), "request_commitment_mismatch");
        world.provider.ledger.mine();
    }
    // Its own payer cannot use it for another listing either.
    assert_eq!(thief(Some(SALT), other), "request_commitment_mismatch");
    assert!(world.pay(terms, &world.header(terms, SALT.disclosed())).is_ok(), "its payer lost nothing by it");
}

#[test]
fn a_committed_payment_delivers_to_its_header_for_ten_minutes() {
    let world = World::new();
    let [terms, _] = &world.terms;
    let pay = || world.pay(terms, &world.header(terms, SALT.disclosed()));
    assert!(pay().is_ok());
    assert!(pay().is_ok(), "the answer may be lost");
    (0..30).for_each(|_| world.provider.ledger.mine());
    let again = pay();
    assert!(matches!(&again, Err(error) if *error == NotSettled::Duplicate.into()), "{again:?}");
}

#[test]
fn a_commitment_that_cannot_be_checked_is_refused() {
    let world = World::new();
    let header = world.header(&world.terms[0], SALT.disclosed());
    assert_eq!(Presented::read(&header, "network", None).unwrap_err().code(), "request_commitment_mismatch");
}
