//! Copies of a payment that its payer submitted elsewhere, and that the provider shows only once it is in a block. A
//! thief gets nothing by them, whatever the outcome of the submission.

#![allow(clippy::unwrap_used, clippy::panic, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

use std::{cell::RefCell, collections::BTreeSet, future::Future, pin::Pin};

use crate::support::{
    SELLER, block, checkout, entry,
    interrupted::Interrupted,
    ledger::{Ledger, Tx, faucets},
    list, person,
    provider::{Meanwhile, Provider, SubmitOutcome},
    sales::output,
    sign_up, step, without_echoes,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::{
    Address, Lovelace, TxHash, TxRef,
    chain::Utxo,
    params::ProtocolParameters,
    tx::build::{BuiltTx, NewOutput, TxPlan, Validity, Wallet, build},
};
use futures_lite::future::{block_on, poll_once};
use market::{
    DeliveryMode, ListingId,
    catalogue::{self, ListingTerms},
    checkout::{Checkout, Order, PaidContent, PayError, Presented},
    contents::InDatabase,
};
use outbox::{Decision, EntryState, Provenance};
use serde_json::json;
use sql::{Database, sqlite::Sqlite};
use x402_cardano::{
    method::{DefaultMethod, PaymentMethod},
    settlement::NotSettled,
    wire::ConfirmationPolicy,
};

const PRICE: u64 = 5_000_000;
/// Longer than any request takes.
const LATER_MS: u64 = 80_000;

/// A payer's transaction for a listing, with the header that anyone who has its bytes can build.
struct World {
    db: Sqlite,
    provider: Provider,
    method: DefaultMethod,
    terms: ListingTerms,
    payer: Address,
    built: BuiltTx,
    header: String,
    /// The header of another transaction by the payer, with another input.
    another: String,
    /// POSIX ms.
    begun: u64,
}

impl World {
    fn new() -> Self {
        let (db, ledger) = (Sqlite::of(market::schema::MIGRATIONS).unwrap(), Ledger::new());
        let listing = list(&db, 1, PRICE);
        let method = DefaultMethod::new(api_types::NETWORK, ConfirmationPolicy::new(0).unwrap()).unwrap();
        let payer = person(9).enterprise_address();
        let coin = output(payer.to_string(), Lovelace::from_ada(100), None);
        let funds = Tx::unsigned(1, &[faucets(1)], &[coin.clone(), coin.clone()], u64::MAX);
        let coins = [0, 1].map(|index| Utxo { reference: TxRef { tx: funds.id, index }, ..coin.clone() });
        assert!(ledger.add_to_mempool(funds));
        ledger.mine();
        let terms = terms_of(&db, &listing);
        let until = ledger.tip().slot + 200;
        let [(built, header), (_, another)] = coins.map(|coin| pays(&terms, &method, coin, until));
        let begun = ledger.tip().time_ms;
        let provider = Provider::new(ledger);
        Self { db, provider, method, terms, payer, built, header, another, begun }
    }

    fn tx(&self) -> TxHash {
        self.built.facts.tx_id
    }

    /// The payer submits it elsewhere.
    fn broadcast(&self) {
        assert!(
            self.provider.ledger.add_to_mempool(Tx::new(self.built.cbor.clone(), self.built.facts.valid_until_slot))
        );
    }

    fn mine(&self) {
        self.provider.ledger.mine();
    }

    /// The payer pays by an output that no payment has spent yet.
    fn anew(&self) -> String {
        let ledger = &self.provider.ledger;
        let unspent = ledger.unspent().into_iter().filter(|utxo| utxo.address == self.payer.to_string());
        let coin = unspent.max_by_key(|utxo| utxo.value.lovelace).unwrap();
        pays(&self.terms, &self.method, coin, ledger.tip().slot + 200).1
    }

    /// The first request with the header; the node treats the submission as given.
    fn waiting(&self, submit_outcome: SubmitOutcome) -> Asking<'_> {
        self.provider.submit_outcome.set(submit_outcome);
        let mut first = self.pay(0, None);
        begin(&mut first);
        first
    }

    /// The payer's request in a process that is killed meanwhile.
    fn dies_waiting(&self, submit_outcome: SubmitOutcome) {
        drop(self.waiting(submit_outcome));
    }

    /// A later request with the header.
    fn pay(&self, after_ms: u64, proven: Option<Address>) -> Asking<'_> {
        self.pay_for(&self.terms, &self.header, (after_ms, proven), &|| ())
    }

    fn pay_for<'a>(
        &'a self,
        terms: &'a ListingTerms,
        header: &'a str,
        (after_ms, proven): (u64, Option<Address>),
        meanwhile: &'a dyn Fn(),
    ) -> Asking<'a> {
        self.provider.ledger.calls.set(0);
        let now = self.begun + after_ms;
        Box::pin(async move {
            checkout(
                &self.db,
                &self.provider,
                &Meanwhile(meanwhile),
                &InDatabase(&self.db),
                &[(DeliveryMode::Instant, &self.method)],
                now,
            )
            .pay(terms, &Presented::read(header, "network", None).unwrap(), proven)
            .await
        })
    }
}

