//! Tests of several escrows in one transaction: the contract accepts it, it costs less, and each party gets its own
//! money.

use cardano::{
    Address, ContentHash, Lovelace, TxRef,
    evaluation::{Evaluate, Evaluation},
    keys::SigningKey,
    tx::build::{BuiltTx, TxPlan},
};
use futures_lite::future::block_on;
use surety_escrow::{
    Datum, Deadlines,
    plan::{DraftError, Escrow, Step},
    spend::{Ending, Spent},
};

use super::world::{EscrowLedger, paid_to, wallet};

const PRICE: Lovelace = Lovelace::from_ada(5);
const CREATORS_SHARE: Lovelace = Lovelace::from_ada(3);
const COLLATERAL: Lovelace = Lovelace::from_ada(2);
const RESULT: ContentHash = ContentHash::new([0x77; 32]);

fn locked(world: &mut EscrowLedger, count: usize) -> Vec<Escrow> {
    let deadlines = Deadlines::issue(world.time().now).unwrap();
    let datums: Vec<Datum> =
        (0..count).map(|_| Datum { collateral_return: COLLATERAL, ..world.fresh(deadlines) }).collect();
    world.lock(&datums, PRICE.checked_add(COLLATERAL).unwrap())
}

fn together(world: &EscrowLedger, steps: &[(&Escrow, Step)]) -> Result<BuiltTx, DraftError> {
    let planner = world.planner();
    let plans: Vec<TxPlan> =
        steps.iter().map(|(escrow, step)| planner.plan(escrow, step, world.time())).collect::<Result<_, _>>()?;
    let utxos = world.utxos(&world.seller);
    let plan = planner.together(plans).unwrap();
    let draft = block_on(planner.draft_of(&world.devnet, plan, &wallet(&world.seller, &utxos)))?;
    let Evaluation::Accepted(units) = block_on(world.devnet.evaluate(&draft.unsigned_cbor().unwrap())).unwrap() else {
        panic!("refused with its own units");
    };
    let built = world.accept(draft, &world.seller);
    println!(
        "{} together: fee {}, {} memory, {} steps, {} bytes",
        steps.len(),
        built.facts.fee,
        units.values().map(|units| units.mem).sum::<u64>(),
        units.values().map(|units| units.steps).sum::<u64>(),
        built.cbor.len()
    );
    Ok(built)
}

fn posted(world: &EscrowLedger, escrows: &[Escrow]) -> (BuiltTx, Vec<Escrow>) {
    let steps: Vec<_> = escrows.iter().map(|escrow| (escrow, Step::SubmitResult(RESULT))).collect();
    let built = together(world, &steps).unwrap();
    let outputs = world.outputs_of(&built);
    let next = |escrow: &Escrow| match escrow.spent_into(&outputs) {
        Spent::Continues(next) => *next,
        Spent::Ended(ending) => panic!("{ending:?}"),
    };
    let escrows = escrows.iter().map(next).collect();
    (built, escrows)
}

fn creator(index: usize) -> Address {
    SigningKey::from_seed(&[u8::try_from(index).unwrap() + 100; 32]).unwrap().enterprise_address()
}

#[test]
fn escrows_collected_together_cost_less_and_each_party_is_paid() {
    let mut world = EscrowLedger::new();
    let mut alone: Option<(Lovelace, Lovelace)> = None;
    for count in [1_usize, 2, 4, 5] {
        let escrows = locked(&mut world, count);
        let (posting, escrows) = posted(&world, &escrows);
        world.devnet.advance_to(escrows[0].datum.deadlines.unlock);
        let steps: Vec<_> = escrows
            .iter()
            .enumerate()
            .map(|(index, escrow)| (escrow, Step::Withdraw { payouts: vec![(creator(index), CREATORS_SHARE)] }))
            .collect();
        let collecting = together(&world, &steps).unwrap();
        for (index, escrow) in escrows.iter().enumerate() {
            assert_eq!(escrow.spent_into(&world.outputs_of(&collecting)), Spent::Ended(Ending::Withdrawn));
            assert_eq!(paid_to(&collecting, &creator(index)), CREATORS_SHARE);
        }
        let returned = paid_to(&collecting, &world.buyer.enterprise_address());
        assert_eq!(returned.get(), COLLATERAL.get() * u64::try_from(count).unwrap());
        let fees = (posting.facts.fee, collecting.facts.fee);
        let (post, collect) = *alone.get_or_insert(fees);
        let singly = |fee: Lovelace| fee.get() * u64::try_from(count).unwrap();
        assert!(count == 1 || fees.0.get() < singly(post), "posting {count}");
        assert!(count == 1 || fees.1.get() < singly(collect), "collecting {count}");
    }
}

#[test]
fn one_refused_escrow_among_several_fails_the_whole_transaction() {
    let mut world = EscrowLedger::new();
    let mut escrows = locked(&mut world, 2);
    // The datum on the chain names another seller than the plan, so the required key has not signed.
    let stranger = Datum { seller: creator(1).into(), ..escrows[1].datum.clone() };
    escrows.extend(world.lock(&[stranger], PRICE.checked_add(COLLATERAL).unwrap()));
    let planner = world.planner();
    let mut plans: Vec<TxPlan> =
        escrows.iter().map(|escrow| planner.plan(escrow, &Step::SubmitResult(RESULT), world.time()).unwrap()).collect();
    plans[2].required_signers.clear();
    let utxos = world.utxos(&world.seller);
    let plan = planner.together(plans).unwrap();
    let drafted = block_on(planner.draft_of(&world.devnet, plan, &wallet(&world.seller, &utxos)));
    assert!(matches!(drafted, Err(DraftError::Refused(_))), "{drafted:?}");
    let unspent: Vec<TxRef> =
        world.devnet.utxos_at(&world.deployment.address().to_string()).iter().map(|utxo| utxo.reference).collect();
    assert!(escrows.iter().all(|escrow| unspent.contains(&escrow.utxo.reference)));
}
