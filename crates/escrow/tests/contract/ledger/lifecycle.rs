//! Tests of whole lives of escrows on the local ledger, from lock to end. Transactions are planned at the ledger's own
//! time.

use cardano::{
    ContentHash, Lovelace,
    keys::{Native, SigningKey},
    slots::Millis,
    tx::build::BuiltTx,
};
use futures_lite::future::block_on;
use surety_escrow::{
    Action, AdminSignature, Datum, Deadlines, State, admin,
    dispute::{DisputeWithdrawal, Split},
    evidence::Winner,
    plan::{DraftError, Escrow, PlanError, Step},
    rules::ContractRefusal,
    spend::{Ending, Spent},
};

use super::world::{EscrowLedger, paid_to, wallet};

const RESULT: ContentHash = ContentHash::new([0x77; 32]);
const PRICE: Lovelace = Lovelace::from_ada(5);
const CREATORS_SHARE: Lovelace = Lovelace::from_ada(3);

fn locked_with(world: &mut EscrowLedger, locked: Lovelace, change: impl FnOnce(&mut Datum)) -> Escrow {
    let deadlines = Deadlines::issue(world.time().now).unwrap();
    let mut datum = world.fresh(deadlines);
    change(&mut datum);
    world.lock(&[datum], locked).remove(0)
}

fn locked(world: &mut EscrowLedger) -> Escrow {
    locked_with(world, PRICE, |_| {})
}

fn attempt(world: &EscrowLedger, escrow: &Escrow, step: &Step, key: &SigningKey) -> Result<BuiltTx, DraftError> {
    let utxos = world.utxos(key);
    let draft = block_on(world.planner().draft(&world.devnet, escrow, step, world.time(), &wallet(key, &utxos)))?;
    let built = world.accept(draft, key);
    // The watcher reads the outcome from the transaction's outputs in the same way.
    let spent = escrow.spent_into(&world.outputs_of(&built));
    let action = step.action();
    match (&spent, action) {
        (Spent::Continues(next), _) => assert_eq!(next.utxo.reference.tx, built.facts.tx_id),
        (Spent::Ended(Ending::Refunded), Action::WithdrawRefund | Action::WithdrawDisputed) => {}
        (Spent::Ended(Ending::Withdrawn), Action::Withdraw | Action::WithdrawDisputed) => {}
        other => panic!("{other:?}"),
    }
    Ok(built)
}

fn step(world: &EscrowLedger, escrow: &Escrow, step: &Step, key: &SigningKey) -> Escrow {
    world.continued(&attempt(world, escrow, step, key).unwrap())
}

/// Returns the time from which a step will be possible. Fails the test if it is possible now.
fn not_yet(world: &EscrowLedger, escrow: &Escrow, step: &Step, key: &SigningKey) -> Millis {
    match attempt(world, escrow, step, key) {
        Err(DraftError::Plan(PlanError::NotYet(opens))) => opens,
        other => panic!("{other:?}"),
    }
}

fn refused(world: &EscrowLedger, escrow: &Escrow, step: &Step, key: &SigningKey) -> ContractRefusal {
    match attempt(world, escrow, step, key) {
        Err(DraftError::Plan(PlanError::Refused(refusal))) => refusal,
        other => panic!("{other:?}"),
    }
}

fn balance(world: &EscrowLedger, key: &SigningKey) -> u64 {
    world.utxos(key).iter().map(|utxo| utxo.value.lovelace.get()).sum()
}