/// The payer's transaction with this input, and a header that only the payer knows.
fn pays(terms: &ListingTerms, method: &DefaultMethod, coin: Utxo, until: u64) -> (BuiltTx, String) {
    let key = person(9);
    let plan = TxPlan {
        outputs: vec![NewOutput::pay(SELLER.parse::<Address>().unwrap(), Lovelace::new(PRICE).unwrap())],
        validity: Validity { from: None, until },
        ..TxPlan::default()
    };
    let wallet = Wallet { address: key.enterprise_address(), utxos: &[coin], reserved: &BTreeSet::new() };
    let built = build(&plan, &wallet, &ProtocolParameters::preprod()).unwrap().sign(&[&key]).unwrap();
    let header = json!({
        "x402Version": 2,
        "accepted": method.listed(&terms.sale()).unwrap(),
        "payload": {
            "transaction": STANDARD.encode(&built.cbor),
            "nonce": built.facts.inputs.first().unwrap().to_string(),
        },
        "extensions": { "request-binding": { "info": { "secret": "0123456789abcdef" } } },
    });
    (built, STANDARD.encode(header.to_string()))
}

/// A pending request.
type Asking<'a> = Pin<Box<dyn Future<Output = Result<PaidContent, PayError>> + 'a>>;

fn terms_of(db: &Sqlite, listing: &ListingId) -> ListingTerms {
    block(db.fetch(catalogue::terms(listing))).unwrap().unwrap()
}

/// Runs a request until it waits for something that does not happen.
fn begin(request: &mut Asking<'_>) {
    assert!(block_on(poll_once(request)).is_none(), "it waits for the node");
}

#[test]
fn a_payment_that_the_service_could_not_submit_opens_for_its_payer_alone_once_confirmed() {
    for submit_outcome in [SubmitOutcome::Limited, SubmitOutcome::Late] {
        let world = World::new();
        world.broadcast();
        world.provider.submit_outcome.set(submit_outcome);
        assert!(matches!(block(world.pay(0, None)), Err(PayError::NotSettled(..))));
        world.mine();
        for after in [0, LATER_MS] {
            let thief = block(world.pay(after, None));
            assert!(thief.is_err(), "{thief:?}");
        }
        assert_eq!(block(world.pay(LATER_MS, Some(world.payer))).unwrap().content, "content 1");
    }
}

#[test]
fn a_payer_may_sign_by_any_address_of_the_key_that_paid() {
    let world = World::new();
    world.broadcast();
    world.provider.submit_outcome.set(SubmitOutcome::Late);
    assert!(matches!(block(world.pay(0, None)), Err(PayError::NotSettled(..))));
    world.mine();
    let stake = cardano::address::Credential::Key(*person(7).enterprise_address().payment_key());
    let thief = Address::base(*person(8).enterprise_address().payment_key(), stake);
    assert!(block(world.pay(LATER_MS, Some(thief))).is_err());
    let other = Address::base(*world.payer.payment_key(), stake);
    assert_eq!(block(world.pay(LATER_MS, Some(other))).unwrap().content, "content 1");
}

#[test]
fn a_thief_who_asks_before_the_node_answers_gets_no_content() {
    let world = World::new();
    world.broadcast();
    let first = world.waiting(SubmitOutcome::Outstanding);
    world.mine();
    let second = block(world.pay(0, None));
    assert!(second.is_err(), "{second:?}");
    world.provider.submit_outcome.set(SubmitOutcome::Answered);
    assert!(block(first).is_err());
    assert_eq!(block(world.pay(LATER_MS, None)), Err(PayError::Public));
}

