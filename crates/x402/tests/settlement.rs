//! What becomes of a verified payment when providers time out, forget, repeat themselves or go down, and when
//! buyers repeat, copy or abandon requests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test that cannot go on fails"
)]

mod support;
#[path = "support/world.rs"]
mod world;

use cardano::{ContentHash, chain::ChainError, keys::Native, slots::SlotConfig};
use futures_util::FutureExt;
use serde_json::json;
use support::*;
use world::{StoreDown, Submit, World};
use x402_cardano::{
    Refusal,
    exact::{InputState, MAX_INPUT_TRANSACTIONS, Moment, default},
    settlement::{Admission, Evidence, Outcome, SettleError, Settler, State, admit},
    wire::{ConfirmationPolicy, Network, SettlementStatus},
};

const RESOURCE: &str = "lst_1";
/// About a minute.
const SCHEDULE: [u64; 6] = [2_000, 4_000, 8_000, 12_000, 16_000, 18_000];

type Settled = Result<Outcome, SettleError<StoreDown>>;

impl World {
    fn admit(&self, header: &str, resource: &str) -> Result<Admission, SettleError<StoreDown>> {
        self.admit_terms(header, resource, None)
    }

    fn admit_terms(
        &self,
        header: &str,
        resource: &str,
        terms: Option<ContentHash>,
    ) -> Result<Admission, SettleError<StoreDown>> {
        let moment = Moment { now_ms: self.now_ms.get(), slots: SlotConfig::PREPROD };
        let verify = async |offer: &x402_cardano::exact::Offer| {
            default::verify(&self.payment.requirements, offer, self, &Native, moment).await
        };
        admit(header, resource, terms, &self.store, self, verify).now_or_never().unwrap()
    }

    fn settle_by(&self, admission: Admission, policy: ConfirmationPolicy, schedule: &[u64]) -> Settled {
        let settler = Settler { chain: self, store: &self.store, sleep: self, policy, schedule };
        settler.settle(admission, self.now_ms.get()).now_or_never().unwrap()
    }

    fn settle(&self, admission: Admission) -> Settled {
        self.settle_by(admission, ConfirmationPolicy::IN_BLOCK, &SCHEDULE)
    }

    /// The whole of a paid request.
    fn pay(&self) -> Settled {
        let admission = self.admit(&self.payment.header(), RESOURCE)?;
        self.settle(admission)
    }

    fn state(&self) -> State {
        self.store.records.borrow().values().next().expect("written down").state
    }

    fn submissions(&self) -> usize {
        self.submitted.borrow().len()
    }

    fn deliver(&self) {
        self.store.records.borrow_mut().values_mut().for_each(|record| record.delivered = true);
    }
}

fn world() -> World {
    World::new(Payment::valid())
}

fn confirmed(outcome: &Settled) -> bool {
    matches!(outcome, Ok(Outcome::Confirmed(Evidence::Block { .. })))
}

#[test]
fn a_payment_is_confirmed_by_the_block_that_has_it() {
    let world = world();
    let outcome = world.pay();
    assert!(confirmed(&outcome), "{outcome:?}");
    assert_eq!((world.state(), world.submissions()), (State::Included, 1));

    let tx = *world.store.records.borrow().keys().next().unwrap();
    let response = outcome.unwrap().response(&tx, &address(BUYER), Network::Preprod);
    assert_eq!(
        serde_json::to_value(&response).unwrap(),
        json!({
            "success": true, "transaction": tx.to_string(), "network": "cardano:preprod",
            "payer": address(BUYER).to_string(), "extra": { "status": "confirmed", "confirmations": 0 },
        })
    );
}

