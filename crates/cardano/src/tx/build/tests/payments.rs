//! Tests of payments from a wallet, case by case.

use std::collections::BTreeSet;

use super::checker::approve;
use crate::{
    address::{Address, Credential},
    chain::Utxo,
    hash::TxRef,
    tx::{
        SignedTx,
        build::{
            BuildError, NewOutput, TxPlan, Validity, Wallet, build,
            fixtures::{FOREVER, key, lovelace, pay, preprod, reference, utxo, wallet},
        },
    },
};

/// Fee in lovelace of a payment from one UTxO of an enterprise address to another such address, with change. Counted by
/// hand: a body of 134 bytes (input 41, two outputs of 39 in 2, fee 6, TTL 6, map 1), a witness set of 107, 2 more.
const SIMPLE_FEE: u64 = 166_073;

fn home() -> Address {
    key(1).enterprise_address()
}

fn shop() -> Address {
    key(2).enterprise_address()
}

fn spent(plan: &TxPlan, utxos: &[Utxo]) -> BTreeSet<TxRef> {
    let built = build(plan, &wallet(home(), utxos), &preprod()).unwrap().sign(&[&key(1)]).unwrap();
    approve(&built, utxos, &preprod());
    built.facts.inputs.into_iter().collect()
}

fn failure(plan: &TxPlan, utxos: &[Utxo]) -> BuildError {
    build(plan, &wallet(home(), utxos), &preprod()).unwrap_err()
}

#[test]
fn a_simple_payment_has_these_bytes() {
    let utxos = [utxo(1, home(), 10_000_000, &[])];
    let built = build(&pay(shop(), 2_000_000), &wallet(home(), &utxos), &preprod()).unwrap().sign(&[&key(1)]).unwrap();
    let approved = approve(&built, &utxos, &preprod());
    assert_eq!(built.facts.fee, lovelace(SIMPLE_FEE));
    assert_eq!(approved.min_fee, SIMPLE_FEE);
    assert_eq!(built.facts.change[0].value.lovelace, lovelace(10_000_000 - 2_000_000 - SIMPLE_FEE));
    let (body, rest) = (&hex::encode(&built.cbor)[2..], "a100d9010281825820");
    let expected = format!(
        "a400d9010281825820{input}01\
         0182a200581d60{shop}011a001e8480a200581d60{home}011a{change:08x}\
         021a{SIMPLE_FEE:08x}031a05f5e100",
        input = hex::encode(reference(1).tx.as_bytes()),
        shop = hex::encode(shop().payment_key().as_bytes()),
        home = hex::encode(home().payment_key().as_bytes()),
        change = 10_000_000 - 2_000_000 - SIMPLE_FEE,
    );
    assert_eq!(&body[..expected.len()], expected);
    assert!(body[expected.len()..].starts_with(rest) && body.ends_with("f5f6"));
}

/// The sizes and the fee are those of x402-foundation/x402, `specs/extensions/cardano_request_commitment.md`, "Cost".
#[test]
fn auxiliary_data_are_named_in_the_body_and_paid_for() {
    let utxos = [utxo(1, home(), 10_000_000, &[])];
    let data = hex::decode(format!("d90103a100a1190192a2617066687474703a3161685820{}", "ab".repeat(32))).unwrap();
    let with = TxPlan { auxiliary_data: Some(data.clone()), ..pay(shop(), 2_000_000) };
    let built = |plan| build(plan, &wallet(home(), &utxos), &preprod()).unwrap();
    let unsigned = SignedTx::parse(&built(&with).unsigned_cbor().unwrap()).unwrap();
    let [plain, with] = [&pay(shop(), 2_000_000), &with].map(|plan| built(plan).sign(&[&key(1)]).unwrap());
    let tx = SignedTx::parse(&with.cbor).unwrap();
    assert_eq!(tx.auxiliary_data.as_ref().map(|data| &data.cbor), Some(&data));
    assert_eq!(tx.auxiliary_data_hash, Some(crate::hash::blake2b(&data)));
    assert_eq!((tx.id, &tx.auxiliary_data), (unsigned.id, &unsigned.auxiliary_data));
    assert_eq!(with.cbor.len() - plain.cbor.len(), 89);
    assert_eq!(with.facts.fee.get() - plain.facts.fee.get(), 3_916);
}