#[test]
fn a_payment_refused_before_a_crash_opens_for_its_payer_alone() {
    let world = World::new();
    world.broadcast();
    world.dies_waiting(SubmitOutcome::Outstanding);
    world.mine();
    world.provider.submit_outcome.set(SubmitOutcome::Answered);
    for after in [0, LATER_MS] {
        let thief = block(world.pay(after, None));
        assert!(thief.is_err(), "{thief:?}");
    }
    assert_eq!(block(world.pay(LATER_MS, Some(world.payer))).unwrap().content, "content 1");
}

#[test]
fn a_payer_who_did_not_broadcast_needs_no_signature() {
    for submit_outcome in [SubmitOutcome::Limited, SubmitOutcome::Late] {
        let world = World::new();
        world.provider.submit_outcome.set(submit_outcome);
        assert!(matches!(block(world.pay(0, None)), Err(PayError::NotSettled(..))));
        world.provider.submit_outcome.set(SubmitOutcome::Answered);
        assert!(matches!(block(world.pay(10_000, None)), Err(PayError::NotSettled(..))), "sent again");
        assert_eq!(entry(&world.db, &world.tx()).state, EntryState::Submitted);
        world.mine();
        assert_eq!(block(world.pay(10_000, None)).unwrap().content, "content 1");
    }
}

#[test]
fn a_payer_whose_submission_has_no_answer_signs_once() {
    let world = World::new();
    world.provider.submit_outcome.set(SubmitOutcome::Lost);
    assert!(matches!(block(world.pay(0, None)), Err(PayError::NotSettled(..))));
    world.provider.submit_outcome.set(SubmitOutcome::Answered);
    assert!(block(world.pay(10_000, None)).is_err(), "sent again");
    world.mine();
    assert_eq!(block(world.pay(2 * LATER_MS, None)), Err(PayError::Public));
    assert_eq!(block(world.pay(2 * LATER_MS, Some(world.payer))).unwrap().content, "content 1");
}

#[test]
fn a_payer_whose_submission_never_left_the_service_needs_no_signature() {
    let world = World::new();
    world.dies_waiting(SubmitOutcome::Unsent);
    world.provider.submit_outcome.set(SubmitOutcome::Answered);
    assert!(block(world.pay(10_000, None)).is_err(), "sent again, and accepted");
    assert_eq!(entry(&world.db, &world.tx()).provenance, Provenance::Ours);
    world.mine();
    assert_eq!(block(world.pay(2 * LATER_MS, None)).unwrap().content, "content 1");
}

#[test]
fn a_second_request_waits_while_the_first_waits_for_the_node() {
    let world = World::new();
    let first = world.waiting(SubmitOutcome::Outstanding);
    world.mine();
    assert!(matches!(block(world.pay(0, None)), Err(PayError::NotSettled(..))));
    world.provider.submit_outcome.set(SubmitOutcome::Answered);
    assert_eq!(block(first).unwrap().content, "content 1");
    assert_eq!(entry(&world.db, &world.tx()).provenance, Provenance::Ours);
}

#[test]
fn the_bytes_of_what_a_block_has_are_kept_though_a_node_refused_it_while_its_payer_waited() {
    let world = World::new();
    world.broadcast();
    let first = RefCell::new(Some(world.waiting(SubmitOutcome::Outstanding)));
    let meanwhile = || {
        world.provider.submit_outcome.set(SubmitOutcome::Answered);
        if let Some(first) = first.take() {
            assert!(block(first).is_err(), "a node had it before");
        }
        assert_eq!(entry(&world.db, &world.tx()).state, EntryState::Refused);
        world.mine();
    };
    let beside = world.pay_for(&world.terms, &world.header, (1_000, Some(world.payer)), &meanwhile);
    assert_eq!(block(beside).unwrap().content, "content 1");
    let kept = entry(&world.db, &world.tx());
    assert_eq!((kept.state, kept.cbor), (EntryState::Included, world.built.cbor.clone()));
}

#[test]
fn a_payer_whose_submission_ended_in_a_crash_signs_once() {
    let world = World::new();
    world.dies_waiting(SubmitOutcome::Outstanding);
    world.mine();
    world.provider.submit_outcome.set(SubmitOutcome::Answered);
    assert_eq!(block(world.pay(LATER_MS, None)), Err(PayError::Public));
    assert_eq!(block(world.pay(LATER_MS, Some(world.payer))).unwrap().content, "content 1");
}

