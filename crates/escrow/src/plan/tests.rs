use cardano::{ScriptHash, TxHash, TxRef, params::Rational};

use super::*;
use crate::{
    datum::{State, tests::published},
    deployment::Parameters,
    dispute::Split,
};

const NOW: Millis = 1_785_756_000_000;
const SLOTS: SlotConfig = SlotConfig::PREPROD;

fn deployment() -> Deployment {
    Deployment {
        script_hash: ScriptHash::new([0xee; 28]),
        parameters: Parameters {
            required_admins: 1,
            admin_vkeys: vec![KeyHash::new([1; 28])],
            cooldown_period: 60_000,
        },
        reference_script: TxRef { tx: TxHash::new([7; 32]), index: 1 },
        reference_script_bytes: 4_000,
        blueprint_sha256: None,
    }
}

fn parameters() -> ProtocolParameters {
    let one = Rational { numerator: 1, denominator: 1 };
    ProtocolParameters {
        price_mem: one,
        price_step: one,
        min_fee_ref_script_cost_per_byte: one,
        ..ProtocolParameters::preprod()
    }
}

fn utxo(datum: &Datum) -> Utxo {
    Utxo {
        reference: TxRef { tx: TxHash::new([9; 32]), index: 2 },
        address: deployment().address().to_string(),
        value: Value { lovelace: Lovelace::from_ada(7), ..Value::default() },
        inline_datum: Some(datum.to_cbor()),
        datum_hash: None,
        reference_script: None,
    }
}

fn escrow(state: State) -> Escrow {
    let result_hash = if state == State::FundsLocked { vec![] } else { vec![0x99; 32] };
    let datum = Datum { state, result_hash, ..published() };
    Escrow::read(utxo(&datum), &deployment()).unwrap()
}

fn plan(escrow: &Escrow, step: &Step, now: Millis) -> Result<TxPlan, PlanError> {
    let (deployment, parameters) = (deployment(), parameters());
    let planner = Planner { deployment: &deployment, parameters: &parameters, slots: &SLOTS };
    planner.plan(escrow, step, ChainTime { tip_slot: SLOTS.slot_at(now).unwrap(), now })
}

fn creator(amount: u64) -> Step {
    let creator = Address::enterprise(KeyHash::new([5; 28]));
    Step::Withdraw { payouts: vec![(creator, Lovelace::new(amount).unwrap())] }
}

#[test]
fn a_foreign_output_is_not_read() {
    let good = utxo(&published());
    let read = |utxo: Utxo| Escrow::read(utxo, &deployment()).map(|escrow| escrow.datum);
    assert_eq!(read(good.clone()), Ok(published()));
    let elsewhere = Utxo { address: PlutusAddress::script(ScriptHash::new([1; 28])).to_string(), ..good.clone() };
    assert_eq!(read(elsewhere), Err(InvalidDatum::Shape("address")));
    assert_eq!(read(Utxo { inline_datum: None, ..good.clone() }), Err(InvalidDatum::Shape("datum")));
    assert_eq!(read(Utxo { inline_datum: Some(vec![0xd8, 0x79, 0x80]), ..good }), Err(InvalidDatum::Shape("datum")));
    let stranded = utxo(&Datum { reference_signature: vec![1; 15], ..published() });
    assert_eq!(read(stranded), Err(InvalidDatum::Shape("reference_signature")));
}