#[test]
fn building_twice_gives_the_same_bytes() {
    let utxos: Vec<Utxo> = (0..9).map(|n| utxo(n, home(), 3_000_000, &[])).collect();
    let mut turned = utxos.clone();
    turned.reverse();
    let plan = pay(shop(), 7_000_000);
    let draft = |utxos: &[Utxo]| build(&plan, &wallet(home(), utxos), &preprod()).unwrap();
    assert_eq!(draft(&utxos), draft(&turned));
}

#[test]
fn the_smallest_utxo_that_is_enough_pays() {
    let utxos = [50, 5, 20, 4].map(|ada| utxo(ada, home(), u64::from(ada) * 1_000_000, &[]));
    assert_eq!(spent(&pay(shop(), 10_000_000), &utxos), BTreeSet::from([reference(20)]));
}

#[test]
fn many_small_utxos_pay_together() {
    let utxos: Vec<Utxo> = (0..300).map(|n| utxo(n, home(), 1_200_000, &[])).collect();
    assert_eq!(spent(&pay(shop(), 300_000_000), &utxos).len(), 252);
}

#[test]
fn too_many_small_utxos_are_refused_as_too_many() {
    let utxos: Vec<Utxo> = (0..600).map(|n| utxo(n, home(), 1_200_000, &[])).collect();
    let error = failure(&pay(shop(), 600_000_000), &utxos);
    assert!(matches!(error, BuildError::TooLarge { limit: 16_384, .. }), "{error}");
}

#[test]
fn large_utxos_with_assets_pay_where_small_plain_ones_do_not_fit() {
    let mut utxos: Vec<Utxo> = (0..600).map(|n| utxo(n, home(), 1_200_000, &[])).collect();
    utxos.push(utxo(1000, home(), 900_000_000, &[(7, "t", 3)]));
    assert!(spent(&pay(shop(), 600_000_000), &utxos).contains(&reference(1000)));
}

#[test]
fn a_wallet_with_many_utxos_and_too_little_money_is_refused_as_too_poor() {
    let utxos: Vec<Utxo> = (0..600).map(|n| utxo(n, home(), 1_200_000, &[])).collect();
    let error = failure(&pay(shop(), 900_000_000), &utxos);
    assert!(matches!(error, BuildError::Insufficient { missing } if missing > lovelace(180_000_000)), "{error}");
}

#[test]
fn an_exact_amount_needs_no_change() {
    let fee = 166_073 - 44 * 39;
    for surplus in [0, 1, fee / 100] {
        let utxos = [utxo(1, home(), 2_000_000 + fee + surplus, &[])];
        let built = build(&pay(shop(), 2_000_000), &wallet(home(), &utxos), &preprod()).unwrap();
        let built = built.sign(&[&key(1)]).unwrap();
        let approved = approve(&built, &utxos, &preprod());
        assert_eq!((approved.min_fee, built.facts.fee), (fee, lovelace(fee + surplus)));
        assert!(built.facts.change.is_empty());
    }
}

#[test]
fn a_rest_that_is_too_small_for_change_is_not_given_away() {
    let fee = 166_073 - 44 * 39;
    for surplus in [fee / 100 + 1, 500_000, 857_689] {
        let utxos = [utxo(1, home(), 2_000_000 + fee + surplus, &[])];
        let error = failure(&pay(shop(), 2_000_000), &utxos);
        let BuildError::Insufficient { missing } = error else { panic!("{error}") };
        // The minimum of a plain output, the fee for that output, and the fee for a further input.
        assert_eq!(missing.get(), 857_690 + 44 * 39 - surplus + 44 * 40);
    }
}

#[test]
fn a_rest_that_is_too_small_for_change_is_made_larger_by_another_input() {
    let utxos = [utxo(1, home(), 2_300_000, &[]), utxo(2, home(), 1_000_000, &[])];
    assert_eq!(spent(&pay(shop(), 2_000_000), &utxos).len(), 2);
}