#[test]
fn a_payment_reclaimed_for_another_listing_opens_that_listing_alone() {
    let world = World::new();
    let other = terms_of(&world.db, &list(&world.db, 2, PRICE));
    // Rejected first; then its payer presents it for the other listing, and it is included.
    world.dies_waiting(SubmitOutcome::Unsent);
    let meanwhile = || {
        world.provider.lags.set(false);
        world.provider.submit_outcome.set(SubmitOutcome::Answered);
        assert!(step(&world.db, &world.tx(), &Decision::Refuse("no".into())));
        let taken_up = block(world.pay_for(&other, &world.header, (1_000, Some(world.payer)), &|| world.mine()));
        assert_eq!(taken_up.unwrap().content, "content 2");
        // Until it has expired.
        (0..20).for_each(|_| world.mine());
        world.provider.lags.set(true);
    };
    let slow = block(world.pay_for(&world.terms, &world.header, (1_000, None), &meanwhile));
    assert!(slow.is_err(), "{slow:?}");
}

#[test]
fn a_payment_reclaimed_for_another_listing_during_a_retry_opens_that_listing_alone() {
    let world = World::new();
    let other = terms_of(&world.db, &list(&world.db, 2, PRICE));
    world.broadcast();
    assert!(block(world.pay(0, None)).is_err(), "a node had it before");
    world.mine();
    let meanwhile = || {
        let taken_up = block(world.pay_for(&other, &world.header, (1_000, Some(world.payer)), &|| ()));
        assert_eq!(taken_up.unwrap().content, "content 2");
    };
    let now = world.begun + 1_000;
    let again = block(
        Checkout {
            schedule: &[],
            ..checkout(
                &Interrupted::before(&world.db, "UPDATE outbox SET state = 'included'", meanwhile),
                &world.provider,
                &Meanwhile(&|| ()),
                &InDatabase(&world.db),
                &[],
                now,
            )
        }
        .redeliver(&world.terms, &[*world.payer.payment_key()]),
    );
    assert_eq!(again, Ok(None));
}

#[test]
fn a_payment_reclaimed_for_another_listing_while_an_account_waits_opens_that_listing_alone() {
    let world = World::new();
    let other = terms_of(&world.db, &list(&world.db, 2, PRICE));
    // The service wallet is empty.
    let (account, key) = sign_up(&world.db, 9, world.begun);
    assert_eq!(account.owner, world.payer.to_string());
    world.broadcast();
    let presents = |terms| world.pay_for(terms, &world.header, (0, Some(world.payer)), &|| ());
    world.provider.submit_outcome.set(SubmitOutcome::Outstanding);
    let mut first = presents(&world.terms);
    begin(&mut first);
    // Only now known to this provider's node.
    world.provider.shows_mempool.set(true);
    let first = RefCell::new(Some(first));
    let meanwhile = || {
        let Some(first) = first.take() else { return };
        world.provider.submit_outcome.set(SubmitOutcome::Answered);
        assert!(block(first).is_err(), "a node had it before");
        world.mine();
        assert_eq!(block(presents(&other)).unwrap().content, "content 2");
    };
    let now = world.begun + 1_000;
    let mode = DeliveryMode::Instant;
    let order = Order { account: &account, key: &key, terms: &world.terms, mode, agreed: None, nonce: [7; 32] };
    let bought = block(
        checkout(
            &world.db,
            &world.provider,
            &Meanwhile(&meanwhile),
            &InDatabase(&world.db),
            &[(DeliveryMode::Instant, &world.method)],
            now,
        )
        .buy(&order),
    );
    assert!(bought.is_err(), "{bought:?}");
}

#[test]
fn a_copy_that_waits_while_its_payer_signs_opens_nothing() {
    let world = World::new();
    let copy = String::from_utf8(STANDARD.decode(&world.header).unwrap()).unwrap();
    let copy = STANDARD.encode(copy.replace("0123456789abcdef", "fedcba9876543210"));
    world.broadcast();
    world.provider.submit_outcome.set(SubmitOutcome::Outstanding);
    let mut first = world.pay_for(&world.terms, &copy, (0, None), &|| ());
    begin(&mut first);
    let first = RefCell::new(Some(first));
    let meanwhile = || {
        world.provider.submit_outcome.set(SubmitOutcome::Answered);
        let Some(first) = first.take() else { return };
        assert!(block(first).is_err(), "a node had it before");
        // The provider accepts nothing when its payer comes.
        world.provider.submit_outcome.set(SubmitOutcome::Limited);
        assert!(matches!(block(world.pay(2_000, Some(world.payer))), Err(PayError::NotSettled(..))));
        world.mine();
    };
    let beside = block(world.pay_for(&world.terms, &copy, (1_000, None), &meanwhile));
    assert!(beside.is_err(), "{beside:?}");
    assert_eq!(block(world.pay(10_000, Some(world.payer))).unwrap().content, "content 1");
}

