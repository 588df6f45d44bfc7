//! An account's service wallet and its owner's own wallet count as one buyer, whichever pays first, under any address
//! of their payment key, and after any number of failed payments.

#![allow(clippy::unwrap_used, clippy::panic, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

use std::slice;

use crate::support::{
    NOON, SELLER, block, checkout,
    ledger::{Ledger, Tx, faucets},
    list, person,
    provider::{Meanwhile, Provider, SubmitOutcome},
    reread,
    sales::output,
    sign_up, sign_up_as, token,
};
use api_types::Bought;
use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::{
    Address, Lovelace, TxRef,
    address::Credential,
    chain::Utxo,
    keys::{Native, SigningKey},
    params::ProtocolParameters,
    tx::build::{NewOutput, TxPlan, Validity, Wallet, build},
};
use market::{
    DeliveryMode,
    account::{self, Account},
    catalogue::{self, ListingTerms},
    checkout::{BuyError, Checkout, Order, PaidContent, PayError, Presented, Redelivered, Unavailable},
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
    /// The owner's account with another address of the payment key.
    sibling: (Account, SigningKey),
    /// Outputs of the owner's own wallet.
    coins: [Utxo; 2],
    /// An output at the other address.
    elsewhere: Utxo,
}

impl World {
    fn new() -> Self {
        let (db, ledger) = (Sqlite::of(market::schema::MIGRATIONS).unwrap(), Ledger::new());
        let (account, key) = sign_up(&db, 1, NOON);
        let own = output(person(1).enterprise_address().to_string(), Lovelace::from_ada(50), None);
        let of_sibling = output(base().to_string(), Lovelace::from_ada(50), None);
        let sibling = sign_up_as(&db, base(), SIBLING, NOON);
        let [service, other] = [account.wallet_address, sibling.0.wallet_address]
            .map(|wallet| output(wallet.to_string(), Lovelace::from_ada(20), None));
        let made = [own.clone(), own.clone(), of_sibling.clone(), service, other];
        let funds = Tx::unsigned(1, &[faucets(1)], &made, u64::MAX);
        let coins = [0, 1].map(|index| Utxo { reference: TxRef { tx: funds.id, index }, ..own.clone() });
        let elsewhere = Utxo { reference: TxRef { tx: funds.id, index: 2 }, ..of_sibling };
        assert!(ledger.add_to_mempool(funds));
        ledger.mine();
        let listing = list(&db, 1, PRICE);
        let terms = block(db.fetch(catalogue::terms(&listing))).unwrap().unwrap();
        let method = DefaultMethod::new(api_types::NETWORK, ConfirmationPolicy::new(0).unwrap()).unwrap();
        let account = reread(&db, 1, NOON);
        let provider = Provider::new(ledger);
        provider.shows_mempool.set(true);
        Self { db, provider, method, terms, account, key, sibling, coins, elsewhere }
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
        run(&checkout(
            &self.db,
            &self.provider,
            &Meanwhile(&mine),
            &InDatabase(&self.db),
            &[(DeliveryMode::Instant, &self.method)],
            now,
        ))
    }

    /// `POST /me/buy`, or an agent's `buy_listing`.
    fn service_wallet(&self, mines: bool) -> Result<Bought, BuyError> {
        self.service_wallet_of((&self.account, &self.key), mines)
    }

    fn service_wallet_of(&self, (account, key): (&Account, &SigningKey), mines: bool) -> Result<Bought, BuyError> {
        let order =
            Order { account, key, terms: &self.terms, mode: DeliveryMode::Instant, agreed: None, nonce: [7; 32] };
        self.with(mines, |checkout| block(checkout.buy(&order)))
    }

    /// `GET /listings/{id}/unlock` with a payment signed by the owner's own wallet.
    fn own_wallet(&self, mines: bool, proven: Option<Address>) -> Result<PaidContent, PayError> {
        self.own_wallet_with(&self.coins[..1], mines, proven)
    }