#[test]
fn a_payment_that_no_block_has_in_time_is_pending_and_resumed_without_another_submission() {
    let world = world().without_blocks();
    let outcome = world.settle_by(
        world.admit(&world.payment.header(), RESOURCE).unwrap(),
        ConfirmationPolicy::IN_BLOCK,
        &[2_000, 3_000],
    );
    let Ok(pending @ Outcome::Pending(Some(Evidence::Mempool))) = outcome else { panic!("{outcome:?}") };
    let tx = *world.store.records.borrow().keys().next().unwrap();
    let response = pending.response(&tx, &address(BUYER), Network::Preprod);
    assert_eq!(response.error_reason.as_deref(), Some("settlement_pending"));
    assert!(!response.success);
    assert_eq!(response.transaction, tx.to_string());
    let extra = response.extra.unwrap();
    assert_eq!((extra.status, extra.confirmations), (SettlementStatus::Pending, None));

    world.block();
    assert!(confirmed(&world.pay()));
    assert_eq!(world.submissions(), 1);
}

#[test]
fn a_submission_without_an_answer_that_was_taken_is_confirmed() {
    let world = world().plan(&[Submit::TakeSilently]);
    assert!(confirmed(&world.pay()));
    assert_eq!(world.state(), State::Included);
}

#[test]
fn a_submission_without_an_answer_that_was_lost_is_repeated_with_the_same_bytes() {
    let world = world().plan(&[Submit::Fail, Submit::Fail]);
    assert!(confirmed(&world.pay()));
    let submitted = world.submitted.borrow();
    assert_eq!(submitted.len(), 3);
    assert!(submitted.iter().all(|bytes| *bytes == submitted[0]));
}

#[test]
fn a_refusal_after_an_unanswered_submission_settles_nothing() {
    let world = world().plan(&[Submit::TakeSilently, Submit::Refuse]);
    assert!(confirmed(&world.pay()), "the first submission was taken");
    let world = World::new(Payment::valid()).without_blocks().plan(&[
        Submit::Fail,
        Submit::Refuse,
        Submit::Refuse,
        Submit::Refuse,
        Submit::Refuse,
        Submit::Refuse,
    ]);
    assert_eq!(world.pay(), Ok(Outcome::Pending(None)), "it may have been taken");
    assert_eq!(world.state(), State::Claimed);
}

#[test]
fn a_transaction_that_the_mempool_forgot_is_submitted_again_while_it_is_valid() {
    let world = world().plan(&[Submit::Drop]);
    let admission = world.admit(&world.payment.header(), RESOURCE).unwrap();
    let outcome = world.settle_by(admission, ConfirmationPolicy::IN_BLOCK, &[20_000, 30_000]);
    assert_eq!(outcome, Ok(Outcome::Pending(Some(Evidence::Mempool))));
    assert_eq!(world.submissions(), 1);
    world.advance(10_000);
    assert!(confirmed(&world.pay()));
    assert_eq!(world.submissions(), 2);
}

#[test]
fn a_refusal_of_the_only_attempt_frees_the_transaction_for_another_try() {
    let world = world().plan(&[Submit::Refuse]);
    assert_eq!(world.pay(), Ok(Outcome::Refused("FeeTooSmallUTxO".into())));
    assert_eq!(world.state(), State::Refused);
    assert!(confirmed(&world.pay()), "the same request verifies anew and is claimed anew");
    assert_eq!(world.submissions(), 2);
}

#[test]
fn a_refusal_of_the_only_attempt_frees_it_again_after_a_second_try() {
    let world = world().plan(&[Submit::Refuse, Submit::Refuse]);
    for _ in 0..2 {
        assert_eq!(world.pay(), Ok(Outcome::Refused("FeeTooSmallUTxO".into())));
    }
}

#[test]
fn a_refusal_frees_nothing_once_another_request_attempted_too() {
    let world = world().without_blocks().plan(&[Submit::RefuseWhileAnotherBegins]);
    let admission = world.admit(&world.payment.header(), RESOURCE).unwrap();
    let outcome = world.settle_by(admission, ConfirmationPolicy::IN_BLOCK, &[1_000]);
    assert_eq!(outcome, Ok(Outcome::Pending(None)), "the other request's submission may have been taken");
    assert_eq!(world.state(), State::Claimed);
}

