//! Tests of emptying wallets, case by case.

use super::checker::approve;
use crate::{
    address::Address,
    chain::Utxo,
    tx::build::{
        BuildError, NewOutput, Sweep,
        fixtures::{FOREVER, key, lovelace, preprod, reference, utxo, wallet},
        sweep,
    },
};

fn home() -> Address {
    key(1).enterprise_address()
}

fn owner() -> Address {
    key(2).enterprise_address()
}

fn swept(utxos: &[Utxo], reserve: u64) -> Sweep {
    let sweep = sweep(&wallet(home(), utxos), owner(), lovelace(reserve), FOREVER, &preprod()).unwrap();
    let built = sweep.draft.clone().sign(&[&key(1)]).unwrap();
    let approved = approve(&built, utxos, &preprod());
    assert_eq!(approved.min_fee, built.facts.fee.get());
    let kept: u64 = built.facts.change.iter().map(|utxo| utxo.value.lovelace.get()).sum();
    assert_eq!(kept, reserve);
    sweep
}

#[test]
fn a_sweep_moves_everything_but_the_reserve() {
    let utxos = [utxo(1, home(), 9_000_000, &[(7, "t", 3)]), utxo(2, home(), 3_000_000, &[(7, "t", 4)])];
    for reserve in [0, 2_000_000] {
        let sweep = swept(&utxos, reserve);
        let fee = sweep.draft.facts().fee.get();
        assert_eq!(sweep.sent, lovelace(12_000_000 - reserve - fee));
        let assets = sweep.draft.facts().outputs.iter().flat_map(|output| output.value.assets.values());
        assert_eq!(assets.sum::<u64>(), 7);
        assert!(sweep.left.is_empty());
    }
}

#[test]
fn utxos_with_a_datum_or_a_script_are_swept() {
    let mut utxos: Vec<Utxo> = (1..=3).map(|n| utxo(n, home(), 5_000_000, &[])).collect();
    utxos[0].inline_datum = Some(vec![0]);
    utxos[1].reference_script = Some(crate::ScriptHash::new([0; 28]));
    assert_eq!(swept(&utxos, 0).draft.facts().inputs, [reference(1), reference(2), reference(3)]);
}

#[test]
fn scripts_beyond_what_a_transaction_may_use_are_left_for_the_next_sweep() {
    let mut utxos: Vec<Utxo> = (0..30).map(|n| utxo(n, home(), 75_000_000, &[])).collect();
    utxos.iter_mut().for_each(|utxo| utxo.reference_script = Some(crate::ScriptHash::new([0; 28])));
    let mut counts = vec![];
    while !utxos.is_empty() {
        let left = swept(&utxos, 0).left;
        counts.push(utxos.len() - left.len());
        utxos.retain(|utxo| left.contains(&utxo.reference));
    }
    assert_eq!(counts, [12, 12, 6]);
}

#[test]
fn utxos_that_do_not_fit_are_left_for_the_next_sweep() {
    let mut utxos: Vec<Utxo> = (0..1000).map(|n| utxo(n, home(), 1_000_000 + u64::from(n), &[])).collect();
    let mut sweeps = 0;
    while !utxos.is_empty() {
        let sweep = swept(&utxos, 0);
        let taken = sweep.draft.facts().inputs.len();
        let bytes = sweep.draft.clone().sign(&[&key(1)]).unwrap().cbor.len();
        assert!(sweep.left.is_empty() || bytes > 16_384 - 40, "{taken} inputs in {bytes} bytes: one more would fit");
        assert_eq!(taken + sweep.left.len(), utxos.len());
        utxos.retain(|utxo| sweep.left.contains(&utxo.reference));
        sweeps += 1;
    }
    assert_eq!(sweeps, 3);
}

#[test]
fn many_assets_are_spread_over_outputs() {
    let names: Vec<String> = (0..240).map(|n| format!("asset number {n:019}")).collect();
    let utxos: Vec<Utxo> = (0..24u32)
        .map(|n| {
            let own = names.iter().skip(n as usize * 10).take(10);
            let assets: Vec<(u8, &str, u64)> = own.map(|name| (n as u8, name.as_str(), u64::MAX - 1)).collect();
            utxo(n, home(), 4_000_000, &assets)
        })
        .collect();
    let sweep = swept(&utxos, 2_000_000);
    assert!(sweep.left.is_empty() && sweep.draft.facts().outputs.len() > 3);
}

#[test]
fn more_of_an_asset_than_one_output_can_hold_does_not_lock_the_wallet() {
    let utxos: Vec<Utxo> = (0..3).map(|n| utxo(n, home(), 5_000_000, &[(7, "flood", u64::MAX)])).collect();
    let sweep = sweep(&wallet(home(), &utxos), owner(), lovelace(0), FOREVER, &preprod());
    assert_eq!(sweep.unwrap().draft.facts().outputs.len(), 3);
}