#[test]
fn adding_the_reported_missing_amount_makes_the_payment_possible() {
    for has in [0, 900_000, 1_500_000, 2_100_000, 2_900_000] {
        let mut utxos = vec![utxo(1, home(), has, &[])];
        utxos.retain(|utxo| utxo.value.lovelace.get() > 0);
        let BuildError::Insufficient { missing } = failure(&pay(shop(), 2_000_000), &utxos) else { panic!("{has}") };
        utxos.push(utxo(2, home(), missing.get(), &[]));
        spent(&pay(shop(), 2_000_000), &utxos);
        let last = utxos.len() - 1;
        utxos[last] = utxo(2, home(), missing.get() - 44 * 4 - 1, &[]);
        failure(&pay(shop(), 2_000_000), &utxos);
    }
}

#[test]
fn assets_stay_where_they_are_when_plain_utxos_are_enough() {
    let utxos =
        [utxo(1, home(), 50_000_000, &[(7, "t", 3)]), utxo(2, home(), 2_000_000, &[]), utxo(3, home(), 2_000_000, &[])];
    assert_eq!(spent(&pay(shop(), 2_500_000), &utxos), BTreeSet::from([reference(2), reference(3)]));
}

#[test]
fn assets_that_must_move_come_back_as_change() {
    let utxos = [utxo(1, home(), 9_000_000, &[(7, "t", 3), (8, "", 1)]), utxo(2, home(), 3_000_000, &[(7, "t", 4)])];
    let built = build(&pay(shop(), 8_500_000), &wallet(home(), &utxos), &preprod()).unwrap().sign(&[&key(1)]).unwrap();
    approve(&built, &utxos, &preprod());
    let [change] = built.facts.change.as_slice() else { panic!("one change output") };
    assert_eq!(change.value.assets.values().sum::<u64>(), 8);
}

#[test]
fn assets_are_paid_exactly_from_several_utxos() {
    let utxos: Vec<Utxo> = (0..5).map(|n| utxo(n, home(), 1_500_000, &[(7, "t", 10), (8, "u", 1)])).collect();
    let mut plan = pay(shop(), 1_500_000);
    plan.outputs[0].value.assets = utxo(0, home(), 0, &[(7, "t", 31)]).value.assets;
    let built = build(&plan, &wallet(home(), &utxos), &preprod()).unwrap().sign(&[&key(1)]).unwrap();
    approve(&built, &utxos, &preprod());
    assert_eq!(built.facts.outputs[0].value, plan.outputs[0].value);
    plan.outputs[0].value.assets = utxo(0, home(), 0, &[(7, "t", 51)]).value.assets;
    let unit = plan.outputs[0].value.assets.keys().next().unwrap().clone();
    assert_eq!(failure(&plan, &utxos), BuildError::AssetMissing { unit, missing: 1 });
}

#[test]
fn reserved_utxos_are_not_touched() {
    let utxos = [utxo(1, home(), 9_000_000, &[]), utxo(2, home(), 50_000_000, &[])];
    let reserved = BTreeSet::from([reference(1)]);
    let wallet = Wallet { address: home(), utxos: &utxos, reserved: &reserved };
    let draft = build(&pay(shop(), 5_000_000), &wallet, &preprod()).unwrap();
    assert_eq!(draft.facts().inputs, [reference(2)]);
}

#[test]
fn utxos_of_another_owner_are_not_touched() {
    let mut utxos: Vec<Utxo> = (1..=2).map(|n| utxo(n, home(), 9_000_000, &[])).collect();
    utxos[0].address = shop().to_string();
    utxos[1].address = "addr_test1wrphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcl6szpr".to_owned();
    assert!(matches!(failure(&pay(shop(), 2_000_000), &utxos), BuildError::Insufficient { .. }));
    utxos.push(utxo(6, home(), 9_000_000, &[]));
    assert_eq!(spent(&pay(shop(), 2_000_000), &utxos), BTreeSet::from([reference(6)]));
}

