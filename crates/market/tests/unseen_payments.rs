//! A service wallet's payment is in a block that the provider does not show yet, and nothing is paid twice.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use crate::support::{
    NOON, Paying, block, checkout, given,
    interrupted::Interrupted,
    ledger::{Ledger, Tx, faucets},
    list, one, paying_for, payment,
    provider::{Meanwhile, Provider, SubmitOutcome},
    reread,
    sales::output,
    sign_up, step,
};
use api_types::Bought;
use cardano::{Lovelace, TxHash, chain::Utxo, keys::SigningKey};
use market::{
    DeliveryMode, ListingId,
    account::Account,
    catalogue::{self, ListingTerms},
    checkout::{BuyError, Order},
    claim::Claim,
    contents::InDatabase,
    withdraw::{WithdrawError, withdraw},
};
use outbox::Decision;
use sql::{Database, sqlite::Sqlite};
use x402_cardano::{method::DefaultMethod, wire::ConfirmationPolicy};

struct World {
    db: Sqlite,
    provider: Provider,
    method: DefaultMethod,
    terms: Vec<ListingTerms>,
    account: Account,
    key: SigningKey,
}

fn terms_of(db: &Sqlite, listing: &ListingId) -> ListingTerms {
    block(db.fetch(catalogue::terms(listing))).unwrap().unwrap()
}

impl World {
    /// A wallet with outputs of these amounts in ADA, and listings at the same prices.
    fn new(coins: &[u32], prices: &[u32]) -> Self {
        let (db, ledger) = (Sqlite::of(market::schema::MIGRATIONS).unwrap(), Ledger::new());
        let (account, key) = sign_up(&db, 1, NOON);
        // The highest possible limits.
        let limits = "UPDATE accounts SET daily_budget = 500000000, max_per_payment = 100000000";
        block(db.execute::<()>(sql::write!(limits))).unwrap();
        let coin = |ada: &u32| output(account.wallet_address.to_string(), Lovelace::from_ada(*ada), None);
        let coins: Vec<Utxo> = coins.iter().map(coin).collect();
        assert!(ledger.add_to_mempool(Tx::unsigned(1, &[faucets(1)], &coins, u64::MAX)));
        ledger.mine();
        let method = DefaultMethod::new(api_types::NETWORK, ConfirmationPolicy::new(0).unwrap()).unwrap();
        let listed = |(number, ada): (u8, &u32)| terms_of(&db, &list(&db, number, u64::from(*ada) * 1_000_000));
        let terms = (1..).zip(prices).map(listed).collect();
        let account = reread(&db, 1, NOON);
        Self { provider: Provider::new(ledger), db, method, terms, account, key }
    }

    fn buy(&self, listing: usize) -> Result<Bought, BuyError> {
        block(self.buying(listing))
    }

    async fn buying(&self, listing: usize) -> Result<Bought, BuyError> {
        self.buying_on(&self.db, listing).await
    }

    /// Seconds after the newest block.
    fn buy_at(&self, listing: usize, seconds: u64) -> Result<Bought, BuyError> {
        block(self.buying_after(&self.db, listing, seconds))
    }

    async fn buying_on(&self, database: &impl Database, listing: usize) -> Result<Bought, BuyError> {
        self.buying_after(database, listing, 0).await
    }

    async fn buying_after(&self, database: &impl Database, listing: usize, seconds: u64) -> Result<Bought, BuyError> {
        let ledger = &self.provider.ledger;
        ledger.calls.set(0);
        let now = ledger.tip().time_ms + 1_000 * seconds;
        // Different in each request.
        let nonce = [u8::try_from(ledger.blocks.borrow().len()).unwrap(); 32];
        let order = Order {
            account: &self.account,
            key: &self.key,
            terms: &self.terms[listing],
            mode: DeliveryMode::Instant,
            agreed: None,
            nonce,
        };
        checkout(
            database,
            &self.provider,
            &Meanwhile(&|| ()),
            &InDatabase(&self.db),
            &[(DeliveryMode::Instant, &self.method)],
            now,
        )
        .buy(&order)
        .await
    }

    fn withdraw(&self) -> Result<api_types::Withdrawal, WithdrawError> {
        let ledger = &self.provider.ledger;
        ledger.calls.set(0);
        block(withdraw(&self.db, &self.provider, &self.account, &self.key, ledger.tip().time_ms))
    }