/// A copy of the header with a secret of the thief's own.
fn copied(world: &World) -> String {
    let copy = String::from_utf8(STANDARD.decode(&world.header).unwrap()).unwrap();
    STANDARD.encode(copy.replace("0123456789abcdef", "fedcba9876543210"))
}

/// A thief's first request claims the payment and waits, because the provider accepts nothing. A second one submits the
/// copy, which a node rejects. The payer signs, and the payment is included when the first request polls again.
#[test]
fn a_copy_that_claimed_first_and_waits_while_its_payer_signs_opens_nothing() {
    for payers in [SubmitOutcome::Limited, SubmitOutcome::Lost] {
        let world = World::new();
        let copy = copied(&world);
        world.broadcast();
        world.provider.submit_outcome.set(SubmitOutcome::Limited);
        let meanwhile = || {
            world.provider.submit_outcome.set(SubmitOutcome::Answered);
            let second = block(world.pay_for(&world.terms, &copy, (5_000, None), &|| ()));
            assert!(second.is_err(), "a node had it before: {second:?}");
            assert_eq!(entry(&world.db, &world.tx()).state, EntryState::Refused);
            world.provider.submit_outcome.set(payers);
            assert!(matches!(block(world.pay(6_000, Some(world.payer))), Err(PayError::NotSettled(..))));
            world.mine();
        };
        let first = block(world.pay_for(&world.terms, &copy, (0, None), &meanwhile));
        assert!(first.is_err(), "{payers:?}: {first:?}");
        world.provider.submit_outcome.set(SubmitOutcome::Answered);
        assert_eq!(block(world.pay(10_000, Some(world.payer))).unwrap().content, "content 1");
    }
}

/// The watcher polls while the payer's submission has not reached the node.
#[test]
fn a_copy_that_claimed_first_opens_nothing_while_the_payers_submission_is_pending() {
    let world = World::new();
    let copy = copied(&world);
    world.broadcast();
    world.provider.submit_outcome.set(SubmitOutcome::Limited);
    let paying = RefCell::new(None);
    let meanwhile = || {
        world.provider.submit_outcome.set(SubmitOutcome::Answered);
        assert!(block(world.pay_for(&world.terms, &copy, (5_000, None), &|| ())).is_err());
        world.provider.submit_outcome.set(SubmitOutcome::Outstanding);
        let mut payer = world.pay(6_000, Some(world.payer));
        begin(&mut payer);
        world.mine();
        paying.replace(Some(payer));
    };
    let first = block(world.pay_for(&world.terms, &copy, (0, None), &meanwhile));
    world.provider.submit_outcome.set(SubmitOutcome::Answered);
    let payer = block(paying.take().unwrap());
    assert!(first.is_err(), "{first:?}; its payer: {payer:?}");
}

/// A node rejects a transaction that another client submitted before. Repeating the header while the index shows
/// nothing does not make it ours, even if one of the answers is lost.
#[test]
fn a_refusal_as_already_known_is_kept_through_a_thiefs_retries() {
    let world = World::new();
    let copy = copied(&world);
    world.broadcast();
    for number in 0..10 {
        world.provider.submit_outcome.set(SubmitOutcome::Answered);
        let refused = block(world.pay_for(&world.terms, &copy, (number * 200, None), &|| ()));
        assert!(refused.is_err());
        let stored = entry(&world.db, &world.tx());
        assert_eq!((stored.state, stored.provenance), (EntryState::Refused, Provenance::Foreign));
    }
    world.provider.submit_outcome.set(SubmitOutcome::Lost);
    assert!(matches!(block(world.pay_for(&world.terms, &copy, (2_000, None), &|| ())), Err(PayError::NotSettled(..))));
    let stored = entry(&world.db, &world.tx());
    world.mine();
    world.provider.submit_outcome.set(SubmitOutcome::Answered);
    let thief = block(world.pay_for(&world.terms, &copy, (3_000, None), &|| ()));
    assert!(thief.is_err(), "{thief:?}; attempts {}, {:?}", stored.attempts, stored.provenance);
}