#[test]
fn a_refusal_because_somebody_else_broadcast_it_does_not_lose_the_purchase() {
    // In the mempool already: refused now, in a block later. The same request finds it there.
    let world = world().plan(&[Submit::RefuseAsKnown]);
    assert_eq!(world.pay(), Ok(Outcome::Refused("BadInputsUTxO".into())));
    world.block();
    assert!(confirmed(&world.pay()));
    assert_eq!((world.state(), world.submissions()), (State::Included, 1));
}

#[test]
fn a_refused_payment_that_got_into_a_block_opens_nothing_for_anybody_else() {
    let world = world().plan(&[Submit::RefuseAsKnown]);
    world.pay().unwrap();
    world.block();
    assert_eq!(world.admit(&world.payment.header(), "lst_2"), Err(Refusal::OtherResource.into()));
    assert_eq!(world.admit(&copied(&world), RESOURCE), Err(Refusal::DuplicateSettlement.into()));
    assert!(confirmed(&world.pay()), "and still its content to the buyer");
}

#[test]
fn a_refused_payment_cannot_be_claimed_by_a_request_that_was_admitted_beside_it() {
    let world = world().plan(&[Submit::RefuseAsKnown]);
    let thief = world.admit(&copied(&world), RESOURCE).unwrap();
    world.pay().unwrap();
    assert_eq!(world.settle(thief), Err(Refusal::DuplicateSettlement.into()));
    assert_eq!(world.submissions(), 1);
}

/// The same transaction in another header.
fn copied(world: &World) -> String {
    let mut payload = world.payment.payload();
    payload["copied"] = json!(true);
    base64::Engine::encode(&base64::engine::general_purpose::STANDARD, payload.to_string())
}

#[test]
fn a_transaction_whose_time_is_over_is_expired_only_after_the_grace_for_forks() {
    let world = world().plan(&[Submit::Drop, Submit::Fail, Submit::Fail, Submit::Fail, Submit::Fail]);
    let header = world.payment.header();
    let resume = || {
        let admission = world.admit(&header, RESOURCE).unwrap();
        world.settle_by(admission, ConfirmationPolicy::IN_BLOCK, &[])
    };
    world.settle_by(world.admit(&header, RESOURCE).unwrap(), ConfirmationPolicy::IN_BLOCK, &[1_000]).unwrap();
    world.advance(230_000);
    assert!(matches!(resume(), Ok(Outcome::Pending(_))), "30 s after the TTL");
    world.advance(60_000);
    assert_eq!(resume(), Ok(Outcome::Expired));
    assert_eq!(world.state(), State::Expired);
    assert_eq!(resume(), Ok(Outcome::Expired), "and stays so");
}

#[test]
fn a_process_that_died_between_claim_and_submission_is_made_good_by_the_next_request() {
    use x402_cardano::settlement::SettlementStore;
    let world = world();
    let Admission::New(claim) = world.admit(&world.payment.header(), RESOURCE).unwrap() else { panic!("not new") };
    world.store.claim(&claim, world.now_ms.get()).now_or_never().unwrap().unwrap();
    assert_eq!(world.submissions(), 0);
    world.advance(6_000);
    assert!(confirmed(&world.pay()));
    assert_eq!(world.submissions(), 1);
}

#[test]
fn two_requests_with_one_header_submit_once_and_both_get_the_outcome() {
    let world = world();
    let header = world.payment.header();
    let (one, two) = (world.admit(&header, RESOURCE).unwrap(), world.admit(&header, RESOURCE).unwrap());
    assert!(confirmed(&world.settle(one)));
    assert!(confirmed(&world.settle(two)));
    assert_eq!(world.submissions(), 1);
}