#[test]
fn a_price_received_with_a_full_load_of_tokens_can_be_swept() {
    let junk: Vec<(u8, &str, u64)> = (0..=u8::MAX).map(|policy| (policy, "", 1)).collect();
    let price = |tokens: usize| utxo(1, home(), 5_000_000, &junk[..tokens]);
    let holds = |tokens: usize| {
        let output = NewOutput { value: price(tokens).value, ..NewOutput::pay(home(), lovelace(0)) };
        output.min_lovelace(&preprod()).unwrap() <= lovelace(5_000_000)
    };
    let most = (0..junk.len()).take_while(|tokens| holds(*tokens)).last().unwrap();
    assert_eq!(most, 29);
    // The tokens require all of its lovelace, so the fee must come from the seller's other outputs.
    let poor = sweep(&wallet(home(), &[price(most)]), owner(), lovelace(0), FOREVER, &preprod());
    assert!(matches!(poor, Err(BuildError::Insufficient { .. } | BuildError::NothingToSweep { .. })), "{poor:?}");
    let sweep = swept(&[price(most), utxo(2, home(), 1_000_000, &[])], 0);
    assert_eq!(sweep.sent, lovelace(6_000_000 - sweep.draft.facts().fee.get()));
    assert!(sweep.left.is_empty());
}

#[test]
fn an_empty_or_poor_wallet_has_nothing_to_sweep() {
    for (held, reserve) in
        [(vec![], 2_000_000), (vec![2_000_000], 2_000_000), (vec![3_000_000], 2_000_000), (vec![1_000_000], 0)]
    {
        let utxos: Vec<Utxo> = (1u32..).zip(&held).map(|(n, amount)| utxo(n, home(), *amount, &[])).collect();
        let refused = sweep(&wallet(home(), &utxos), owner(), lovelace(reserve), FOREVER, &preprod());
        let Err(BuildError::NothingToSweep { balance, missing }) = refused else { panic!("{held:?}: {refused:?}") };
        assert_eq!(balance, lovelace(held.iter().sum()));
        let mut topped = utxos.clone();
        topped.push(utxo(9, home(), missing.get(), &[]));
        swept(&topped, reserve);
    }
}

/// Creates an output that holds one of each of these tokens and the minimum lovelace.
fn laden(number: u32, tokens: impl Iterator<Item = String>) -> Utxo {
    let mut laden = utxo(number, home(), 0, &[]);
    laden.value.assets = tokens.map(|token| (token, 1)).collect();
    let output = NewOutput { value: laden.value.clone(), ..NewOutput::pay(home(), lovelace(0)) };
    laden.value.lovelace = output.min_lovelace(&preprod()).unwrap();
    laden
}

#[test]
fn rich_outputs_full_of_tokens_do_not_block_a_sweep() {
    let tokens = |number: u32| (0..40).map(move |token| format!("{}{number:032x}{token:032x}", "ab".repeat(28)));
    for gifts in 4..16 {
        let gifts: Vec<Utxo> = (100..100 + gifts).map(|number| laden(number, tokens(number))).collect();
        let own = gifts[0].value.lovelace.get() - 1;
        for count in [1, 2, 3, 20] {
            let owns: Vec<Utxo> = (0..count).map(|n| utxo(n, home(), own, &[])).collect();
            let mut held = [owns.as_slice(), gifts.as_slice()].concat();
            let first = swept(&held, 2_000_000).sent;
            let least = if gifts.len() <= 6 { 18 * own } else { 10 * own };
            assert!(count < 20 || first > lovelace(least), "{first:?} of {count} of {own} beside {}", gifts.len());
            while held.iter().any(|utxo| owns.contains(utxo)) {
                let sweep = swept(&held, 2_000_000);
                held.retain(|utxo| sweep.left.contains(&utxo.reference));
                held.push(utxo(50, home(), 2_000_000, &[]));
            }
        }
    }
}

#[test]
fn outputs_whose_tokens_need_more_lovelace_together_do_not_block_a_sweep() {
    let tokens = |number: u32| (0..100).map(move |token| format!("{number:028x}{token:028x}{}", "ab".repeat(32)));
    let utxos = [utxo(1, home(), 4_000_000, &[]), laden(100, tokens(100)), laden(101, tokens(101))];
    let sweep = swept(&utxos, 2_000_000);
    assert_eq!(sweep.left.len(), 2, "{:?}", sweep.left);
    assert!(sweep.sent > lovelace(1_800_000), "{:?}", sweep.sent);
}