    fn own_wallet_with(&self, coins: &[Utxo], mines: bool, proven: Option<Address>) -> Result<PaidContent, PayError> {
        let key = person(1);
        assert_eq!(key.enterprise_address().to_string(), self.account.owner);
        let plan = TxPlan {
            outputs: vec![NewOutput::pay(SELLER.parse::<Address>().unwrap(), self.terms.price_lovelace)],
            validity: Validity { from: None, until: self.provider.ledger.tip().slot + 200 },
            ..TxPlan::default()
        };
        let address = coins.first().unwrap().address.parse().unwrap();
        let wallet = Wallet { address, utxos: coins, reserved: &[].into() };
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
            block(checkout.pay(&self.terms, &Presented::read(&header, "network", None).unwrap(), proven))
        })
    }

    fn owner_proves(&self) -> Result<Option<Redelivered>, Unavailable> {
        self.with(false, |checkout| block(checkout.redeliver(&self.terms, &[*self.account.keys().last().unwrap()])))
    }

    /// Payments for the listing that are included or pending.
    fn paid(&self) -> usize {
        let ledger = &self.provider.ledger;
        let (blocks, mempool) = (ledger.blocks.borrow(), ledger.mempool.borrow());
        let pays = |made: &Utxo| made.address == SELLER && made.value.lovelace.get() == PRICE;
        let all = blocks.iter().flat_map(|block| &block.txs).chain(mempool.iter());
        all.filter(|tx| tx.utxos.created.iter().any(pays)).count()
    }
}

type Door<'a> = Checkout<'a, Sqlite, Provider, Native, Meanwhile<'a>, InDatabase<'a, Sqlite>>;

/// Number of the other account's token.
const SIBLING: u8 = 2;

/// Another address of the owner's payment key.
fn base() -> Address {
    let (payment, stake) = (person(1).enterprise_address(), person(9).enterprise_address());
    Address::base(*payment.payment_key(), Credential::Key(*stake.payment_key()))
}

/// Under any of its addresses, the payment key owns the listing, and pays with none of these outputs.
fn is_owned_by_every_address(world: &World, unspent: &[&[Utxo]]) {
    assert_eq!(world.owner_proves().unwrap().unwrap().content, "content 1");
    for (account, key) in [(&world.account, &world.key), (&world.sibling.0, &world.sibling.1)] {
        assert!(world.service_wallet_of((account, key), true).unwrap().already_owned, "{}", account.owner);
    }
    for coins in unspent {
        assert_eq!(world.own_wallet_with(coins, true, None).unwrap().content, "content 1");
    }
    world.provider.ledger.mine();
    assert_eq!(world.paid(), 1);
    let views = [1, SIBLING]
        .map(|number| block(account::view(&world.db, &token(number), Lovelace::ZERO, NOON)).unwrap().unwrap());
    assert!(views.iter().all(|view| view.purchases.len() == 1));
}

#[test]
fn a_purchase_by_one_address_of_a_key_is_owned_by_all_its_addresses() {
    let world = World::new();
    world.own_wallet(true, None).unwrap();
    is_owned_by_every_address(&world, &[&world.coins[1..], slice::from_ref(&world.elsewhere)]);
    let world = World::new();
    world.own_wallet_with(slice::from_ref(&world.elsewhere), true, None).unwrap();
    is_owned_by_every_address(&world, &[&world.coins[..1]]);
}

#[test]
fn a_purchase_by_one_account_of_a_key_is_owned_by_its_other_account() {
    for first in [1, SIBLING] {
        let world = World::new();
        let (account, key) =
            if first == 1 { (&world.account, &world.key) } else { (&world.sibling.0, &world.sibling.1) };
        assert!(!world.service_wallet_of((account, key), true).unwrap().already_owned);
        is_owned_by_every_address(&world, &[&world.coins[..1], slice::from_ref(&world.elsewhere)]);
    }
}