#[test]
fn one_transaction_pays_for_one_resource_even_when_asked_for_two_at_once() {
    let world = world();
    let header = world.payment.header();
    let (one, two) = (world.admit(&header, "lst_1").unwrap(), world.admit(&header, "lst_2").unwrap());
    assert!(confirmed(&world.settle(one)));
    assert_eq!(world.settle(two), Err(Refusal::OtherResource.into()));
    assert_eq!(world.admit(&header, "lst_2"), Err(Refusal::OtherResource.into()));
    assert_eq!(world.submissions(), 1);
}

#[test]
fn a_transaction_copied_from_the_chain_into_another_header_is_refused() {
    let world = world();
    let one = world.admit(&world.payment.header(), RESOURCE).unwrap();
    let copied = copied(&world);
    let two = world.admit(&copied, RESOURCE).unwrap();
    assert!(confirmed(&world.settle(one)));
    assert_eq!(world.settle(two), Err(Refusal::DuplicateSettlement.into()));
    assert_eq!(world.admit(&copied, RESOURCE), Err(Refusal::DuplicateSettlement.into()));
}

#[test]
fn the_same_header_opens_nothing_after_the_delivery() {
    let world = world();
    assert!(confirmed(&world.pay()));
    assert!(confirmed(&world.pay()), "not delivered yet: the answer may have been lost");
    world.deliver();
    let refusal = world.pay().unwrap_err();
    assert_eq!(refusal, Refusal::DuplicateSettlement.into());
    assert!(refusal.to_string().contains("X-Service-Proof"));
}

#[test]
fn a_transaction_that_its_buyer_already_broadcast_is_refused() {
    let world = world();
    world.mempool.borrow_mut().push(cardano::tx::SignedTx::parse(&world.payment.transaction()).unwrap());
    world.block();
    let refusal = world.pay().unwrap_err();
    assert!(matches!(refusal, SettleError::Refused(Refusal::NonceNotUnspent(_))), "{refusal:?}");
    assert_eq!(world.submissions(), 0);
}

#[test]
fn terms_belong_to_the_first_transaction_that_claims_them() {
    let world = world();
    let terms = Some(ContentHash::new([5; 32]));
    let one = world.admit_terms(&world.payment.header(), RESOURCE, terms).unwrap();
    let mut other = Payment::valid();
    other.ttl = Some(now_slot() + 201);
    let two = world.admit_terms(&other.header(), RESOURCE, terms).unwrap();
    assert!(matches!(world.settle_by(one, ConfirmationPolicy::IN_BLOCK, &[]), Ok(Outcome::Pending(_))));
    assert_eq!(world.settle(two), Err(Refusal::DuplicateSettlement.into()));
    assert_eq!(world.submissions(), 1);
}

#[test]
fn the_confirmations_that_are_asked_for_are_waited_for() {
    let outcome = |policy: ConfirmationPolicy, schedule: &[u64]| {
        let world = world();
        let admission = world.admit(&world.payment.header(), RESOURCE).unwrap();
        world.settle_by(admission, policy, schedule)
    };
    let two = ConfirmationPolicy::new(2).unwrap();
    assert_eq!(outcome(ConfirmationPolicy::MEMPOOL, &[]), Ok(Outcome::Confirmed(Evidence::Mempool)));
    assert!(confirmed(&outcome(ConfirmationPolicy::IN_BLOCK, &[10_000])));
    let early = outcome(two, &[10_000, 20_000]);
    assert!(
        matches!(early, Ok(Outcome::Pending(Some(Evidence::Block { confirmations: 1, .. })))),
        "one newer block is not two: {early:?}"
    );
    let late = outcome(two, &[10_000, 20_000, 20_000]);
    assert!(matches!(late, Ok(Outcome::Confirmed(Evidence::Block { confirmations: 2, .. }))), "{late:?}");
}

#[test]
fn nothing_is_submitted_that_could_not_be_written_down() {
    let world = world();
    let admission = world.admit(&world.payment.header(), RESOURCE).unwrap();
    world.store.down.set(true);
    assert_eq!(world.settle(admission), Err(SettleError::Store(StoreDown)));
    assert_eq!(world.submissions(), 0);
}