    /// Sends the wallet ADA.
    fn fund(&self, ada: u32) {
        let coin = output(self.account.wallet_address.to_string(), Lovelace::from_ada(ada), None);
        let number = u32::try_from(self.provider.ledger.blocks.borrow().len()).unwrap();
        assert!(self.provider.ledger.add_to_mempool(Tx::unsigned(
            number.into(),
            &[faucets(number)],
            &[coin],
            u64::MAX
        )));
        self.provider.ledger.mine();
    }

    /// Submitted payments for a listing, included or not.
    fn paid(&self, listing: usize) -> usize {
        let terms = &self.terms[listing];
        let pays = |made: &Utxo| {
            made.address == terms.seller_address.to_string() && made.value.lovelace == terms.price_lovelace
        };
        let blocks = self.provider.ledger.blocks.borrow();
        let mempool = self.provider.ledger.mempool.borrow();
        let all = blocks.iter().flat_map(|block| &block.txs).chain(mempool.iter());
        all.filter(|tx| tx.utxos.created.iter().any(pays)).count()
    }

    fn first(&self) -> TxHash {
        one(&self.db, "SELECT tx_id FROM outbox ORDER BY created_at_ms LIMIT 1").parse().unwrap()
    }

    /// Long enough for every payment to expire.
    fn mine(&self) {
        (0..20).for_each(|_| self.provider.ledger.mine());
    }
}

/// Checks that the first payment is included, and that nothing else is paid.
fn paid_once(world: &World) {
    for _ in 0..3 {
        let again = world.buy(0);
        assert!(matches!(&again, Err(BuyError::Pending(tx)) if *tx == world.first()), "{again:?}");
        assert_eq!(world.paid(0), 1);
        world.provider.ledger.mine();
    }
    world.provider.lags.set(false);
    let bought = (0..2).find_map(|_| world.buy(0).ok()).unwrap();
    assert!(bought.purchase.id == world.first());
    assert_eq!((bought.content.as_str(), world.paid(0)), ("content 1", 1));
}

#[test]
fn a_confirmed_payment_called_expired_is_not_made_again() {
    let world = World::new(&[8, 8, 8], &[5]);
    world.provider.lags.set(true);
    assert!(matches!(world.buy(0), Err(BuyError::Pending(_))));
    world.mine();
    assert!(matches!(world.buy(0), Err(BuyError::Expired)));
    paid_once(&world);
}

#[test]
fn a_refused_payment_that_a_block_has_is_not_made_again() {
    let world = World::new(&[8, 8, 8], &[5]);
    world.provider.submit_outcome.set(SubmitOutcome::Denied);
    assert!(matches!(world.buy(0), Err(BuyError::Ledger(_))));
    world.provider.submit_outcome.set(SubmitOutcome::Answered);
    world.provider.lags.set(true);
    world.provider.ledger.mine();
    paid_once(&world);
}

/// The owner repeats the request when the provider has shown everything for long.
fn found_an_hour_later(world: &World) {
    world.provider.submit_outcome.set(SubmitOutcome::Answered);
    world.provider.lags.set(false);
    (0..190).for_each(|_| world.provider.ledger.mine());
    let again = (0..2).find_map(|_| world.buy(0).ok());
    world.mine();
    assert_eq!(world.paid(0), 1, "{again:?}");
    assert!(again.unwrap().purchase.id == world.first());
}

#[test]
fn a_refused_payment_that_a_block_has_is_found_an_hour_later() {
    let world = World::new(&[8, 8, 8], &[5]);
    world.provider.submit_outcome.set(SubmitOutcome::Denied);
    assert!(matches!(world.buy(0), Err(BuyError::Ledger(_))));
    found_an_hour_later(&world);
}

#[test]
fn a_confirmed_payment_called_expired_is_found_an_hour_later() {
    let world = World::new(&[8, 8, 8], &[5]);
    world.provider.lags.set(true);
    assert!(matches!(world.buy(0), Err(BuyError::Pending(_))));
    world.mine();
    assert!(matches!(world.buy(0), Err(BuyError::Expired)));
    found_an_hour_later(&world);
}

#[test]
fn a_payment_from_change_of_an_expired_payment_is_not_made_again() {
    let world = World::new(&[20, 9], &[12, 5]);
    world.provider.ledger.stand_still();
    for listing in [0, 1] {
        assert!(matches!(world.buy(listing), Err(BuyError::Pending(_))));
    }
    world.mine();
    for listing in [0, 1] {
        assert!(matches!(world.buy(listing), Err(BuyError::Expired)));
    }
    // The provider hides the output that the second payment spent.
    let again = world.buy(1);
    assert!(matches!(again, Err(BuyError::Ledger(_))), "{again:?}");
    world.mine();
    assert_eq!((world.paid(0), world.paid(1)), (1, 1));
}