#[test]
fn a_payment_on_its_way_from_one_address_is_not_made_again_from_another() {
    let world = World::new();
    assert!(world.own_wallet(false, None).is_err(), "no block has it");
    for _ in 0..2 {
        assert!(world.service_wallet_of((&world.sibling.0, &world.sibling.1), false).is_err());
        assert!(world.own_wallet_with(slice::from_ref(&world.elsewhere), false, None).is_err());
    }
    assert_eq!(world.paid(), 1);
    world.provider.ledger.mine();
    is_owned_by_every_address(&world, &[&world.coins[1..], slice::from_ref(&world.elsewhere)]);
}

#[test]
fn an_address_with_the_buyers_stake_part_alone_owns_nothing() {
    let world = World::new();
    world.own_wallet_with(slice::from_ref(&world.elsewhere), true, None).unwrap();
    let franken = Address::base(*person(3).enterprise_address().payment_key(), *base().stake().unwrap());
    let keys = [*franken.payment_key()];
    assert_eq!(world.with(false, |checkout| block(checkout.redeliver(&world.terms, &keys))), Ok(None));
    let (stranger, _) = sign_up_as(&world.db, franken, 3, NOON);
    assert_eq!(block(account::view(&world.db, &token(3), Lovelace::ZERO, NOON)).unwrap().unwrap().purchases, []);
    assert_ne!(stranger.wallet_address, world.sibling.0.wallet_address);
}

#[test]
fn a_purchase_by_the_owners_wallet_is_not_paid_again_from_the_service_wallet() {
    let world = World::new();
    assert_eq!(world.own_wallet(true, None).unwrap().content, "content 1");
    assert!(world.service_wallet(true).unwrap().already_owned);
    assert_eq!(world.paid(), 1);
}

#[test]
fn a_purchase_by_the_service_wallet_is_not_paid_again_by_the_owners_wallet() {
    let world = World::new();
    assert_eq!(world.service_wallet(true).unwrap().content, "content 1");
    let again = world.own_wallet(true, None);
    world.provider.ledger.mine();
    assert_eq!(world.paid(), 1);
    assert_eq!(again.unwrap().content, "content 1");
}

