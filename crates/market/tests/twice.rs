//! A service wallet whose payment is in a block that the provider does not show yet: nothing is paid twice.

#![allow(clippy::unwrap_used, clippy::panic, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

mod support;

use cardano::{
    Lovelace, TxHash,
    keys::{Native, SigningKey},
};
use market::{
    DeliveryMode, ListingId,
    account::Account,
    catalogue::{self, ListingTerms},
    checkout::{Bought, BuyError, Checkout, Order},
    contents::InDatabase,
};
use sql::{Database, sqlite::Sqlite};
use support::{
    NOON, block,
    ledger::{Ledger, Tx, faucets},
    list, one,
    provider::{Handing, Meanwhile, Provider},
    sales::output,
    sign_up,
};
use x402_cardano::{method::DefaultMethod, wire::ConfirmationPolicy};

const PRICE: u64 = 5_000_000;

struct World {
    db: Sqlite,
    provider: Provider,
    method: DefaultMethod,
    terms: ListingTerms,
    account: Account,
    key: SigningKey,
}

fn terms_of(db: &Sqlite, listing: &ListingId) -> ListingTerms {
    block(db.run(catalogue::terms(listing))).unwrap().first_json().unwrap().unwrap()
}

impl World {
    /// A wallet that could pay three times, from as many outputs.
    fn new() -> Self {
        let (db, ledger) = (Sqlite::of(market::schema::MIGRATIONS).unwrap(), Ledger::new());
        let (account, key) = sign_up(&db, 1, NOON);
        let coin = output(account.wallet_address.to_string(), Lovelace::from_ada(8), None);
        assert!(ledger.hand_in(Tx::unsigned(1, &[faucets(1)], &[coin.clone(), coin.clone(), coin], u64::MAX)));
        ledger.mine();
        let method = DefaultMethod::new(ConfirmationPolicy::new(0).unwrap()).unwrap();
        let terms = terms_of(&db, &list(&db, 1, PRICE));
        Self { provider: Provider::new(ledger), db, method, terms, account, key }
    }

    fn buy(&self) -> Result<Bought, BuyError> {
        let ledger = &self.provider.ledger;
        ledger.calls.set(0);
        let now = ledger.tip().time_ms;
        let checkout = Checkout {
            database: &self.db,
            chain: &self.provider,
            signatures: &Native,
            sleep: &Meanwhile(&|| ()),
            contents: &InDatabase(&self.db),
            ways: &[(DeliveryMode::Instant, &self.method)],
            now,
            clock: now,
            schedule: &[500],
            confirmations: 0,
            hung_up: &|| false,
        };
        // Another in each request.
        let nonce = [u8::try_from(ledger.blocks.borrow().len()).unwrap(); 32];
        let order = Order {
            account: &self.account,
            key: &self.key,
            terms: &self.terms,
            mode: DeliveryMode::Instant,
            nonce,
            network: "",
        };
        block(checkout.buy(&order))
    }

    /// The payments that were handed in, in blocks or not.
    fn paid(&self) -> usize {
        let seller = self.terms.seller_address.to_string();
        let blocks = self.provider.ledger.blocks.borrow();
        let mempool = self.provider.ledger.mempool.borrow();
        let all = blocks.iter().flat_map(|block| &block.txs).chain(mempool.iter());
        all.filter(|tx| tx.utxos.made.iter().any(|made| made.address == seller)).count()
    }

    fn first(&self) -> TxHash {
        one(&self.db, "SELECT tx_id FROM outbox ORDER BY created_at_ms LIMIT 1").parse().unwrap()
    }
}

/// Sees to it that the first payment is in a block, and that nothing is paid beside it.
fn paid_once(world: &World) {
    for _ in 0..3 {
        let again = world.buy();
        assert!(matches!(&again, Err(BuyError::Pending(tx)) if *tx == world.first()), "{again:?}");
        assert_eq!(world.paid(), 1);
        world.provider.ledger.mine();
    }
    world.provider.lags.set(false);
    let bought = (0..2).find_map(|_| world.buy().ok()).unwrap();
    assert!(bought.purchase.contains(&world.first().to_string()));
    assert_eq!((bought.content.as_str(), world.paid()), ("content 1", 1));
}

#[test]
fn a_payment_that_is_called_expired_and_is_in_a_block_is_not_made_again() {
    let world = World::new();
    world.provider.lags.set(true);
    assert!(matches!(world.buy(), Err(BuyError::Pending(_))));
    (0..20).for_each(|_| world.provider.ledger.mine());
    assert!(matches!(world.buy(), Err(BuyError::Expired)));
    paid_once(&world);
}

#[test]
fn a_payment_that_was_refused_and_is_in_a_block_is_not_made_again() {
    let world = World::new();
    world.provider.handing.set(Handing::Denied);
    assert!(matches!(world.buy(), Err(BuyError::Ledger(_))));
    world.provider.handing.set(Handing::Answered);
    world.provider.lags.set(true);
    world.provider.ledger.mine();
    paid_once(&world);
}