#[test]
fn a_refused_payment_from_unconfirmed_change_is_made_again_from_that_change() {
    for passed_on in [false, true] {
        let world = World::new(&[20], &[6, 5]);
        assert!(matches!(world.buy(0), Err(BuyError::Pending(_))));
        world.provider.submit_outcome.set(SubmitOutcome::Denied);
        assert!(matches!(world.buy(1), Err(BuyError::Ledger(_))));
        world.provider.submit_outcome.set(SubmitOutcome::Answered);
        if !passed_on {
            drop(world.provider.ledger.mempool.borrow_mut().pop());
        }
        // No request has to wait for a block, because only one of the two can be included.
        let again = world.buy(1);
        let expected = if passed_on {
            matches!(again, Err(BuyError::Ledger(_)))
        } else {
            matches!(again, Err(BuyError::Pending(_)))
        };
        assert!(expected, "{again:?}");
        world.provider.ledger.mine();
        assert_eq!((world.paid(0), world.paid(1)), (1, 1));
        assert_eq!((0..2).find_map(|_| world.buy(1).ok()).unwrap().content, "content 2");
    }
}

#[test]
fn a_forwarded_payment_is_owned_once_confirmed_after_many_refusals() {
    for tries in [7, 8, 19] {
        let world = World::new(&[20], &[5]);
        world.provider.submit_outcome.set(SubmitOutcome::Denied);
        assert!(matches!(world.buy(0), Err(BuyError::Ledger(_))));
        world.provider.submit_outcome.set(SubmitOutcome::Answered);
        let refused = (1..=tries).filter(|second| match world.buy_at(0, *second) {
            Err(BuyError::Ledger(_)) => true,
            Err(BuyError::Unresolved(_)) => false,
            other => panic!("{other:?}"),
        });
        assert_eq!(refused.count(), usize::try_from(tries.min(8)).unwrap(), "no more rows within seconds");
        world.provider.ledger.mine();
        let bought = (0..2).find_map(|_| world.buy_at(0, 1).ok()).unwrap();
        assert!(bought.purchase.id == world.first());
        assert_eq!(world.paid(0), 1);
    }
}

#[test]
#[ignore = "takes long: make load runs it"]
fn a_buyer_refused_many_times_without_cause_buys_soon_after() {
    let world = World::new(&[20], &[5]);
    world.provider.submit_outcome.set(SubmitOutcome::Denied);
    let mut refused = 0;
    // Half an hour with a lagging node, and a client that asks every two seconds.
    for second in (0..1_800).step_by(2) {
        match world.buy_at(0, second) {
            Err(BuyError::Ledger(_)) => refused += 1,
            Err(BuyError::Unresolved(_)) => {}
            other => panic!("{other:?}"),
        }
        world.provider.ledger.mempool.borrow_mut().clear();
    }
    assert!((15..30).contains(&refused), "{refused}");
    world.provider.submit_outcome.set(SubmitOutcome::Answered);
    let waited = (1_800..3_600).step_by(2).find(|second| matches!(world.buy_at(0, *second), Err(BuyError::Pending(_))));
    assert!(waited.is_some_and(|second| second < 2_100), "{waited:?}");
    world.provider.ledger.mine();
    assert!(world.buy_at(0, 3_600).is_ok());
    assert_eq!(world.paid(0), 1);
}

#[test]
fn a_forgotten_payment_is_submitted_again_before_its_successors() {
    for chain in [1, 8, 12] {
        let world = World::new(&[90], &[2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 5]);
        for listing in 0..chain {
            let bought = world.buy_at(listing, u64::try_from(listing).unwrap());
            assert!(matches!(bought, Err(BuyError::Pending(_))), "{bought:?}");
        }
        world.provider.ledger.mempool.borrow_mut().clear();
        let last = world.buy_at(12, 13);
        assert!(matches!(last, Err(BuyError::Pending(_))), "a chain of {chain}: {last:?}");
        world.provider.ledger.mine();
        assert_eq!(world.paid(12), 1);
    }
}