#[test]
fn a_wallet_of_several_keys_pays_with_those_that_the_plan_adds_and_a_signature_of_each() {
    let utxos = [utxo(1, home(), 3_000_000, &[]), utxo(2, key(2).enterprise_address(), 3_000_000, &[])];
    let plan = TxPlan { wallet_keys: [key(2).key_hash()].into(), ..pay(shop(), 4_000_000) };
    let draft = build(&plan, &wallet(home(), &utxos), &preprod()).unwrap();
    assert_eq!(draft.keys(), &[key(1).key_hash(), key(2).key_hash()].into());
    let built = draft.sign(&[&key(1), &key(2)]).unwrap();
    assert_eq!(built.facts.fee.get(), approve(&built, &utxos, &preprod()).min_fee);
    assert!(matches!(failure(&pay(shop(), 4_000_000), &utxos), BuildError::Insufficient { .. }));
}

fn carrying_script(number: u32, lovelace: u64) -> Utxo {
    Utxo { reference_script: Some(crate::ScriptHash::new([0; 28])), ..utxo(number, home(), lovelace, &[]) }
}

#[test]
fn a_utxo_with_a_datum_can_pay() {
    let mut utxos: Vec<Utxo> = (1..=2).map(|n| utxo(n, home(), 4_000_000, &[])).collect();
    utxos[0].inline_datum = Some(vec![0]);
    utxos[1].datum_hash = Some([0; 32]);
    assert_eq!(spent(&pay(shop(), 6_000_000), &utxos), BTreeSet::from([reference(1), reference(2)]));
}

#[test]
fn a_utxo_with_a_script_pays_where_no_other_can() {
    let utxos =
        [carrying_script(1, 9_000_000), utxo(2, home(), 9_000_000, &[(1, "x", 5)]), utxo(3, home(), 2_000_000, &[])];
    assert_eq!(spent(&pay(shop(), 3_000_000), &utxos), BTreeSet::from([reference(2), reference(3)]), "last");
    let all: BTreeSet<TxRef> = (1..=3).map(reference).collect();
    assert_eq!(spent(&pay(shop(), 15_000_000), &utxos), all);
    let built = build(&pay(shop(), 5_000_000), &wallet(home(), &utxos[..1]), &preprod()).unwrap();
    let script_bytes = 9_000_000 / 4310 - 160;
    assert_eq!(built.facts().fee, lovelace(SIMPLE_FEE + 15 * script_bytes), "as large as its lovelace lets it be");
}

/// An attacker sends 1,000 outputs with scripts, each with the minimum lovelace, to keep the wallet from paying.
#[test]
fn dust_with_scripts_does_not_freeze_a_wallet() {
    let utxos: Vec<Utxo> = (1..=1_000).map(|n| carrying_script(n, 1_250_000 + u64::from(n))).collect();
    let spent = spent(&pay(shop(), 200_000_000), &utxos);
    assert!(spent.len() > 160 && spent.len() < 200, "{}", spent.len());
}

#[test]
fn scripts_beyond_what_a_transaction_may_use_are_left_for_others() {
    let mut utxos: Vec<Utxo> = (1..=20).map(|n| carrying_script(n, 75_000_000)).collect();
    assert_eq!(spent(&pay(shop(), 800_000_000), &utxos).len(), 11);
    assert!(matches!(failure(&pay(shop(), 1_000_000_000), &utxos), BuildError::ScriptsTooLarge { .. }));
    utxos.push(utxo(30, home(), 900_000_000, &[]));
    assert!(spent(&pay(shop(), 1_000_000_000), &utxos).contains(&reference(30)));
}

#[test]
fn a_utxo_listed_twice_is_spent_once() {
    let one = utxo(1, home(), 3_000_000, &[]);
    let error = failure(&pay(shop(), 5_000_000), &[one.clone(), one]);
    assert!(matches!(error, BuildError::Insufficient { .. }), "{error}");
}

