//! Returning buyers who prove their payment by a signature.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use std::cell::{Cell, RefCell};

use crate::support::{
    NOON, Paying, block, checkout, entry, given, inclusion,
    ledger::{Ledger, Tx},
    list, paying_for, payment, person,
    provider::{Meanwhile, Provider},
    sales::{PRICE as SOLD_FOR, Sales, creator, output},
    sign_up, step,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::{
    Address, Lovelace, TxHash, TxRef,
    chain::{Chain, Utxo},
    keys::SigningKey,
    params::ProtocolParameters,
    tx::{
        TransactionUtxos,
        build::{NewOutput, TxPlan, Validity, Wallet, build},
    },
};
use escrow::Action;
use market::{
    DeliveryMode,
    catalogue::{self, ListingTerms},
    checkout::{Checkout, PaidContent, PayError, Presented, Redelivered, Unavailable},
    claim::Claim,
    contents::InDatabase,
    transitions,
};
use outbox::{Decision, Entry, EntryState, Outbox, PollPolicy, Provenance, Sleep, Trust, TxStatus};
use serde_json::json;
use sql::{Database, Write, sqlite::Sqlite};
use x402_cardano::{
    method::{DefaultMethod, PaymentMethod},
    wire::ConfirmationPolicy,
};

const PRICE: u64 = 5_000_000;
const UNTIL: u64 = u64::MAX >> 12;

struct NoSleep;

impl Sleep for NoSleep {
    async fn sleep(&self, _: u64) {}
}

/// A claimed external payment that was not submitted yet.
struct Claimed {
    db: Sqlite,
    ledger: Ledger,
    tx: TxHash,
    cbor: Vec<u8>,
    terms: ListingTerms,
    buyer: Address,
}

/// Claims an external payment without submitting it.
fn claimed() -> Claimed {
    let (db, ledger) = (Sqlite::of(market::schema::MIGRATIONS).unwrap(), Ledger::new());
    let (account, key) = sign_up(&db, 1, NOON);
    let listing = list(&db, 1, PRICE);
    let built = payment(&account, &key, &[given(&account, 0xfa, 200_000_000)], PRICE, UNTIL);
    let provenance = Provenance::Unknown;
    let paying = Paying { account: None, provenance, ..paying_for(&account, &listing, &built, PRICE) };
    assert!(matches!(paying.claim(&db, NOON), Claim::New(_)));
    let terms = block(db.fetch(catalogue::terms(&listing))).unwrap().unwrap();
    Claimed { tx: paying.tx(), cbor: built.cbor.clone(), buyer: account.wallet_address, db, ledger, terms }
}

fn again(
    db: &Sqlite,
    ledger: &Ledger,
    terms: &ListingTerms,
    buyer: &Address,
    wanted: u64,
) -> Result<Option<Redelivered>, Unavailable> {
    again_at(NOON, db, ledger, terms, buyer, wanted)
}

fn again_at(
    clock: u64,
    db: &Sqlite,
    ledger: &Ledger,
    terms: &ListingTerms,
    buyer: &Address,
    wanted: u64,
) -> Result<Option<Redelivered>, Unavailable> {
    ledger.calls.set(0);
    block(
        Checkout {
            clock,
            schedule: &[],
            confirmations: wanted,
            ..checkout(db, ledger, &NoSleep, &InDatabase(db), &[], NOON)
        }
        .redeliver(terms, &[*buyer.payment_key()]),
    )
}

#[test]
fn a_signature_opens_nothing_earlier_than_the_payment_does() {
    let Claimed { db, ledger, tx, cbor, terms, buyer } = claimed();
    assert!(ledger.add_to_mempool(Tx::new(cbor.clone(), UNTIL)));
    ledger.mine();

    // Included, found by the signed request, and then recorded.
    for _ in 0..2 {
        let early = again(&db, &ledger, &terms, &buyer, 2);
        assert_eq!(early, Err(Unavailable::Unconfirmed(tx)));
        let found = ledger.inclusion(&tx).unwrap();
        step(&db, &tx, &Decision::Include(found));
    }
    ledger.mine();
    assert!(again(&db, &ledger, &terms, &buyer, 2).is_err());
    ledger.mine();
    assert_eq!(block(Chain::tip(&ledger)).unwrap().height, ledger.inclusion(&tx).unwrap().height + 2);
    let bought = again(&db, &ledger, &terms, &buyer, 2).unwrap().unwrap();
    assert_eq!((bought.purchase, bought.content.as_str()), (tx, "content 1"));
    assert!(again(&db, &ledger, &terms, &buyer, 0).unwrap().is_some());
}

#[test]
fn a_payment_refused_by_one_node_and_accepted_by_another_gets_the_content() {
    for end in [Decision::Refuse("no".into()), Decision::Expire] {
        let Claimed { db, ledger, tx, cbor, terms, buyer } = claimed();
        assert!(step(&db, &tx, &end));
        assert_eq!(again(&db, &ledger, &terms, &buyer, 0), Ok(None), "{end:?}");
        assert!(ledger.add_to_mempool(Tx::new(cbor.clone(), UNTIL)));
        ledger.mine();
        let bought = again(&db, &ledger, &terms, &buyer, 0).unwrap().unwrap();
        assert_eq!(bought.purchase, tx, "{end:?}");
    }
}

/// Encodes the witness set with indefinite lengths; signatures do not cover that.
fn with_other_witnesses(cbor: &[u8]) -> Vec<u8> {
    let body = TransactionUtxos::read(cbor).unwrap().id;
    let behind = (1..cbor.len()).find(|end| TxHash::of_body(&cbor[1..*end]) == body).unwrap();
    assert_eq!(cbor[behind], 0xa1, "a map of one field");
    let end = cbor.len() - 2;
    [&cbor[..behind], &[0xbf], &cbor[behind + 1..end], &[0xff], &cbor[end..]].concat()
}

#[test]
fn a_payment_whose_block_encodes_the_witnesses_differently_gets_the_content() {
    for end in [Decision::Refuse("a node had it".into()), Decision::Expire] {
        let Claimed { db, ledger, tx, cbor, terms, buyer } = claimed();
        assert!(step(&db, &tx, &end));
        let other = Tx::new(with_other_witnesses(&cbor), UNTIL);
        assert_eq!(other.id, tx);
        assert!(ledger.add_to_mempool(other));
        ledger.mine();
        let bought = again(&db, &ledger, &terms, &buyer, 0).unwrap().unwrap();
        assert_eq!(bought.purchase, tx, "{end:?}");
    }
}

#[test]
fn a_lock_is_redelivered_with_its_result_and_never_without() {
    let (sales, buyer) = (Sales::new(), person(9));
    let lock = sales.sell(&buyer);
    sales.ledger.mine();
    let terms = block(sales.db.fetch(catalogue::terms(&sales.listing))).unwrap().unwrap();
    let end = sales.escrow(&lock).datum.deadlines.submit_result;
    let address = buyer.enterprise_address();
    let ask = |clock| again_at(clock, &sales.db, &sales.ledger, &terms, &address, 0);
    assert_eq!(ask(sales.now()), Err(Unavailable::NoResult(lock)));
    assert_eq!(ask(end), Err(Unavailable::Refundable(lock)), "the money can be taken back");
    sales.ticks(3);
    assert!(sales.escrow(&lock).datum.has_result());
    assert!(ask(sales.now()).unwrap().is_some());
    assert!(ask(end + 1).unwrap().is_some());
}

#[test]
fn a_lock_that_a_provider_does_not_show_to_a_request_stays_a_purchase() {
    let (sales, buyer) = (Sales::new(), person(9));
    let lock = sales.sell(&buyer);
    sales.ledger.mine();
    sales.tick();
    // No money is left to pay for results, and the lock expires.
    let platform = sales.platform.seller.enterprise_address().to_string();
    sales.ledger.mempool.borrow_mut().clear();
    sales.lose(|utxo| utxo.address == platform);
    sales.until(8);
    sales.tick();
    assert_eq!(sales.status(&lock), "FundsLocked");
    let terms = block(sales.db.fetch(catalogue::terms(&sales.listing))).unwrap().unwrap();
    sales.ledger.unseen.borrow_mut().insert(lock);
    let address = buyer.enterprise_address();
    for _ in 0..2 {
        let asked = again_at(sales.now(), &sales.db, &sales.ledger, &terms, &address, 0);
        assert_eq!(asked, Err(Unavailable::NoResult(lock)));
        assert_eq!(sales.status(&lock), "FundsLocked", "only the watcher, which compares blocks, undoes");
    }
}

/// A buyer of the listing presents another payment for it that was not submitted. This event happens while its absence
/// from the chain is being checked.
pub fn presents_another(
    sales: &Sales,
    buyer: &SigningKey,
    coin: &Utxo,
    confirmations: u64,
    meanwhile: &dyn Fn(),
) -> Result<PaidContent, PayError> {
    let method = DefaultMethod::new(api_types::NETWORK, ConfirmationPolicy::new(0).unwrap()).unwrap();
    let terms: ListingTerms = block(sales.db.fetch(catalogue::terms(&sales.listing))).unwrap().unwrap();
    let plan = TxPlan {
        outputs: vec![NewOutput::pay(creator(), Lovelace::new(SOLD_FOR).unwrap())],
        validity: Validity { from: None, until: sales.ledger.tip().slot + 200 },
        ..TxPlan::default()
    };
    let wallet =
        Wallet { address: buyer.enterprise_address(), utxos: std::slice::from_ref(coin), reserved: &[].into() };
    let built = build(&plan, &wallet, &ProtocolParameters::preprod()).unwrap().sign(&[buyer]).unwrap();
    let header = json!({
        "x402Version": 2,
        "accepted": method.listed(&terms.sale()).unwrap(),
        "payload": { "transaction": STANDARD.encode(&built.cbor), "nonce": coin.reference.to_string() },
        "extensions": { "request-binding": { "info": { "secret": "0123456789abcdef" } } },
    });
    let header = STANDARD.encode(header.to_string());
    let presented = Presented::read(&header, "network", None).unwrap();
    sales.ledger.calls.set(0);
    block(
        Checkout {
            confirmations,
            ..checkout(
                &sales.db,
                &sales.ledger,
                &Meanwhile(meanwhile),
                &InDatabase(&sales.db),
                &[(DeliveryMode::Instant, &method)],
                sales.now(),
            )
        }
        .pay(&terms, &presented, None),
    )
}

#[test]
fn a_lock_without_a_result_opens_nothing_while_its_refund_is_recorded() {
    let (sales, buyer) = (Sales::new(), person(9));
    let lock = sales.sell(&buyer);
    sales.ledger.mine();
    sales.includes(&lock);
    // No money is left to pay for results.
    let platform = sales.platform.seller.enterprise_address().to_string();
    sales.lose(|utxo| utxo.address == platform);
    let coin = output(buyer.enterprise_address().to_string(), Lovelace::from_ada(100), None);
    let funds = sales.puts(std::slice::from_ref(&coin));
    let coin = Utxo { reference: TxRef { tx: funds, index: 0 }, ..coin };
    sales.until(17);
    let early = presents_another(&sales, &buyer, &coin, 0, &|| ());
    assert_eq!(early, Err(Unavailable::Refundable(lock).into()));
    sales.does(&lock, Action::WithdrawRefund);
    sales.ledger.mine();
    let meanwhile = RefCell::new(Some(|| drop(sales.ticks(2))));
    let given = presents_another(&sales, &buyer, &coin, 0, &|| meanwhile.take().into_iter().for_each(|ticks| ticks()));
    assert_eq!(sales.status(&lock), "refunded");
    assert!(given.is_err(), "{given:?}");
}

/// Waits with twelve polls for the block of a payment that a node has accepted. Before the fourth poll there is a block
/// without the payment, and before the eighth one with it. Returns the numbers of polls, and of lookups of the payment.
fn polls_and_lookups(lists: bool) -> (u32, u32) {
    let Claimed { db, ledger, tx, cbor, .. } = claimed();
    assert!(step(&db, &tx, &Decision::Accept));
    let provider = Provider::new(ledger);
    provider.lists.set(lists);
    block(provider.tip()).unwrap();
    let polls = Cell::new(0);
    let makes_blocks = || {
        polls.set(polls.get() + 1);
        if polls.get() == 8 {
            assert!(provider.ledger.add_to_mempool(Tx::new(cbor.clone(), UNTIL)));
        }
        if matches!(polls.get(), 4 | 8) {
            provider.ledger.mine();
        }
    };
    let outbox = Outbox { database: &db, chain: &provider, hook: &transitions::statements };
    let sleep = Meanwhile(&makes_blocks);
    let policy = PollPolicy { sleep: &sleep, schedule: &[500; 12], at_once: false };
    let outcome =
        block(outbox.wait_for_block(&mut entry(&db, &tx), &policy, Trust::Payer, NOON, |_| None::<Write>)).unwrap();
    assert!(matches!(outcome.status, TxStatus::Included(_)), "{:?}", outcome.status);
    (polls.get(), provider.lookups.get())
}

#[test]
fn a_request_that_waits_asks_for_its_transaction_only_if_a_new_block_may_include_it() {
    // The list of a block's transactions is enough for a payment, which runs no script.
    assert_eq!(polls_and_lookups(true), (8, 0));
    // Without a list: twice for the first block, and once for the second.
    assert_eq!(polls_and_lookups(false), (8, 2 + 1));
}

#[test]
fn an_expired_payment_presented_again_is_refused_as_expired() {
    let Claimed { db, ledger, tx, cbor, .. } = claimed();
    let read = entry(&db, &tx);
    assert!(step(&db, &tx, &Decision::Expire));

    let outbox = Outbox { database: &db, chain: &ledger, hook: &transitions::statements };
    let policy = PollPolicy { sleep: &NoSleep, schedule: &[500, 1_000], at_once: true };
    // As it is stored now, and as read by a slower request.
    for mut read in [entry(&db, &tx), Entry { valid_until: 0, ..read }] {
        let outcome =
            block(outbox.wait_for_block(&mut read, &policy, Trust::Unproven, NOON, |_| None::<Write>)).unwrap();
        assert_eq!(outcome.status, TxStatus::Expired);
    }
    assert!(ledger.add_to_mempool(Tx::new(cbor.clone(), UNTIL)));
    ledger.mine();
    let outcome =
        block(outbox.wait_for_block(&mut entry(&db, &tx), &policy, Trust::Unproven, NOON, |_| None::<Write>)).unwrap();
    assert!(matches!(outcome.status, TxStatus::Included(_)), "the chain has the last word");
}

#[test]
fn a_payment_that_another_request_found_in_a_block_is_not_called_expired() {
    let Claimed { db, ledger, tx, .. } = claimed();
    let mut read = Entry { valid_until: 0, ..entry(&db, &tx) };
    assert!(step(&db, &tx, &Decision::Include(inclusion(1))));

    let outbox = Outbox { database: &db, chain: &ledger, hook: &transitions::statements };
    let policy = PollPolicy { sleep: &NoSleep, schedule: &[500], at_once: true };
    let outcome = block(outbox.wait_for_block(&mut read, &policy, Trust::Unproven, NOON, |_| None::<Write>)).unwrap();
    assert!(matches!(outcome.status, TxStatus::Included(_)), "{:?}", outcome.status);
}

#[test]
fn a_lock_given_up_while_a_request_waits_for_its_block_gets_its_result() {
    for end in [EntryState::Refused, EntryState::Expired] {
        let (sales, buyer) = (Sales::new(), person(9));
        // The buyer submits it elsewhere as well.
        let lock = sales.sell(&buyer);
        let outbox = Outbox { database: &sales.db, chain: &sales.ledger, hook: &transitions::statements };
        let (mut first, mut beside) = (entry(&sales.db, &lock), entry(&sales.db, &lock));
        if end == EntryState::Refused {
            assert!(block(outbox.submit_first(&mut first, None, sales.now())).unwrap().is_some());
        } else {
            assert!(step(&sales.db, &lock, &Decision::Expire), "by who saw a provider that was behind");
        }
        assert_eq!(entry(&sales.db, &lock).state, end);
        sales.ledger.mine();
        let policy = PollPolicy { sleep: &NoSleep, schedule: &[], at_once: true };
        let outcome =
            block(outbox.wait_for_block(&mut beside, &policy, Trust::Unproven, sales.now(), |_| None::<Write>))
                .unwrap();
        assert!(matches!(outcome.status, TxStatus::Included(_)));

        let notes: Vec<_> = sales.ticks(3).into_iter().flat_map(|report| report.notes).collect();
        assert!(sales.escrow(&lock).datum.has_result(), "{end:?}: {notes:?}");
    }
}
