//! Tests of transactions with scripts: redeemers, collateral and reference scripts.

use super::checker::reports;
use crate::{
    address::{Address, PaymentAddress},
    chain::Utxo,
    fees::{ExUnits, Weight, min_fee},
    hash::ScriptHash,
    tx::{
        SignedTx, TxPart,
        build::{
            BuildError, BuiltTx, NewOutput, ReferenceInput, ScriptInput, TxPlan, build,
            fixtures::{FOREVER, key, lovelace, pay, preprod, reference, utxo, wallet},
        },
    },
};

const UNITS: ExUnits = ExUnits { mem: 500_000, steps: 200_000_000 };
/// CBOR of the Plutus data `Constr 0 []`.
const UNIT: [u8; 3] = [0xd8, 0x79, 0x80];

fn home() -> Address {
    key(1).enterprise_address()
}

fn locked(number: u32, amount: u64) -> ScriptInput {
    let at = PaymentAddress::script(ScriptHash::new([5; 28]));
    let utxo = Utxo {
        address: at.to_string(),
        inline_datum: Some(UNIT.to_vec()),
        datum_hash: Some([1; 32]),
        ..utxo(number, home(), amount, &[])
    };
    ScriptInput { utxo, redeemer: UNIT.to_vec(), ex_units: UNITS }
}

fn unlock(inputs: Vec<ScriptInput>) -> TxPlan {
    TxPlan {
        script_inputs: inputs,
        reference_inputs: vec![ReferenceInput { reference: reference(900), script_bytes: 3000 }],
        required_signers: vec![key(2).key_hash()],
        validity: FOREVER,
        ..TxPlan::default()
    }
}

fn built(plan: &TxPlan, utxos: &[Utxo]) -> (BuiltTx, SignedTx) {
    let built = build(plan, &wallet(home(), utxos), &preprod()).unwrap().sign(&[&key(1), &key(2)]).unwrap();
    let tx = SignedTx::parse(&built.cbor).unwrap();
    reports(&built, &tx);
    (built, tx)
}

#[test]
fn a_script_input_pays_for_itself_and_the_wallet_only_puts_up_collateral() {
    let utxos = [utxo(1, home(), 9_000_000, &[]), utxo(2, home(), 3_000_000, &[])];
    let (built, tx) = built(&unlock(vec![locked(50, 7_000_000)]), &utxos);
    assert_eq!(built.facts.inputs, [reference(50)]);
    assert_eq!(built.facts.collateral, [reference(2)]);
    let weight = Weight { tx_bytes: built.cbor.len(), ex_units: UNITS, reference_script_bytes: 3000 };
    assert_eq!(Some(built.facts.fee), min_fee(&preprod(), &weight));
    assert_eq!(built.facts.change[0].value.lovelace, lovelace(7_000_000 - built.facts.fee.get()));
    let collateral = (built.facts.fee.get() * 3).div_ceil(2);
    let back = format!("011a{:08x}", 3_000_000 - collateral);
    assert!(hex::encode(&tx.parts[&TxPart::CollateralReturn]).ends_with(&back));
    assert_eq!(hex::encode(&tx.parts[&TxPart::TotalCollateral]), format!("1a{collateral:08x}"));
    assert_eq!(tx.required_signers, [key(2).key_hash()]);
    assert_eq!(tx.vkey_witnesses.len(), 2);
}

#[test]
fn collateral_is_taken_from_the_inputs_before_other_utxos() {
    let utxos = [utxo(1, home(), 90_000_000, &[]), utxo(2, home(), 3_000_000, &[])];
    let mut plan = unlock(vec![locked(50, 7_000_000)]);
    plan.outputs = vec![NewOutput::pay(key(3).enterprise_address(), lovelace(20_000_000))];
    assert_eq!(built(&plan, &utxos).0.facts.collateral, [reference(1)]);
}

#[test]
fn several_small_utxos_are_collateral_together_and_assets_come_back() {
    let utxos = [1, 2, 3, 4].map(|n| utxo(n, home(), 1_150_000, &[(n as u8, "t", 5)]));
    let mut plan = unlock(vec![locked(50, 7_000_000)]);
    plan.script_inputs[0].ex_units = ExUnits { mem: 10_000_000, steps: 5_000_000_000 };
    let (built, tx) = built(&plan, &utxos);
    assert_eq!(built.facts.collateral.len(), 3);
    assert!(tx.parts.contains_key(&TxPart::CollateralReturn));
}

#[test]
fn without_collateral_there_is_no_transaction() {
    let plan = unlock(vec![locked(50, 7_000_000)]);
    let refused = build(&plan, &wallet(home(), &[]), &preprod()).unwrap_err();
    let BuildError::CollateralMissing { missing } = refused else { panic!("{refused}") };
    built(&plan, &[utxo(1, home(), missing.get(), &[])]);
}