#[test]
fn change_of_a_pending_transaction_pays_next() {
    let mut utxos = vec![utxo(1, home(), 20_000_000, &[])];
    let mut reserved = BTreeSet::new();
    for _ in 0..5 {
        let wallet = Wallet { address: home(), utxos: &utxos, reserved: &reserved };
        let built = build(&pay(shop(), 2_000_000), &wallet, &preprod()).unwrap().sign(&[&key(1)]).unwrap();
        approve(&built, &utxos, &preprod());
        reserved.extend(built.facts.inputs);
        utxos.extend(built.facts.change);
    }
    assert_eq!(utxos.last().unwrap().value.lovelace, lovelace(20_000_000 - 5 * (2_000_000 + SIMPLE_FEE)));
}

#[test]
fn a_payment_to_the_wallet_itself_is_change_too() {
    let utxos = [utxo(1, home(), 20_000_000, &[])];
    let draft = build(&pay(home(), 2_000_000), &wallet(home(), &utxos), &preprod()).unwrap();
    assert_eq!(draft.facts().change.len(), 2);
}

#[test]
fn a_wallet_with_a_stake_credential_pays_from_all_addresses_of_its_key() {
    let staked = Address::base(key(1).key_hash(), Credential::Key(crate::KeyHash::new([9; 28])));
    let utxos = [utxo(1, staked, 3_000_000, &[]), utxo(2, home(), 3_000_000, &[])];
    let built = build(&pay(shop(), 4_000_000), &wallet(staked, &utxos), &preprod()).unwrap().sign(&[&key(1)]).unwrap();
    approve(&built, &utxos, &preprod());
    assert_eq!(built.facts.change[0].address, staked.to_string());
}

#[test]
fn inputs_of_other_keys_are_signed_by_them() {
    let utxos = [utxo(1, home(), 3_000_000, &[]), utxo(2, shop(), 30_000_000, &[])];
    let plan = TxPlan { inputs: vec![utxos[1].clone()], ..pay(key(3).enterprise_address(), 31_000_000) };
    let draft = build(&plan, &wallet(home(), &utxos), &preprod()).unwrap();
    assert_eq!(draft.keys().len(), 2);
    let missing = draft.clone().sign(&[&key(1), &key(3)]).unwrap_err();
    assert_eq!(missing, BuildError::SignerMissing(key(2).key_hash()));
    approve(&draft.sign(&[&key(1), &key(2), &key(3)]).unwrap(), &utxos, &preprod());
}

#[test]
fn impossible_plans_are_refused_with_the_reason() {
    let one = utxo(1, home(), 30_000_000, &[]);
    let funded = std::slice::from_ref(&one);
    let minimum = NewOutput::pay(shop(), lovelace(0)).min_lovelace(&preprod()).unwrap();
    assert_eq!(minimum, lovelace(857_690));
    spent(&pay(shop(), 857_690), funded);
    assert_eq!(failure(&pay(shop(), 857_689), funded), BuildError::OutputBelowMinimum { index: 0, minimum });
    let twice = TxPlan { inputs: vec![one.clone(), one.clone()], ..pay(shop(), 1_000_000) };
    assert_eq!(failure(&twice, funded), BuildError::UsedTwice(one.reference));
    let never = TxPlan { validity: Validity { from: Some(5), until: 5 }, ..pay(shop(), 1_000_000) };
    assert_eq!(failure(&never, funded), BuildError::EmptyInterval { from: 5, until: 5 });
    let mut bad_datum = pay(shop(), 2_000_000);
    for datum in [vec![], vec![0x1f], vec![0, 0]] {
        bad_datum.outputs[0].inline_datum = Some(datum);
        assert!(matches!(failure(&bad_datum, funded), BuildError::Malformed { .. }));
    }
    let mut heavy = pay(shop(), 40_000_000);
    let names: Vec<String> = (0..120).map(|n| format!("asset number {n:019}")).collect();
    let assets: Vec<(u8, &str, u64)> = names.iter().map(|name| (1, name.as_str(), u64::MAX)).collect();
    heavy.outputs[0].value.assets = utxo(0, home(), 0, &assets).value.assets;
    assert!(matches!(failure(&heavy, funded), BuildError::OutputValueTooLarge { index: 0, limit: 5000, .. }));
    assert!(matches!(
        failure(&TxPlan { validity: FOREVER, ..TxPlan::default() }, &[]),
        BuildError::Insufficient { .. }
    ));
}