#[test]
fn a_delivered_sale_is_collected_and_its_creator_paid_in_one_transaction() {
    let mut world = EscrowLedger::new();
    let escrow = locked(&mut world);
    let creator = SigningKey::from_seed(&[9; 32]).unwrap().enterprise_address();
    let (seller, deadlines) = (world.seller.clone(), escrow.datum.deadlines);
    let collect = Step::Withdraw { payouts: vec![(creator, CREATORS_SHARE)] };

    assert_eq!(refused(&world, &escrow, &collect, &seller), ContractRefusal::State, "nothing was delivered");
    let posted = step(&world, &escrow, &Step::SubmitResult(RESULT), &seller);
    assert_eq!((posted.datum.state, &posted.datum.result_hash[..]), (State::ResultSubmitted, &RESULT.as_bytes()[..]));
    assert_eq!(posted.utxo.value, escrow.utxo.value);
    assert_eq!(not_yet(&world, &posted, &collect, &seller), deadlines.unlock);

    world.devnet.advance_to(deadlines.unlock);
    let before = balance(&world, &seller);
    let collected = attempt(&world, &posted, &collect, &seller).unwrap();
    assert_eq!(paid_to(&collected, &creator), CREATORS_SHARE);
    let earned = PRICE.get() - CREATORS_SHARE.get() - collected.facts.fee.get();
    assert_eq!(balance(&world, &seller), before + earned, "the rest is the platform's");
}

#[test]
fn an_undelivered_sale_is_refunded_from_the_submit_time_on() {
    let mut world = EscrowLedger::new();
    let escrow = locked(&mut world);
    let (buyer, seller, deadlines) = (world.buyer.clone(), world.seller.clone(), escrow.datum.deadlines);
    assert_eq!(not_yet(&world, &escrow, &Step::WithdrawRefund, &buyer), deadlines.submit_result);

    world.devnet.advance_to(deadlines.submit_result);
    let late = refused(&world, &escrow, &Step::SubmitResult(RESULT), &seller);
    assert_eq!(late, ContractRefusal::TooLate(deadlines.submit_result));
    let before = balance(&world, &buyer);
    let refunded = attempt(&world, &escrow, &Step::WithdrawRefund, &buyer).unwrap();
    assert_eq!(balance(&world, &buyer), before + PRICE.get() - refunded.facts.fee.get());
}

#[test]
fn a_dispute_given_up_by_the_buyer_pays_the_seller_at_once_and_returns_the_collateral() {
    let mut world = EscrowLedger::new();
    let collateral = Lovelace::from_ada(2);
    let escrow = locked_with(&mut world, Lovelace::from_ada(7), |datum| datum.collateral_return = collateral);
    let (buyer, seller) = (world.buyer.clone(), world.seller.clone());

    let asked = step(&world, &escrow, &Step::SetRefundRequested, &buyer);
    assert_eq!(asked.datum.state, State::RefundRequested);
    let disputed = step(&world, &asked, &Step::SubmitResult(RESULT), &seller);
    assert_eq!(disputed.datum.state, State::Disputed);
    assert_eq!(not_yet(&world, &disputed, &Step::SubmitResult(RESULT), &seller), disputed.datum.seller_cooldown);
    let again = step(&world, &disputed, &Step::SetRefundRequested, &buyer);
    assert_eq!(not_yet(&world, &again, &Step::AuthorizeWithdrawal, &buyer), again.datum.buyer_cooldown);

    world.devnet.advance_to(again.datum.buyer_cooldown);
    let authorized = step(&world, &again, &Step::AuthorizeWithdrawal, &buyer);
    assert_eq!(authorized.datum.state, State::WithdrawAuthorized);
    let collected = attempt(&world, &authorized, &Step::Withdraw { payouts: vec![] }, &seller).unwrap();
    assert_eq!(paid_to(&collected, &buyer.enterprise_address()), collateral);
}