#[test]
fn a_plan_spends_the_escrow_by_reference_and_asks_for_its_partys_signature() {
    let escrow = escrow(State::FundsLocked);
    let plan = plan(&escrow, &Step::SubmitResult(ContentHash::new([3; 32])), NOW).unwrap();
    assert_eq!(plan.script_inputs[0].utxo, escrow.utxo);
    assert_eq!(plan.script_inputs[0].redeemer, [0xd8, 0x7e, 0x80], "SubmitResult is constructor 5");
    assert_eq!(plan.reference_inputs[0].reference, deployment().reference_script);
    assert_eq!(plan.reference_inputs[0].script_bytes, 4_000);
    assert_eq!(plan.required_signers, [KeyHash::new([0x22; 28])]);
    let [after] = &plan.outputs[..] else { panic!("one output") };
    assert_eq!((after.to, &after.value), (PlutusAddress::script(deployment().script_hash), &escrow.utxo.value));
    let datum = Datum::from_cbor(after.inline_datum.as_ref().unwrap()).unwrap();
    let until = SLOTS.slot_begins_at(plan.validity.until).unwrap();
    assert_eq!((datum.state, datum.result_hash), (State::ResultSubmitted, vec![3; 32]));
    assert_eq!((datum.seller_cooldown, datum.buyer_cooldown), (until + 60_000, 0));
}

#[test]
fn actions_that_the_contract_refuses_are_not_planned() {
    let locked = escrow(State::FundsLocked);
    assert_eq!(plan(&locked, &creator(0), NOW), Err(ContractRefusal::State.into()));
    let submit = locked.datum.deadlines.submit_result;
    assert_eq!(plan(&locked, &Step::WithdrawRefund, NOW), Err(PlanError::NotYet(submit)));
    let result = Step::SubmitResult(ContentHash::new([3; 32]));
    assert_eq!(plan(&locked, &result, submit), Err(ContractRefusal::TooLate(submit).into()));
    let poor = Escrow {
        utxo: Utxo { value: Value { lovelace: Lovelace::from_ada(1), ..Value::default() }, ..locked.utxo.clone() },
        ..locked
    };
    assert_eq!(plan(&poor, &result, NOW), Err(ContractRefusal::Collateral.into()));
}

#[test]
fn collecting_returns_the_collateral_tagged_and_pays_no_more_than_the_rest() {
    let authorized = escrow(State::WithdrawAuthorized);
    let rest = 7_000_000 - 1_435_230;
    let paid = plan(&authorized, &creator(rest), NOW).unwrap();
    let [collateral, creator_output] = &paid.outputs[..] else { panic!("two outputs") };
    assert_eq!(collateral.to.payment_key(), Some(&KeyHash::new([0x11; 28])));
    assert_eq!(collateral.value.lovelace.get(), 1_435_230);
    assert_eq!(collateral.inline_datum, Some(to_cbor(&output_reference(&authorized.utxo.reference))));
    assert_eq!((creator_output.value.lovelace.get(), &creator_output.inline_datum), (rest, &None));
    assert_eq!(plan(&authorized, &creator(rest + 1), NOW), Err(PlanError::PayoutTooHigh));
}

#[test]
fn a_return_address_is_paid_tagged() {
    let home = PlutusAddress::from(Address::enterprise(KeyHash::new([6; 28])));
    let datum = Datum { seller_return_address: Some(home), ..escrow(State::WithdrawAuthorized).datum };
    let escrow = Escrow::read(utxo(&datum), &deployment()).unwrap();
    let plan = plan(&escrow, &Step::Withdraw { payouts: vec![] }, NOW).unwrap();
    assert_eq!(plan.outputs[1].to.payment_key(), Some(&KeyHash::new([6; 28])));
    assert_eq!(plan.outputs[1].value.lovelace.get(), 7_000_000 - 1_435_230);
    assert!(plan.outputs[1].inline_datum.is_some());
}

#[test]
fn an_award_of_another_output_is_not_planned() {
    let disputed = escrow(State::Disputed);
    let opens = disputed.datum.deadlines.external_dispute_unlock;
    let settle = |own_ref| {
        let split = Split { buyer: Lovelace::from_ada(7), seller: Lovelace::ZERO };
        let intent = DisputeWithdrawal::new(own_ref, split);
        plan(&disputed, &Step::WithdrawDisputed { intent, signatures: vec![] }, opens)
    };
    let other = TxRef { index: 3, ..disputed.utxo.reference };
    assert_eq!(settle(other), Err(PlanError::OtherOutput));
    let plan = settle(disputed.utxo.reference).unwrap();
    assert_eq!(plan.outputs.len(), 1, "who gets nothing gets no output");
    assert!(plan.required_signers.is_empty());
}