#[test]
fn a_payment_refused_on_an_expired_chain_of_change_is_made_again_at_once() {
    let world = World::new(&[90], &[2, 3, 2, 3, 2, 3, 2, 3, 5]);
    for listing in 0..8 {
        assert!(matches!(world.buy_at(listing, u64::try_from(listing).unwrap()), Err(BuyError::Pending(_))));
    }
    let mempool = &world.provider.ledger.mempool;
    let waiting = mempool.borrow().clone();
    world.provider.submit_outcome.set(SubmitOutcome::Denied);
    for second in 13..19 {
        assert!(matches!(world.buy_at(8, second), Err(BuyError::Ledger(_))));
        mempool.replace(waiting.clone());
    }
    // The node has forgotten everything.
    mempool.borrow_mut().clear();
    world.mine();
    for listing in (0..8).rev() {
        assert!(world.buy(listing).is_err());
        mempool.borrow_mut().clear();
    }
    world.provider.submit_outcome.set(SubmitOutcome::Answered);
    let bought = world.buy(8);
    assert!(matches!(bought, Err(BuyError::Pending(_))), "{bought:?}");
}

/// A wallet with two outputs, whose payment for the first listing the provider does not show.
fn one_expired() -> World {
    let world = World::new(&[9, 10], &[6, 5]);
    world.provider.ledger.stand_still();
    assert!(matches!(world.buy(0), Err(BuyError::Pending(_))));
    world.mine();
    assert!(matches!(world.buy(0), Err(BuyError::Expired)));
    world
}

#[test]
fn an_input_reserved_by_a_refused_payment_does_not_block_the_earlier_payment() {
    let world = one_expired();
    // The node rejects it, because the first one spent the same; its answer is lost.
    world.provider.submit_outcome.set(SubmitOutcome::Lost);
    assert!(matches!(world.buy(1), Err(BuyError::Pending(_))));
    world.provider.submit_outcome.set(SubmitOutcome::Answered);
    let again = world.buy(0);
    assert!(matches!(again, Err(BuyError::Unresolved(tx)) if tx == world.first()), "{again:?}");
    world.mine();
    assert_eq!(world.paid(0), 1);
}

#[test]
fn two_concurrent_purchases_pay_each_listing_once() {
    let world = one_expired();
    // The node's rejection of the first has not arrived while the other is built.
    world.provider.submit_outcome.set(SubmitOutcome::Outstanding);
    let mut other = Box::pin(world.buying(1));
    assert!(block(futures_lite::future::poll_once(&mut other)).is_none());
    world.provider.submit_outcome.set(SubmitOutcome::Answered);
    let again = world.buy(0);
    assert!(matches!(again, Err(BuyError::Unresolved(tx)) if tx == world.first()), "{again:?}");
    assert!(matches!(block(other), Err(BuyError::Ledger(_))));
    world.mine();
    assert_eq!(world.paid(0), 1);
}

#[test]
fn a_buyer_waiting_for_another_payment_does_not_pay_beside_an_equal_refused_one() {
    let world = World::new(&[20, 13], &[5, 6]);
    let others = || {
        // The smaller output stays reserved until a node has answered; the next payment spends the change.
        world.provider.submit_outcome.set(SubmitOutcome::Outstanding);
        let mut other = Box::pin(world.buying(1));
        assert!(block(futures_lite::future::poll_once(&mut other)).is_none());
        world.provider.submit_outcome.set(SubmitOutcome::Denied);
        assert!(matches!(world.buy(0), Err(BuyError::Ledger(_))), "the node forwarded it");
        world.provider.submit_outcome.set(SubmitOutcome::Answered);
        assert!(matches!(block(other), Err(BuyError::Pending(_))));
    };
    let database = Interrupted::before(&world.db, "INSERT INTO outbox ", others);
    let second = block(world.buying_on(&database, 0));
    assert!(second.is_err(), "{second:?}");
    world.mine();
    assert_eq!(world.paid(0), 1);
}

#[test]
fn a_seemingly_refused_payment_of_the_owners_wallet_is_not_made_again_from_the_service_wallet() {
    let refused = || Decision::Refuse("no".into());
    for (end, in_block) in [(refused(), true), (refused(), false), (Decision::Expire, true)] {
        let world = World::new(&[20], &[5]);
        let ledger = &world.provider.ledger;
        let coin = Utxo { reference: faucets(7), ..given(&world.account, 7, 50_000_000) };
        let until = ledger.tip().slot + 300;
        let built = payment(&world.account, &world.key, &[coin], 5_000_000, until);
        let listing = world.terms[0].id.clone();
        let paying = paying_for(&world.account, &listing, &built, 5_000_000);
        let own = Paying { payer: world.account.owner.parse().unwrap(), account: None, ..paying };
        assert!(matches!(own.claim(&world.db, NOON), Claim::New(_)));
        assert!(step(&world.db, &own.tx(), &end));
        // Relayed nevertheless.
        assert!(ledger.add_to_mempool(Tx::new(built.cbor.clone(), until)));
        world.provider.shows_mempool.set(true);
        if in_block {
            ledger.mine();
            assert!(world.buy(0).unwrap().already_owned);
        } else {
            assert_eq!(world.buy(0), Err(BuyError::Pending(own.tx())));
        }
        assert_eq!(world.paid(0), 1);
    }
}

