//! Every rule of the table at its edges, judged by the contract on the local ledger: accepted in the first and last
//! slot in which it is possible, refused one slot before and after.

use crate::world::{World, block_on, wallet};
use cardano::{
    ContentHash, Lovelace,
    chain::Submission,
    evaluation::{Evaluate, Evaluation},
    keys::SigningKey,
    slots::Millis,
    tx::build::{Validity, build},
};
use escrow::{
    Action, AdminSignature, Datum, Deadlines, State,
    dispute::{DisputeWithdrawal, Split},
    evidence::Winner,
    plan::{Escrow, Step},
    rules::{DatumTime, Party, RULES, ResultIs, Rule},
};

/// Half a slot, so that no deadline is the beginning of one.
const HALF_SLOT: Millis = 500;
/// Longer than the test takes.
const DISTANCE: Millis = 600_000;
const LOCKED: Lovelace = Lovelace::from_ada(7);
const MAX_OUTPUTS: usize = 9;

/// An escrow whose every moment that opens the rule is behind, and every one that closes it ahead.
fn open_for(world: &mut World, rule: &Rule, state: State, now: Millis) -> Datum {
    let (opens, closes) = (now - DISTANCE + HALF_SLOT, now + DISTANCE + HALF_SLOT);
    let at = |moment| if rule.starts.contains(&moment) { opens } else { closes };
    let deadlines = Deadlines {
        pay_by: now - 2 * DISTANCE,
        submit_result: at(DatumTime::SubmitResult),
        unlock: at(DatumTime::Unlock),
        external_dispute_unlock: at(DatumTime::ExternalDisputeUnlock),
    };
    Datum {
        state,
        result_hash: if has_result(state) { vec![0x99; 32] } else { vec![] },
        collateral_return: Lovelace::from_ada(2),
        seller_cooldown: if rule.starts.contains(&DatumTime::SellerCooldown) { opens } else { closes },
        buyer_cooldown: if rule.starts.contains(&DatumTime::BuyerCooldown) { opens } else { closes },
        ..world.fresh(deadlines)
    }
}

fn step(world: &World, action: Action, escrow: &Escrow) -> Step {
    match action {
        Action::SubmitResult => Step::SubmitResult(ContentHash::new([0x77; 32])),
        Action::SetRefundRequested => Step::SetRefundRequested,
        Action::AuthorizeWithdrawal => Step::AuthorizeWithdrawal,
        Action::AuthorizeRefund => Step::AuthorizeRefund,
        Action::WithdrawRefund => Step::WithdrawRefund,
        Action::Withdraw => {
            let creator = SigningKey::from_seed(&[9; 32]).unwrap().enterprise_address();
            Step::Withdraw { payouts: vec![(creator, Lovelace::new(3_500_000).unwrap())] }
        }
        Action::WithdrawDisputed => {
            let split = Split::of(Winner::Seller, &escrow.datum, LOCKED).unwrap();
            let intent = DisputeWithdrawal::new(escrow.utxo.reference, split);
            let arbiter = &world.arbiter;
            let signature = AdminSignature::sign(arbiter, &arbiter.enterprise_address(), &intent).unwrap();
            Step::WithdrawDisputed { intent, signatures: vec![signature] }
        }
    }
}

fn actor<'a>(world: &'a World, rule: &Rule) -> &'a SigningKey {
    match rule.by {
        Party::Buyer => &world.buyer,
        Party::Seller => &world.seller,
        Party::Arbiters => &world.arbiter,
    }
}

fn has_result(state: State) -> bool {
    matches!(state, State::ResultSubmitted | State::Disputed | State::WithdrawAuthorized)
}