#[test]
fn tokens_in_an_escrow_are_carried_and_paid_with_it() {
    let token = ("ab".repeat(28) + "01", 5);
    let signed = AssetValue(vec![(vec![], vec![(vec![], 2_000_000)]), (vec![0xab; 28], vec![(vec![1], 5)])]);
    let value = Value { lovelace: Lovelace::from_ada(2), assets: [token].into() };
    assert_eq!(value_of(&signed), Ok(value.clone()));
    let twice = AssetValue(vec![(vec![0xab; 28], vec![(vec![1], 5), (vec![1], 5)])]);
    assert_eq!(value_of(&twice), Err(PlanError::OutOfRange));

    let mut rich = escrow(State::FundsLocked);
    rich.utxo.value.assets = value.assets;
    let plan = plan(&rich, &Step::SetRefundRequested, NOW).unwrap();
    assert_eq!(plan.outputs[0].value, rich.utxo.value);
}

#[test]
fn an_output_that_grew_is_raised_to_the_ledgers_least() {
    let datum = Datum { collateral_return: Lovelace::ZERO, ..published() };
    let mut poor = Escrow::read(utxo(&datum), &deployment()).unwrap();
    poor.utxo.value.lovelace = Lovelace::from_ada(1);
    let plan = plan(&poor, &Step::SubmitResult(ContentHash::new([3; 32])), NOW).unwrap();
    let least = plan.outputs[0].min_lovelace(&parameters()).unwrap();
    assert!(least > Lovelace::from_ada(1));
    assert_eq!(plan.outputs[0].value.lovelace, least);
}

#[test]
fn units_have_a_margin_within_the_ledgers_limit() {
    let (deployment, parameters) = (deployment(), parameters());
    let planner = Planner { deployment: &deployment, parameters: &parameters, slots: &SLOTS };
    let first = plan(&escrow(State::FundsLocked), &Step::SetRefundRequested, NOW).unwrap();
    assert_eq!(first.script_inputs[0].ex_units, ExUnits { mem: 14_000_000, steps: 10_000_000_000 });
    let units = |mem, steps| BTreeMap::from([(first.script_inputs[0].utxo.reference, ExUnits { mem, steps })]);
    let second = planner.with_units(first.clone(), &units(200_000, 100_000_000));
    assert_eq!(second.script_inputs[0].ex_units, ExUnits { mem: 220_001, steps: 110_000_001 });
    let most = planner.with_units(first.clone(), &units(14_000_000, u64::MAX));
    assert_eq!(most.script_inputs[0].ex_units, ExUnits { mem: 14_000_000, steps: 10_000_000_000 });
}

#[test]
fn a_combined_plan_does_what_each_plan_does_while_all_are_valid() {
    let parameters = parameters();
    let deployment = deployment();
    let planner = Planner { deployment: &deployment, parameters: &parameters, slots: &SLOTS };
    let first = plan(&escrow(State::WithdrawAuthorized), &creator(2_000_000), NOW).unwrap();
    let mut second = first.clone();
    second.script_inputs[0].utxo.reference.index = 7;
    second.validity = Validity { from: Some(first.validity.until - 50), until: first.validity.until - 10 };

    let both = planner.together(vec![first.clone(), second.clone()]).unwrap();
    assert_eq!(both.validity, second.validity);
    assert_eq!(both.outputs, [first.outputs.clone(), second.outputs.clone()].concat());
    assert_eq!(
        (both.reference_inputs, both.required_signers),
        (first.reference_inputs.clone(), first.required_signers.clone())
    );
    let units: Vec<ExUnits> = both.script_inputs.iter().map(|input| input.ex_units).collect();
    assert_eq!(units, [ExUnits { mem: 7_000_000, steps: 5_000_000_000 }; 2]);

    second.validity.from = Some(first.validity.until);
    second.validity.until = first.validity.until + 100;
    assert_eq!(planner.together(vec![first, second]), None, "never both valid");
    assert_eq!(planner.together(vec![]), None);
}
