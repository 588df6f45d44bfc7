//! An account's service wallet and its owner's own wallet are one buyer, whichever pays first.

#![allow(clippy::unwrap_used, clippy::panic, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

use crate::support::{
    NOON, SELLER, block,
    ledger::{Ledger, Tx, faucets},
    list, person,
    provider::{Meanwhile, Provider},
    reread,
    sales::output,
    sign_up,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::{
    Address, Lovelace, TxRef,
    chain::Utxo,
    keys::{Native, SigningKey},
    params::ProtocolParameters,
    tx::build::{NewOutput, TxPlan, Validity, Wallet, build},
};
use market::{
    DeliveryMode,
    account::Account,
    catalogue::{self, ListingTerms},
    checkout::{Bought, BuyError, Checkout, Order, Paid, PayError, Presented, Redelivered, Unavailable},
    contents::InDatabase,
};
use serde_json::json;
use sql::{Database, sqlite::Sqlite};
use x402_cardano::{
    method::{DefaultMethod, PaymentMethod},
    wire::ConfirmationPolicy,
};

const PRICE: u64 = 5_000_000;

struct World {
    db: Sqlite,
    provider: Provider,
    method: DefaultMethod,
    terms: ListingTerms,
    account: Account,
    key: SigningKey,
    coin: Utxo,
}

impl World {
    fn new() -> Self {
        let (db, ledger) = (Sqlite::of(market::schema::MIGRATIONS).unwrap(), Ledger::new());
        let (account, key) = sign_up(&db, 1, NOON);
        let own = output(person(1).enterprise_address().to_string(), Lovelace::from_ada(50), None);
        let service = output(account.wallet_address.to_string(), Lovelace::from_ada(20), None);
        let funds = Tx::unsigned(1, &[faucets(1)], &[own.clone(), service], u64::MAX);
        let coin = Utxo { reference: TxRef { tx: funds.id, index: 0 }, ..own };
        assert!(ledger.hand_in(funds));
        ledger.mine();
        let listing = list(&db, 1, PRICE);
        let terms = block(db.run(catalogue::terms(&listing))).unwrap().first_json().unwrap().unwrap();
        let method = DefaultMethod::new(ConfirmationPolicy::new(0).unwrap()).unwrap();
        let account = reread(&db, 1, NOON);
        let provider = Provider::new(ledger);
        provider.shows_mempool.set(true);
        Self { db, provider, method, terms, account, key, coin }
    }

    fn with<T>(&self, mines: bool, run: impl FnOnce(&Door<'_>) -> T) -> T {
        let ledger = &self.provider.ledger;
        ledger.calls.set(0);
        let now = ledger.tip().time_ms;
        let mine = || {
            if mines {
                ledger.mine();
            }
        };
        let checkout = Checkout {
            results: &(),
            database: &self.db,
            chain: &self.provider,
            signatures: &Native,
            sleep: &Meanwhile(&mine),
            contents: &InDatabase(&self.db),
            ways: &[(DeliveryMode::Instant, &self.method)],
            now,
            clock: now,
            schedule: &[500],
            confirmations: 0,
            hung_up: &|| false,
        };
        run(&checkout)
    }

    /// `POST /me/buy`, or an agent's `buy_listing`.
    fn service_wallet(&self, mines: bool) -> Result<Bought, BuyError> {
        let order = Order {
            account: &self.account,
            key: &self.key,
            terms: &self.terms,
            mode: DeliveryMode::Instant,
            nonce: [7; 32],
            network: "",
        };
        self.with(mines, |checkout| block(checkout.buy(&order)))
    }

    /// `GET /listings/{id}/unlock` with a payment of the account's owner, who signs it with their own wallet.
    fn own_wallet(&self, mines: bool, proven: Option<Address>) -> Result<Paid, PayError> {
        let key = person(1);
        assert_eq!(key.enterprise_address().to_string(), self.account.owner);
        let plan = TxPlan {
            outputs: vec![NewOutput::pay(SELLER.parse::<Address>().unwrap(), self.terms.price_lovelace)],
            validity: Validity { from: None, until: self.provider.ledger.tip().slot + 200 },
            ..TxPlan::default()
        };
        let wallet =
            Wallet { address: key.enterprise_address(), utxos: std::slice::from_ref(&self.coin), reserved: &[].into() };
        let built = build(&plan, &wallet, &ProtocolParameters::preprod()).unwrap().sign(&[&key]).unwrap();
        let header = json!({
            "x402Version": 2,
            "accepted": self.method.listed(&self.terms.sale()).unwrap(),
            "payload": {
                "transaction": STANDARD.encode(&built.cbor),
                "nonce": built.facts.inputs.first().unwrap().to_string(),
            },
            "extensions": { "request-binding": { "info": { "secret": "0123456789abcdef" } } },
        });
        let header = STANDARD.encode(header.to_string());
        self.with(mines, |checkout| {
            block(checkout.pay(&self.terms, &Presented::read(&header, "network").unwrap(), proven))
        })
    }

    fn owner_proves(&self) -> Result<Option<Redelivered>, Unavailable> {
        self.with(false, |checkout| block(checkout.redeliver(&self.terms, std::slice::from_ref(&self.account.owner))))
    }

    /// Payments for the listing, in blocks or waiting for one.
    fn paid(&self) -> usize {
        let ledger = &self.provider.ledger;
        let (blocks, mempool) = (ledger.blocks.borrow(), ledger.mempool.borrow());
        let pays = |made: &Utxo| made.address == SELLER && made.value.lovelace.get() == PRICE;
        let all = blocks.iter().flat_map(|block| &block.txs).chain(mempool.iter());
        all.filter(|tx| tx.utxos.made.iter().any(pays)).count()
    }
}

type Door<'a> = Checkout<'a, Sqlite, Provider, Native, Meanwhile<'a>, InDatabase<'a, Sqlite>>;

#[test]
fn what_the_owners_own_wallet_bought_is_not_paid_again_from_the_service_wallet() {
    let world = World::new();
    assert_eq!(world.own_wallet(true, None).unwrap().content, "content 1");
    assert!(world.service_wallet(true).unwrap().already_owned);
    assert_eq!(world.paid(), 1);
}

#[test]
fn what_the_service_wallet_bought_is_not_paid_again_by_its_owners_own_wallet() {
    let world = World::new();
    assert_eq!(world.service_wallet(true).unwrap().content, "content 1");
    let again = world.own_wallet(true, None);
    world.provider.ledger.mine();
    assert_eq!(world.paid(), 1);
    assert_eq!(again.unwrap().content, "content 1");
}

#[test]
fn what_the_service_wallet_is_paying_for_is_not_paid_by_its_owners_own_wallet_beside_it() {
    let world = World::new();
    assert!(matches!(world.service_wallet(false), Err(BuyError::Pending(_))));
    assert_eq!(world.paid(), 1);
    let again = world.own_wallet(true, None);
    world.provider.ledger.mine();
    assert_eq!(again.unwrap().content, "content 1");
    assert!(world.service_wallet(true).unwrap().already_owned);
    assert_eq!(world.paid(), 1);
}

#[test]
fn an_owners_signature_opens_what_the_service_wallet_bought() {
    let world = World::new();
    world.service_wallet(true).unwrap();
    assert_eq!(world.owner_proves().unwrap().unwrap().content, "content 1");
}