#[test]
fn a_redeemer_names_its_input_by_its_sorted_index() {
    let utxos = [utxo(1, home(), 9_000_000, &[]), utxo(60, home(), 9_000_000, &[])];
    let mut plan = unlock(vec![locked(70, 2_000_000), locked(50, 2_000_000)]);
    plan.script_inputs[0].redeemer = vec![0x07];
    plan.inputs = utxos.to_vec();
    let draft = build(&plan, &wallet(home(), &utxos), &preprod()).unwrap();
    assert_eq!(draft.facts().inputs, [1, 50, 60, 70].map(reference));
    assert_eq!(draft.input_index(&reference(70)), Some(3));
    let (_, tx) = built(&plan, &utxos);
    let units = "821a0007a1201a0bebc200";
    let expected = format!("a282000182d87980{units}8200038207{units}");
    assert_eq!(hex::encode(&tx.parts[&TxPart::Redeemers]), expected);
}

#[test]
fn the_script_data_hash_covers_redeemers_and_cost_model() {
    let utxos = [utxo(1, home(), 9_000_000, &[])];
    let plan = unlock(vec![locked(50, 7_000_000)]);
    let (_, tx) = built(&plan, &utxos);
    // Redeemers as in the witness set, no datums, and {2: [1, -2, 3]}, which is the fixture's cost model of Plutus V3.
    let mut covered = tx.parts[&TxPart::Redeemers].clone();
    covered.extend([0xa1, 0x02, 0x83, 0x01, 0x21, 0x03]);
    let hash = crate::hash::blake2b::<32>(&covered);
    assert!(tx.parts[&TxPart::ScriptDataHash].ends_with(&hash));
}

#[test]
fn a_reference_script_is_hashed_as_the_ledger_hashes_it() {
    let utxos = [utxo(1, home(), 90_000_000, &[])];
    let mut plan = pay(home(), 20_000_000);
    plan.outputs[0].script = Some(hex::decode("450101002499").unwrap());
    plan.outputs[0].inline_datum = Some(UNIT.to_vec());
    let draft = build(&plan, &wallet(home(), &utxos), &preprod()).unwrap();
    let made = &draft.facts().outputs[0];
    let hash = made.reference_script.unwrap();
    // The always-true Plutus V3 script, hashed by an unrelated library in `tests/e2e/chain`.
    assert_eq!(hash, ScriptHash::new(crate::hash::blake2b(&hex::decode("03450101002499").unwrap())));
    // The wallet does not count the published script as spendable change.
    assert_eq!(draft.facts().change.len(), 1);
}

#[test]
fn impossible_script_inputs_are_refused() {
    let utxos = [utxo(1, home(), 9_000_000, &[])];
    let refuse = |change: &dyn Fn(&mut ScriptInput)| {
        let mut input = locked(50, 7_000_000);
        change(&mut input);
        build(&unlock(vec![input]), &wallet(home(), &utxos), &preprod()).unwrap_err()
    };
    assert!(matches!(refuse(&|input| input.utxo.address = home().to_string()), BuildError::Malformed { .. }));
    assert!(matches!(refuse(&|input| input.utxo.inline_datum = None), BuildError::Malformed { .. }));
    assert!(matches!(refuse(&|input| input.redeemer = vec![0x82, 0]), BuildError::Malformed { .. }));
    assert!(matches!(refuse(&|input| input.ex_units.mem = 14_000_001), BuildError::ExUnitsTooHigh { .. }));
    let mut both = unlock(vec![locked(50, 7_000_000)]);
    both.reference_inputs[0].reference = reference(50);
    let both = build(&both, &wallet(home(), &utxos), &preprod()).unwrap_err();
    assert_eq!(both, BuildError::UsedTwice(reference(50)));
    let mut heavy = unlock(vec![locked(50, 7_000_000)]);
    heavy.reference_inputs[0].script_bytes = 200 * 1024 + 1;
    assert_eq!(
        build(&heavy, &wallet(home(), &utxos), &preprod()).unwrap_err(),
        BuildError::ScriptsTooLarge { bytes: 200 * 1024 + 1 }
    );
}

/// The party that chooses an escrow's next output could attach a script to it.
#[test]
fn a_script_input_that_carries_a_script_is_spent_and_its_bytes_are_paid_for() {
    let utxos = [utxo(1, home(), 9_000_000, &[])];
    let (plain, _) = built(&unlock(vec![locked(50, 7_000_000)]), &utxos);
    let mut input = locked(50, 7_000_000);
    input.utxo.reference_script = Some(ScriptHash::new([0; 28]));
    let (carrying, _) = built(&unlock(vec![input]), &utxos);
    assert_eq!(carrying.facts.fee.get() - plain.facts.fee.get(), 15 * (7_000_000 / 4310 - 160));
}

#[test]
fn collateral_that_was_set_aside_is_put_up_alone() {
    let aside = utxo(9, key(2).enterprise_address(), 5_000_000, &[]);
    let plan = TxPlan { collateral: vec![aside.clone()], ..unlock(vec![locked(1, 10_000_000)]) };
    let (tx, _) = built(&plan, &[utxo(2, home(), 5_000_000, &[])]);
    assert_eq!(tx.facts.collateral, [aside.reference]);
    let poor = TxPlan { collateral: vec![utxo(9, home(), 100_000, &[])], ..plan };
    let refused = build(&poor, &wallet(home(), &[utxo(2, home(), 50_000_000, &[])]), &preprod());
    assert!(matches!(refused, Err(BuildError::CollateralMissing { .. })), "{refused:?}");
}