#[test]
fn a_copy_presented_for_another_listing_does_not_bind_the_payer() {
    for submit_outcome in [SubmitOutcome::Limited, SubmitOutcome::Outstanding] {
        let world = World::new();
        let other = terms_of(&world.db, &list(&world.db, 2, PRICE));
        world.broadcast();
        world.provider.submit_outcome.set(submit_outcome);
        let mut thief = world.pay_for(&other, &world.header, (0, None), &|| ());
        drop(block_on(poll_once(&mut thief)));
        drop(thief);
        world.provider.submit_outcome.set(SubmitOutcome::Answered);
        world.mine();
        assert!(block(world.pay_for(&other, &world.header, (LATER_MS, None), &|| ())).is_err());
        assert_eq!(block(world.pay(LATER_MS, Some(world.payer))).unwrap().content, "content 1", "{submit_outcome:?}");
        assert!(block(world.pay_for(&other, &world.header, (LATER_MS, Some(world.payer)), &|| ())).is_err());
    }
}

#[test]
fn no_payer_is_told_to_pay_anew_while_a_thief_waits_with_another_listing() {
    let world = World::new();
    let other = terms_of(&world.db, &list(&world.db, 2, PRICE));
    world.broadcast();
    world.provider.submit_outcome.set(SubmitOutcome::Outstanding);
    let mut thief = world.pay_for(&other, &world.header, (0, None), &|| ());
    begin(&mut thief);
    for is_mined in [false, true] {
        if is_mined {
            world.mine();
        }
        for proven in [None, Some(world.payer)] {
            let told = block(world.pay(1_000, proven));
            let Err(PayError::NotSettled(why, _)) = told else { panic!("{told:?}") };
            assert_eq!(why, NotSettled::Pending.into(), "in a block: {is_mined}");
        }
    }
    drop(thief);
    world.provider.submit_outcome.set(SubmitOutcome::Answered);
    assert_eq!(block(world.pay(LATER_MS, Some(world.payer))).unwrap().content, "content 1");
}

#[test]
fn a_copy_refused_twice_for_another_listing_does_not_bind_the_payer() {
    let world = World::new();
    let other = terms_of(&world.db, &list(&world.db, 2, PRICE));
    world.broadcast();
    world.provider.submit_outcome.set(SubmitOutcome::Outstanding);
    let first = RefCell::new(world.pay_for(&other, &world.header, (0, None), &|| ()));
    begin(&mut first.borrow_mut());
    let meanwhile = || {
        world.provider.submit_outcome.set(SubmitOutcome::Answered);
        assert!(block(first.borrow_mut().as_mut()).is_err());
        world.mine();
    };
    assert_eq!(block(world.pay_for(&other, &world.header, (1_000, None), &meanwhile)), Err(PayError::Public));
    assert_eq!(block(world.pay(LATER_MS, Some(world.payer))).unwrap().content, "content 1");
}

#[test]
fn a_buyer_whose_payment_was_refused_yet_forwarded_pays_once() {
    let world = World::new();
    world.provider.shows_mempool.set(true);
    world.provider.submit_outcome.set(SubmitOutcome::Denied);
    assert!(block(world.pay(0, None)).is_err());
    world.provider.submit_outcome.set(SubmitOutcome::Answered);
    let again = || block(world.pay_for(&world.terms, &world.another, (5_000, None), &|| ()));
    let Err(PayError::NotSettled(_, told)) = again() else { panic!("it waits") };
    assert_eq!(told.transaction, world.tx().to_string());
    assert_eq!(world.provider.ledger.mempool.borrow().len(), 1);
    world.mine();
    assert_eq!(again().unwrap().content, "content 1");
    assert!(world.provider.ledger.mempool.borrow().is_empty());
}

#[test]
fn a_forwarded_payment_presented_by_a_thief_for_another_listing_is_paid_once() {
    let world = World::new();
    let other = terms_of(&world.db, &list(&world.db, 2, PRICE));
    world.provider.submit_outcome.set(SubmitOutcome::Denied);
    assert!(block(world.pay(0, None)).is_err());
    world.provider.submit_outcome.set(SubmitOutcome::Answered);
    assert!(block(world.pay_for(&other, &world.header, (1_000, None), &|| ())).is_err());
    world.mine();
    let again = block(world.pay_for(&world.terms, &world.another, (30_000, None), &|| ()));
    assert!(world.provider.ledger.mempool.borrow().is_empty(), "paid twice: {again:?}");
}