/// Every state with every rule that fits it and the result that it has by honest ways.
fn cases() -> Vec<(State, &'static Rule)> {
    let fits = |rule: &Rule, state| match rule.result {
        ResultIs::Any => true,
        ResultIs::Present => has_result(state),
        ResultIs::Empty => !has_result(state),
    };
    let pairs = State::ALL.into_iter().flat_map(|state| RULES.iter().map(move |rule| (state, rule)));
    pairs.filter(|(state, rule)| rule.from.contains(state) && fits(rule, *state)).collect()
}

#[test]
fn every_action_is_possible_from_the_first_to_the_last_slot_of_its_time_and_in_no_other() {
    let mut world = World::new();
    let now = world.time().now;
    let cases = cases();
    assert_eq!(cases.len(), 18);
    let datums: Vec<Datum> = cases.iter().map(|(state, rule)| open_for(&mut world, rule, *state, now)).collect();
    let escrows: Vec<Escrow> = datums.chunks(MAX_OUTPUTS).flat_map(|some| world.lock(some, LOCKED)).collect();

    println!("{:<20} {:<19} {:>8} {:>9} {:>11} {:>6}", "action", "from", "fee", "memory", "steps", "bytes");
    for ((state, rule), escrow) in cases.into_iter().zip(&escrows) {
        check(&world, state, rule, escrow);
    }
}

fn check(world: &World, state: State, rule: &Rule, escrow: &Escrow) {
    let action = rule.action;
    let step = step(world, action, escrow);
    let key = actor(world, rule);
    let name = format!("{} from {}", action.name(), state.name());
    let window = rule.window(&escrow.datum);
    let opens = (!rule.starts.is_empty()).then(|| world.slots.slot_at(window.opens).unwrap() + 1);
    let closes = window.closes.map(|closes| world.slots.slot_at(closes).unwrap());
    let tip = world.time().tip_slot;
    let honest = Validity { from: Some(opens.unwrap_or(tip)), until: closes.unwrap_or(tip + 100) };

    let evaluated = |validity| {
        let plan = world.planner().plan_within(escrow, &step, validity).unwrap();
        let utxos = world.utxos(key);
        let draft = build(&plan, &wallet(key, &utxos), &world.parameters).unwrap();
        let evaluation = block_on(world.devnet.evaluate(&draft.unsigned_cbor().unwrap())).unwrap();
        // The ledger says the same as the provider's evaluation.
        let refused = matches!(evaluation, Evaluation::Refused(_));
        if refused {
            let built = draft.sign(&[key]).unwrap();
            assert!(matches!(world.devnet.submit(&built.cbor), Submission::Refused(_)), "{name}");
        }
        !refused
    };
    if let Some(opens) = opens {
        assert!(!evaluated(Validity { from: Some(opens - 1), ..honest }), "{name}: one slot too early");
        assert!(!evaluated(Validity { from: None, ..honest }), "{name}: without a beginning");
    }
    if closes.is_some() {
        assert!(!evaluated(Validity { until: honest.until + 1, ..honest }), "{name}: one slot too late");
    }
    let plan = world.planner().plan_within(escrow, &step, honest).unwrap();
    let utxos = world.utxos(key);
    let draft = block_on(world.planner().draft_of(&world.devnet, plan, &wallet(key, &utxos)));
    let draft = draft.unwrap_or_else(|error| panic!("{name}: {error}"));
    let fee = draft.facts().fee;
    let Evaluation::Accepted(units) = block_on(world.devnet.evaluate(&draft.unsigned_cbor().unwrap())).unwrap() else {
        panic!("{name}: refused with its own units");
    };
    let units = units[&draft.input_place(&escrow.utxo.reference).unwrap()];
    let built = world.accept(draft, key);
    println!(
        "{:<20} {:<19} {:>8} {:>9} {:>11} {:>6}",
        action.name(),
        state.name(),
        fee,
        units.mem,
        units.steps,
        built.cbor.len()
    );
    assert!(units.mem * 5 <= world.parameters.max_tx_ex_mem, "{name}: memory");
    assert!(units.steps * 5 <= world.parameters.max_tx_ex_steps, "{name}: steps");
}