#[test]
fn a_payment_of_the_owners_wallet_during_the_build_is_not_made_again_from_the_service_wallet() {
    let world = World::new(&[20], &[5]);
    world.provider.shows_mempool.set(true);
    let coin = Utxo { reference: faucets(7), ..given(&world.account, 7, 50_000_000) };
    let until = world.provider.ledger.tip().slot + 300;
    let built = payment(&world.account, &world.key, &[coin], 5_000_000, until);
    let paying = paying_for(&world.account, &world.terms[0].id, &built, 5_000_000);
    let own = Paying { payer: world.account.owner.parse().unwrap(), account: None, ..paying };
    let meanwhile = || {
        assert!(matches!(own.claim(&world.db, NOON), Claim::New(_)));
        // The provider rejects a transaction that it has relayed.
        assert!(step(&world.db, &own.tx(), &Decision::Refuse("no".into())));
        assert!(world.provider.ledger.add_to_mempool(Tx::new(built.cbor.clone(), until)));
    };
    let database = Interrupted::before(&world.db, "INSERT INTO outbox ", meanwhile);
    let bought = block(world.buying_on(&database, 0));
    world.mine();
    assert_eq!(world.paid(0), 1, "{bought:?}");
}

/// A wallet with a payment that the provider rejected but relayed. It rejected three newer ones with the same input
/// before the first was included; then the wallet got more money.
fn one_passed_on_and_three_refused() -> World {
    let world = World::new(&[20], &[5, 6, 8, 8, 8]);
    assert!(matches!(world.buy(0), Err(BuyError::Pending(_))));
    world.mine();
    world.buy(0).unwrap();
    world.provider.submit_outcome.set(SubmitOutcome::Denied);
    assert!(matches!(world.buy(1), Err(BuyError::Ledger(_))));
    world.provider.submit_outcome.set(SubmitOutcome::Answered);
    let public = one(&world.db, "SELECT count(*) || '' FROM outbox WHERE provenance <> 'ours'");
    assert_eq!(public, "0", "only the service has what its wallet signed");
    for listing in [2, 3, 4] {
        // A block without it.
        let waits = std::mem::take(&mut *world.provider.ledger.mempool.borrow_mut());
        world.mine();
        *world.provider.ledger.mempool.borrow_mut() = waits;
        let said = world.buy(listing);
        assert!(!matches!(said, Ok(_) | Err(BuyError::Pending(_))), "{said:?}");
    }
    world.mine();
    world.mine();
    world.fund(30);
    world
}

#[test]
fn a_refused_yet_forwarded_payment_does_not_block_other_purchases() {
    let world = one_passed_on_and_three_refused();
    let said = world.buy(2);
    assert!(matches!(said, Err(BuyError::Pending(_))), "{said:?}");
}

#[test]
fn a_refused_yet_forwarded_payment_does_not_block_a_withdrawal() {
    let world = one_passed_on_and_three_refused();
    let said = world.withdraw();
    assert!(said.is_ok(), "{said:?}");
}

#[test]
fn a_confirmed_withdrawal_called_refused_does_not_block_other_outputs() {
    let world = World::new(&[20], &[5, 6]);
    assert!(matches!(world.buy(0), Err(BuyError::Pending(_))));
    world.provider.ledger.mine();
    world.buy(0).unwrap();
    // The payment spends the change, and is relayed.
    world.provider.submit_outcome.set(SubmitOutcome::Denied);
    assert!(matches!(world.withdraw(), Err(WithdrawError::Ledger(_))));
    world.provider.submit_outcome.set(SubmitOutcome::Answered);
    world.mine();
    // Five minutes later the wallet holds the rest of the withdrawal, and this.
    world.fund(30);
    let withdrawn = world.withdraw();
    assert!(withdrawn.is_ok(), "{withdrawn:?}");
    world.provider.ledger.mine();
    world.fund(30);
    let bought = world.buy(1);
    assert!(matches!(bought, Err(BuyError::Pending(_))), "{bought:?}");
}