#[test]
fn a_buyer_whose_confirmed_payment_was_called_expired_pays_once() {
    let world = World::new();
    world.provider.lags.set(true);
    assert!(matches!(block(world.pay(0, None)), Err(PayError::NotSettled(..))));
    (0..20).for_each(|_| world.mine());
    let now = || world.provider.ledger.tip().time_ms - world.begun;
    let Err(PayError::NotSettled(why, _)) = block(world.pay(now(), None)) else { panic!("it is settled") };
    assert_eq!(why, NotSettled::Expired.into());
    // Shown by the provider by now.
    world.provider.lags.set(false);
    let again = block(world.pay_for(&world.terms, &world.anew(), (now(), None), &|| world.mine())).unwrap();
    assert_eq!(again.settlement.transaction, world.tx().to_string());
}

#[test]
fn a_buyer_who_retries_with_a_spent_output_behind_a_lagging_provider_pays_once() {
    let world = World::new();
    let ledger = &world.provider.ledger;
    let spent = world.built.facts.inputs.first().copied().unwrap();
    let coin = ledger.unspent().into_iter().find(|utxo| utxo.reference == spent).unwrap();
    ledger.stand_still();
    assert!(matches!(block(world.pay(0, None)), Err(PayError::NotSettled(..))));
    (0..20).for_each(|_| world.mine());
    let now = || ledger.tip().time_ms - world.begun;
    assert!(matches!(block(world.pay(now(), None)), Err(PayError::NotSettled(..))), "it is called expired");
    for more in 0..3 {
        let header = pays(&world.terms, &world.method, coin.clone(), ledger.tip().slot + 200 + more).1;
        let told = block(world.pay_for(&world.terms, &header, (now(), None), &|| ()));
        let Err(PayError::NotSettled(why, _)) = &told else { panic!("{told:?}") };
        assert!(why.to_string().contains("not there"), "{why}");
    }
    ledger.catch_up();
    let again = block(world.pay_for(&world.terms, &world.anew(), (now(), None), &|| world.mine())).unwrap();
    assert_eq!(again.settlement.transaction, world.tx().to_string());
}

/// A payment that its payer submits for another listing of the same seller, presented by a thief for one that is
/// theirs.
fn another_copy(world: &World) -> Result<PaidContent, PayError> {
    let header: serde_json::Value = serde_json::from_slice(&STANDARD.decode(&world.another).unwrap()).unwrap();
    let cbor = STANDARD.decode(header.pointer("/payload/transaction").unwrap().as_str().unwrap()).unwrap();
    assert!(world.provider.ledger.add_to_mempool(Tx::new(cbor, world.built.facts.valid_until_slot)));
    block(world.pay_for(&world.terms, &world.another, (LATER_MS, None), &|| world.mine()))
}

#[test]
fn a_copy_of_another_payment_opens_nothing_that_its_payer_owns() {
    let world = World::new();
    assert_eq!(
        block(world.pay_for(&world.terms, &world.header, (0, None), &|| world.mine())).unwrap().content,
        "content 1"
    );
    let thief = another_copy(&world);
    assert!(thief.is_err(), "{thief:?}");
}

#[test]
fn a_copy_of_another_payment_opens_nothing_that_its_payer_is_paying_for() {
    let world = World::new();
    assert!(block(world.pay(0, None)).is_err(), "it waits for a block");
    let thief = another_copy(&world);
    assert!(thief.is_err(), "{thief:?}");
}

/// Like [`another_copy`], with the thief's own `payment-identifier`, and repeated a minute later.
fn named_copy(world: &World) -> [Result<PaidContent, PayError>; 2] {
    let mut header: serde_json::Value = serde_json::from_slice(&STANDARD.decode(&world.another).unwrap()).unwrap();
    let cbor = STANDARD.decode(header.pointer("/payload/transaction").unwrap().as_str().unwrap()).unwrap();
    *header.pointer_mut("/extensions").unwrap() =
        json!({ "payment-identifier": { "info": { "required": false, "id": "a-name-of-the-thief" } } });
    let header = STANDARD.encode(header.to_string());
    assert!(world.provider.ledger.add_to_mempool(Tx::new(cbor, world.built.facts.valid_until_slot)));
    let first = block(world.pay_for(&world.terms, &header, (LATER_MS, None), &|| world.mine()));
    [first, block(world.pay_for(&world.terms, &header, (2 * LATER_MS, None), &|| ()))]
}