#[test]
fn a_provider_that_is_down_refuses_nobody_and_approves_nobody() {
    let world = world();
    world.down.set(true);
    assert!(matches!(world.pay(), Err(SettleError::Chain(ChainError::Unavailable(_)))));
    assert!(world.store.records.borrow().is_empty());

    world.down.set(false);
    let admission = world.admit(&world.payment.header(), RESOURCE).unwrap();
    world.down.set(true);
    assert_eq!(world.settle(admission), Ok(Outcome::Pending(Some(Evidence::Mempool))));
    world.down.set(false);
    assert!(confirmed(&world.pay()));
}

#[test]
fn a_payment_that_is_not_even_readable_costs_no_outside_call() {
    let world = world();
    let mut unsigned = Payment::valid();
    unsigned.signers.clear();
    let mut forged = Payment::valid();
    forged.witnesses.push((*key(FRIEND).pk, [1; 64]));
    for header in ["", "AAAA", &unsigned.header(), &forged.header()] {
        assert!(world.admit(header, RESOURCE).is_err());
    }
    assert_eq!(world.calls.get(), 0);
}

#[test]
fn inputs_that_a_stranger_made_up_cost_three_calls() {
    let mut payment = Payment::valid();
    for tx in 0..10 {
        payment.inputs.push(Input { reference: reference(0x40 + tx, 0), state: InputState::Unknown });
    }
    payment.inputs[0].state = InputState::Unknown;
    let world = World::new(payment);
    let refusal = world.pay().unwrap_err();
    assert!(matches!(refusal, SettleError::Refused(Refusal::NonceNotUnspent(_))), "{refusal:?}");
    assert_eq!(world.calls.get(), 3, "the nonce's transaction, the parameters, the newest block");

    // Somebody else's money: there, but not signed for.
    let mut payment = Payment::valid();
    payment.signers = vec![FRIEND];
    let world = World::new(payment);
    assert_eq!(world.pay(), Err(Refusal::MissingSignature(key_hash(BUYER)).into()));
    assert_eq!(world.calls.get(), 3);
}

#[test]
fn the_outside_calls_of_a_payment_stay_within_their_budget() {
    let of = |transactions: usize| {
        let mut payment = Payment::valid();
        for tx in 0..transactions - payment.inputs.len() {
            let at = reference(0x40 + u8::try_from(tx).unwrap(), 0);
            let utxo = utxo(at, &address(BUYER).to_string(), 1_000_000, &[]);
            payment.inputs.push(Input { reference: at, state: InputState::Unspent(utxo) });
        }
        World::new(payment)
    };
    let world = of(MAX_INPUT_TRANSACTIONS);
    assert!(confirmed(&world.pay()));
    assert!(world.calls.get() <= 40, "{} calls", world.calls.get());

    let world = of(MAX_INPUT_TRANSACTIONS + 1);
    let refusal = world.pay().unwrap_err();
    assert_eq!(refusal, Refusal::TooManyInputTransactions { found: 17, most: 16 }.into());
    assert_eq!(world.calls.get(), 0);

    let world = of(MAX_INPUT_TRANSACTIONS).without_blocks();
    assert!(matches!(world.pay(), Ok(Outcome::Pending(_))));
    assert!(world.calls.get() <= 40, "{} calls", world.calls.get());
}

#[test]
fn many_inputs_of_one_transaction_cost_one_call() {
    let mut payment = Payment::valid();
    payment.fee = Some(300_000);
    for index in 1..40 {
        let at = reference(0x11, index);
        let utxo = utxo(at, &address(BUYER).to_string(), 1_000_000, &[]);
        payment.inputs.push(Input { reference: at, state: InputState::Unspent(utxo) });
    }
    let world = World::new(payment);
    world.admit(&world.payment.header(), RESOURCE).unwrap();
    assert_eq!(world.calls.get(), 4, "two transactions, the parameters, the newest block");
}