#[test]
fn a_refund_that_the_seller_authorises_can_be_taken_at_once_to_the_return_address() {
    let mut world = EscrowLedger::new();
    let home = SigningKey::from_seed(&[8; 32]).unwrap().enterprise_address();
    let escrow = locked_with(&mut world, PRICE, |datum| datum.buyer_return_address = Some(home.into()));
    let (buyer, seller) = (world.buyer.clone(), world.seller.clone());
    let posted = step(&world, &escrow, &Step::SubmitResult(RESULT), &seller);
    assert_eq!(not_yet(&world, &posted, &Step::AuthorizeRefund, &seller), posted.datum.seller_cooldown);

    world.devnet.advance_to(posted.datum.seller_cooldown);
    let authorized = step(&world, &posted, &Step::AuthorizeRefund, &seller);
    assert_eq!((authorized.datum.state, authorized.datum.has_result()), (State::RefundAuthorized, false));
    let refunded = attempt(&world, &authorized, &Step::WithdrawRefund, &buyer).unwrap();
    assert_eq!(paid_to(&refunded, &home), PRICE);
}

#[test]
fn a_dispute_is_settled_as_the_arbiter_signed_and_not_before_its_time() {
    let mut world = EscrowLedger::new();
    let (buyer, seller, arbiter) = (world.buyer.clone(), world.seller.clone(), world.arbiter.clone());
    for winner in [Winner::Buyer, Winner::Seller] {
        let collateral = Lovelace::from_ada(2);
        let escrow = locked_with(&mut world, Lovelace::from_ada(7), |datum| datum.collateral_return = collateral);
        let posted = step(&world, &escrow, &Step::SubmitResult(RESULT), &seller);
        let disputed = step(&world, &posted, &Step::SetRefundRequested, &buyer);

        let split = Split::of(winner, &disputed.datum, disputed.utxo.value.lovelace).unwrap();
        let intent = DisputeWithdrawal::new(disputed.utxo.reference, split);
        let signature = AdminSignature::sign(&arbiter, &arbiter.enterprise_address(), &intent).unwrap();
        let signatures = vec![signature];
        assert!(block_on(admin::have_enough_votes(&Native, &world.deployment.parameters, &intent, &signatures)));
        let settle = Step::WithdrawDisputed { intent, signatures };
        let opens = disputed.datum.deadlines.external_dispute_unlock;
        assert_eq!(not_yet(&world, &disputed, &settle, &arbiter), opens);

        world.devnet.advance_to(opens);
        let settled = attempt(&world, &disputed, &settle, &arbiter).unwrap();
        assert_eq!(paid_to(&settled, &buyer.enterprise_address()), split.buyer, "{winner:?}");
        assert_eq!(paid_to(&settled, &seller.enterprise_address()), split.seller, "{winner:?}");
    }
}

#[test]
fn an_award_that_no_arbiter_signed_is_refused_by_the_contract() {
    let mut world = EscrowLedger::new();
    let (buyer, seller) = (world.buyer.clone(), world.seller.clone());
    let escrow = locked(&mut world);
    let posted = step(&world, &escrow, &Step::SubmitResult(RESULT), &seller);
    let disputed = step(&world, &posted, &Step::SetRefundRequested, &buyer);
    world.devnet.advance_to(disputed.datum.deadlines.external_dispute_unlock);
    let split = Split::of(Winner::Buyer, &disputed.datum, PRICE).unwrap();
    let intent = DisputeWithdrawal::new(disputed.utxo.reference, split);
    let signature = AdminSignature::sign(&buyer, &buyer.enterprise_address(), &intent).unwrap();
    let settle = Step::WithdrawDisputed { intent, signatures: vec![signature] };
    let answer = attempt(&world, &disputed, &settle, &buyer);
    assert!(matches!(answer, Err(DraftError::Refused(_))), "{answer:?}");
}

#[test]
fn an_action_too_close_to_its_deadline_is_not_tried() {
    let mut world = EscrowLedger::new();
    let escrow = locked(&mut world);
    let (seller, deadline) = (world.seller.clone(), escrow.datum.deadlines.submit_result);
    world.devnet.advance_to(deadline - 10_000);
    assert_eq!(refused(&world, &escrow, &Step::SubmitResult(RESULT), &seller), ContractRefusal::TooLate(deadline));
}