#[test]
fn a_payment_identifier_on_a_copy_opens_nothing_that_the_payer_owns() {
    let world = World::new();
    assert!(block(world.pay_for(&world.terms, &world.header, (0, None), &|| world.mine())).is_ok());
    let thief = named_copy(&world);
    assert!(thief.iter().all(Result::is_err), "{thief:?}");
}

#[test]
pub fn a_payment_identifier_on_a_copy_opens_nothing_that_the_payer_is_paying_for() {
    let world = World::new();
    assert!(block(world.pay(0, None)).is_err(), "it waits for a block");
    let thief = named_copy(&world);
    assert!(thief.iter().all(Result::is_err), "{thief:?}");
}

#[test]
fn a_payment_identifier_on_a_refused_copy_opens_nothing_once_the_payer_pays() {
    let world = World::new();
    let mut header: serde_json::Value = serde_json::from_slice(&STANDARD.decode(&world.header).unwrap()).unwrap();
    *header.pointer_mut("/extensions").unwrap() =
        json!({ "payment-identifier": { "info": { "required": false, "id": "a-name-of-the-thief" } } });
    let header = STANDARD.encode(header.to_string());
    let thief = |after_ms| block(world.pay_for(&world.terms, &header, (after_ms, None), &|| ()));
    world.broadcast();
    assert!(thief(0).is_err(), "a node had it before");
    // The provider accepts nothing when its payer comes.
    world.provider.submit_outcome.set(SubmitOutcome::Limited);
    assert!(matches!(block(world.pay(10_000, Some(world.payer))), Err(PayError::NotSettled(..))));
    world.mine();
    assert_eq!(block(world.pay(20_000, Some(world.payer))).unwrap().content, "content 1");
    let thief = thief(30_000);
    assert!(thief.is_err(), "{thief:?}");
}

#[test]
fn a_payment_of_unknown_provenance_opens_for_its_payer_alone_after_its_validity() {
    for (submit_outcome, asker) in [
        (SubmitOutcome::Limited, 0),
        (SubmitOutcome::Outstanding, 0),
        (SubmitOutcome::Limited, 1),
        (SubmitOutcome::Limited, 2),
    ] {
        let world = World::new();
        let other = terms_of(&world.db, &list(&world.db, 2, PRICE));
        let copied = if asker == 2 { &other } else { &world.terms };
        let thief = |after| world.pay_for(copied, &world.header, (after, None), &|| ());
        world.broadcast();
        // The provider's view of blocks lags for longer than the payment is valid.
        world.provider.lags.set(true);
        world.provider.submit_outcome.set(submit_outcome);
        drop(block_on(poll_once(&mut thief(0))));
        (0..20).for_each(|_| world.mine());
        let now = world.provider.ledger.tip().time_ms - world.begun;
        let asks = if asker == 1 { world.pay(now, Some(world.payer)) } else { thief(now) };
        assert!(block(asks).is_err(), "it is in no block");
        world.provider.lags.set(false);
        let thief = block(thief(now));
        assert!(thief.is_err(), "{submit_outcome:?}: {thief:?}");
        assert_eq!(
            block(world.pay(now, Some(world.payer))).unwrap().content,
            "content 1",
            "{submit_outcome:?}, {asker}"
        );
    }
}

#[test]
fn a_thief_behind_the_payers_address_gets_no_delivered_content() {
    for bytes in [64 << 10, (64 << 10) + 1] {
        let mut world = World::new();
        world.header = without_echoes(&world.header);
        block(world.db.execute::<()>(sql::write!("UPDATE contents SET content = ?1", "x".repeat(bytes)))).unwrap();
        let payer = block(world.pay_for(&world.terms, &world.header, (0, None), &|| world.mine()));
        assert_eq!(payer.unwrap().content.len(), bytes);
        let thief = block(world.pay(LATER_MS, None));
        assert!(thief.is_err(), "{bytes} bytes: the payer has it, and the thief");
    }
}

#[test]
pub fn a_broadcast_payment_with_its_payers_signature_waits_for_its_block() {
    let world = World::new();
    world.provider.shows_mempool.set(true);
    world.broadcast();
    // A node would reject it as known.
    let meanwhile = || world.mine();
    let paid = world.pay_for(&world.terms, &world.header, (0, Some(world.payer)), &meanwhile);
    assert_eq!(block(paid).unwrap().content, "content 1");
}