#[test]
fn a_pending_payment_of_the_service_wallet_blocks_the_owners_wallet_from_paying() {
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

impl World {
    /// The provider's answer to a payment that it rejects from now on.
    fn is_denied(&self, pay: impl FnOnce(&Self) -> String) {
        self.provider.submit_outcome.set(SubmitOutcome::Denied);
        let said = pay(self);
        assert!(said.contains("refused"), "{said}");
        self.provider.submit_outcome.set(SubmitOutcome::Answered);
    }

    /// A payment that the provider rejects, and that no node has.
    fn is_lost(&self, pay: impl FnOnce(&Self) -> String) {
        self.provider.ledger.mine();
        self.is_denied(pay);
        self.provider.ledger.mempool.borrow_mut().clear();
    }

    /// A rejected payment from the owner's second output.
    fn fails(&self) {
        self.is_lost(|world| world.own_wallet_with(&world.coins[1..], false, None).unwrap_err().to_string());
    }

    /// A rejected payment from the service wallet.
    fn service_fails(&self) {
        self.is_lost(|world| world.service_wallet(false).unwrap_err().to_string());
    }

    fn hours(&self) {
        (0..400).for_each(|_| self.provider.ledger.mine());
    }

    /// After this many failures, hours later, the provider rejects a payment but relays it, and hides it for some
    /// minutes. Four more payments fail meanwhile; then the provider shows everything.
    fn passed_on(before: usize) -> Self {
        let world = Self::new();
        (0..before).for_each(|_| world.fails());
        world.hours();
        world.is_denied(|world| world.own_wallet(false, None).unwrap_err().to_string());
        world.provider.ledger.mine();
        assert_eq!(world.paid(), 1);
        world.provider.lags.set(true);
        (0..4).for_each(|_| world.fails());
        world.provider.lags.set(false);
        world.provider.ledger.mine();
        assert_eq!(world.paid(), 1, "in a block that the provider shows");
        world
    }

    /// After this many failures, hours later, the provider's index stops for ten minutes, in which a payment is
    /// included and others seem to fail. Then it shows everything.
    fn behind(before: usize, fails: fn(&Self), pay: fn(&Self) -> String) -> Self {
        let world = Self::new();
        let ledger = &world.provider.ledger;
        (0..before).for_each(|_| fails(&world));
        world.hours();
        ledger.stand_still();
        let first = pay(&world);
        assert!(first.contains("not in a block yet"), "{first}");
        (0..20).for_each(|_| ledger.mine());
        assert_eq!(world.paid(), 1);
        for _ in 0..6 {
            pay(&world);
            ledger.mine();
        }
        ledger.catch_up();
        assert_eq!(world.paid(), 1);
        world
    }
}

/// Enough to hide a payment in the middle if only the eight oldest and newest are looked up.
const BEFORE: [usize; 3] = [0, 4, 9];

#[test]
fn a_forwarded_payment_is_found_between_failed_ones() {
    for before in BEFORE {
        let ways: [fn(&World) -> String; 3] = [
            |world| format!("{:?}", world.own_wallet_with(&world.coins[1..], true, None)),
            |world| format!("{:?}", world.service_wallet(true)),
            |world| format!("{:?}", world.owner_proves()),
        ];
        for pays in ways {
            let world = World::passed_on(before);
            let said: Vec<String> = (0..4).map(|_| pays(&world)).collect();
            world.provider.ledger.mine();
            assert_eq!(world.paid(), 1, "{before}: {said:?}");
            assert!(said.iter().any(|said| said.contains("content 1")), "{before}: {said:?}");
        }
    }
}

#[test]
fn a_payment_missing_from_the_index_is_found_between_failed_ones() {
    for before in BEFORE {
        let own = World::behind(before, World::fails, |world| {
            world.own_wallet(false, None).err().map(|error| error.to_string()).unwrap_or_default()
        });
        let again: Vec<_> = (0..4).map(|_| own.own_wallet_with(&own.coins[1..], true, None)).collect();
        assert_eq!(own.paid(), 1, "{before}: {again:?}");
        let service = World::behind(before, World::service_fails, |world| {
            world.service_wallet(false).err().map(|error| error.to_string()).unwrap_or_default()
        });
        service.hours();
        let again: Vec<_> = (0..4).map(|_| service.service_wallet(true)).collect();
        assert_eq!(service.paid(), 1, "{before}: {again:?}");
        assert!(again.iter().flatten().any(|bought| bought.already_owned), "{before}: {again:?}");
    }
}

#[test]
fn a_buyer_without_budget_gets_a_purchase_missing_from_the_index() {
    let world = World::behind(0, World::service_fails, |world| {
        world.service_wallet(false).err().map(|error| error.to_string()).unwrap_or_default()
    });
    block(world.db.execute::<()>(sql::write!("UPDATE accounts SET max_per_payment = 1000000, daily_budget = 1000000")))
        .unwrap();
    let world = World { account: reread(&world.db, 1, NOON), ..world };
    let again: Vec<_> = (0..4).map(|_| world.service_wallet(true)).collect();
    assert!(again.iter().flatten().any(|bought| bought.already_owned), "{again:?}");
    assert_eq!(world.paid(), 1);
}

#[test]
fn a_purchase_over_the_limits_makes_no_provider_call() {
    let world = World::new();
    block(world.db.execute::<()>(sql::write!("UPDATE accounts SET max_per_payment = 1000000"))).unwrap();
    let world = World { account: reread(&world.db, 1, NOON), ..world };
    assert!(matches!(world.service_wallet(true), Err(BuyError::SpendRefused(_))));
    assert_eq!(world.provider.ledger.calls.get(), 0);
}
