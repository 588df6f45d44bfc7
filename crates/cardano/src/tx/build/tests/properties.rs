//! Tests that every wallet and payment yields a valid transaction, or an error with correct amounts.

use std::collections::BTreeSet;

use proptest::{collection::vec, prelude::*};

use super::checker::approve;
use crate::{
    address::Address,
    chain::Utxo,
    hash::TxRef,
    tx::build::{
        BuildError, NewOutput, TxPlan, Wallet, build,
        fixtures::{FOREVER, key, lovelace, preprod, reference, utxo},
        sweep,
    },
};

fn home() -> Address {
    key(1).enterprise_address()
}

fn amount() -> impl Strategy<Value = u64> {
    prop_oneof![1_200_000u64..2_500_000, 1_200_000u64..50_000_000, 4_000_000_000u64..5_000_000_000]
}

/// Contents of a generated UTxO: lovelace, assets, and a number, of which 0 adds a datum and 1 adds a script.
type Held = (u64, Vec<(u8, String, u64)>, u8);

/// Generates up to `most` UTxOs that hold at least the minimum for their size, like all UTxOs on a chain.
fn utxos(most: usize) -> impl Strategy<Value = Vec<Utxo>> {
    let assets = vec((0u8..4, "[a-c]{0,2}", 1u64..1000), 0..4);
    let one = (amount(), prop_oneof![3 => Just(std::vec::Vec::new()), 1 => assets], 0u8..12);
    vec(one, 0..most).prop_map(|all| {
        let utxo = |(number, (amount, assets, kind)): (u32, Held)| {
            let assets: Vec<(u8, &str, u64)> = assets.iter().map(|(p, n, q)| (*p, n.as_str(), *q)).collect();
            let mut utxo = utxo(number, home(), amount + 400_000 * assets.len() as u64, &assets);
            if kind == 0 {
                utxo.inline_datum = Some(vec![0]);
            }
            if kind == 1 {
                utxo.reference_script = Some(crate::ScriptHash::new([0; 28]));
            }
            utxo
        };
        (0..).zip(all).map(utxo).collect()
    })
}

fn reserved(utxos: &[Utxo], every: usize) -> BTreeSet<TxRef> {
    utxos.iter().step_by(every).map(|utxo| utxo.reference).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn a_payment_is_exact_or_says_what_is_missing(
        utxos in utxos(60), amounts in vec(amount(), 1..6), every in 1usize..8,
    ) {
        let params = preprod();
        let reserved = reserved(&utxos, every + 1);
        let outputs: Vec<NewOutput> =
            (2u8..).zip(&amounts).map(|(n, a)| NewOutput::pay(key(n).enterprise_address(), lovelace(*a))).collect();
        let plan = TxPlan { outputs, validity: FOREVER, ..TxPlan::default() };
        let wallet = Wallet { address: home(), utxos: &utxos, reserved: &reserved };
        match build(&plan, &wallet, &params) {
            Ok(draft) => {
                let built = draft.sign(&[&key(1)]).unwrap();
                let approved = approve(&built, &utxos, &params);
                for (output, amount) in approved.tx.outputs.iter().zip(&amounts) {
                    prop_assert_eq!(output.value.lovelace, lovelace(*amount));
                }
                for input in &built.facts.inputs {
                    prop_assert!(!reserved.contains(input));
                }
                prop_assert_eq!(built.facts.outputs.len(), amounts.len() + built.facts.change.len());
                if !built.facts.change.is_empty() {
                    prop_assert_eq!(built.facts.fee.get(), approved.min_fee);
                }
            }
            Err(BuildError::Insufficient { missing }) => {
                let mut topped = utxos.clone();
                topped.push(utxo(9999, home(), missing.get().max(1_000_000), &[]));
                let wallet = Wallet { utxos: &topped, ..wallet };
                let built = build(&plan, &wallet, &params).unwrap().sign(&[&key(1)]).unwrap();
                approve(&built, &topped, &params);
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn a_sweep_leaves_exactly_the_reserve(utxos in utxos(40), reserve in prop_oneof![Just(0u64), 900_000u64..4_000_000]) {
        let params = preprod();
        let reserved = BTreeSet::new();
        let wallet = Wallet { address: home(), utxos: &utxos, reserved: &reserved };
        let held: u64 = utxos.iter().map(|utxo| utxo.value.lovelace.get()).sum();
        match sweep(&wallet, key(2).enterprise_address(), lovelace(reserve), FOREVER, &params) {
            Ok(sweep) => {
                let built = sweep.draft.sign(&[&key(1)]).unwrap();
                approve(&built, &utxos, &params);
                let kept: u64 = built.facts.change.iter().map(|utxo| utxo.value.lovelace.get()).sum();
                prop_assert_eq!(kept, reserve);
                prop_assert_eq!(sweep.sent.get() + reserve + built.facts.fee.get(), held);
                prop_assert_eq!(built.facts.inputs.len(), utxos.len());
            }
            Err(BuildError::NothingToSweep { balance, missing }) => {
                prop_assert_eq!(balance, lovelace(held));
                let mut topped = utxos.clone();
                topped.push(utxo(9999, home(), missing.get().max(1_000_000), &[]));
                let wallet = Wallet { utxos: &topped, ..wallet };
                prop_assert!(sweep(&wallet, key(2).enterprise_address(), lovelace(reserve), FOREVER, &params).is_ok());
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn many_payments_in_a_row_never_spend_twice(amounts in vec(1_000_000u64..6_000_000, 1..25)) {
        let params = preprod();
        let mut utxos: Vec<Utxo> = (0..4).map(|n| utxo(n, home(), 40_000_000, &[])).collect();
        let mut reserved = BTreeSet::new();
        for amount in amounts {
            let plan = TxPlan {
                outputs: vec![NewOutput::pay(key(2).enterprise_address(), lovelace(amount))],
                validity: FOREVER,
                ..TxPlan::default()
            };
            let wallet = Wallet { address: home(), utxos: &utxos, reserved: &reserved };
            let built = build(&plan, &wallet, &params).unwrap().sign(&[&key(1)]).unwrap();
            approve(&built, &utxos, &params);
            for input in built.facts.inputs {
                prop_assert!(reserved.insert(input));
            }
            utxos.extend(built.facts.change);
        }
    }
}

#[test]
fn the_fixtures_names_are_distinct() {
    let names: BTreeSet<TxRef> = (0..1000).map(reference).collect();
    assert_eq!(names.len(), 1000);
}
