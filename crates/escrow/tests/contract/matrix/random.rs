//! Random transactions: cases of the matrix with a few random edits. The rules and the contract must agree on each.

use cardano::{KeyHash, Lovelace, ScriptHash, TxHash, TxRef};
use proptest::{
    prelude::Rng,
    test_runner::{RngAlgorithm, TestRng},
};
use surety_escrow::{Action, Credential, Datum, PlutusAddress, Redeemer, State, rules::ValidityRange};

use super::{
    cases::{self, MatrixCase, Shows},
    scene::{AT_SCRIPT, BUYER, LOCKED, OWN, SELLER, STRANGER, escrow},
    transaction::{DatumOption, TxIn, TxInfo, TxOut, add, credits, key_address, tag},
};

/// Maximum number of edits of one case. With more edits, the effect of one would hide that of another.
const MAX_EDITS: usize = 4;
const KEYS: [KeyHash; 3] = [BUYER, SELLER, STRANGER];

struct Dice(TestRng);

impl Dice {
    fn seeded(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Self(TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
    }

    /// Returns a number below `end`, which must not be 0.
    fn below(&mut self, end: usize) -> usize {
        (self.0.next_u64() % end as u64) as usize
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    fn nudge(&mut self, number: &mut u64, by: u64) {
        *number = if self.coin() { number.saturating_add(by) } else { number.saturating_sub(by) };
    }
}

/// Generates `count` random cases from a seed.
pub fn cases(count: usize, seed: usize) -> Vec<MatrixCase> {
    let mut dice = Dice::seeded(seed as u64);
    let bases = cases::all();
    let case = |number: usize| {
        let mut case = dice.pick(&bases);
        for _ in 0..=dice.below(MAX_EDITS) {
            edit(&mut dice, &mut case.transaction);
        }
        let name = format!("#{number} of seed {seed}: {}", case.name);
        MatrixCase { group: "random", name, shows: Shows::Cell, ..case }
    };
    (0..count).map(case).collect()
}

fn edit(dice: &mut Dice, transaction: &mut TxInfo) {
    let validity = transaction.validity;
    match dice.below(10) {
        0 => edit_validity(dice, &mut transaction.validity),
        1 => edit_signers(dice, &mut transaction.signers),
        2 => edit_outputs(dice, &mut transaction.outputs),
        3 | 4 => {
            let index = dice.below(transaction.outputs.len().max(1));
            if let Some(output) = transaction.outputs.get_mut(index) {
                edit_output(dice, output);
            }
        }
        5 => {
            let output = &mut spend(dice, transaction).output;
            match dice.below(4) {
                0 => nudge_value(dice, output),
                1 => output.hash_datum(),
                _ => output.edit(|datum| edit_datum(dice, datum, validity)),
            }
        }
        6 => {
            let redeemer = Redeemer::plain(dice.pick(&Action::ALL));
            if let Some(redeemer) = redeemer {
                spend(dice, transaction).redeemer = Some(redeemer.to_cbor());
            }
        }
        7 => add_input(dice, transaction),
        // Changes the escrow before and after alike, because a change on one side alone is rejected early.
        _ => {
            let seed = dice.0.next_u64();
            for output in transaction.all_outputs() {
                output.edit(|datum| edit_datum(&mut Dice::seeded(seed), datum, validity));
            }
        }
    }
}

/// Picks one of the transaction's inputs that run the script.
fn spend<'a>(dice: &mut Dice, transaction: &'a mut TxInfo) -> &'a mut TxIn {
    let mut spends: Vec<_> = transaction.inputs.iter_mut().filter(|input| input.redeemer.is_some()).collect();
    let index = dice.below(spends.len());
    spends.swap_remove(index)
}

fn edit_validity(dice: &mut Dice, validity: &mut ValidityRange) {
    let bound = if dice.coin() { &mut validity.from } else { &mut validity.until };
    match bound {
        Some(time) if dice.below(4) > 0 => dice.nudge(time, 1_000),
        _ => *bound = None,
    }
}

fn edit_signers(dice: &mut Dice, signers: &mut Vec<KeyHash>) {
    let key = dice.pick(&KEYS);
    if dice.coin() && !signers.contains(&key) {
        signers.push(key);
    } else {
        signers.pop();
    }
}

fn edit_outputs(dice: &mut Dice, outputs: &mut Vec<TxOut>) {
    let index = dice.below(outputs.len());
    match dice.below(3) {
        0 if outputs.len() > 1 => drop(outputs.remove(index)),
        1 => outputs.push(outputs[index].clone()),
        _ => outputs.rotate_left(index),
    }
}

fn nudge_value(dice: &mut Dice, output: &mut TxOut) {
    add(&mut output.value, if dice.coin() { 1 } else { -1 });
}

fn edit_output(dice: &mut Dice, output: &mut TxOut) {
    let staked = PlutusAddress { stake: Some(Credential::Key(STRANGER)), ..AT_SCRIPT };
    match dice.below(6) {
        0 => nudge_value(dice, output),
        1 => {
            if output.value.assets.remove(&credits(0x70)).is_none() {
                output.value.assets.insert(credits(0x70), 5);
            }
        }
        2 => output.has_script = !output.has_script,
        3 => {
            let [buyer, seller, stranger] = KEYS.map(key_address);
            output.address = dice.pick(&[buyer, seller, stranger, AT_SCRIPT, staked]);
        }
        4 => match dice.below(5) {
            0 => output.datum = DatumOption::None,
            1 => output.datum = tag(OWN),
            2 => output.datum = tag(TxRef { index: 0, ..OWN }),
            3 if output.escrow().is_some() => output.hash_datum(),
            _ => output.datum = DatumOption::Inline(escrow(dice.pick(&State::ALL)).to_cbor()),
        },
        _ => output.edit(|datum| edit_datum(dice, datum, ValidityRange { from: None, until: None })),
    }
}

/// Adds another escrow as input, possibly one whose reference signature is already used.
fn add_input(dice: &mut Dice, transaction: &mut TxInfo) {
    let reference = TxRef { tx: TxHash::new([dice.below(256) as u8; 32]), index: 3 };
    if transaction.inputs.iter().any(|input| input.reference == reference) {
        return;
    }
    let first = transaction.inputs.iter().find(|input| input.redeemer.is_some()).unwrap();
    let mut input = TxIn { reference, ..first.clone() };
    if input.output.escrow().is_some() && dice.below(3) > 0 {
        let reference_signature = vec![dice.below(4) as u8; 20];
        input.output.edit(|datum| datum.reference_signature = reference_signature);
        if dice.coin() {
            transaction.outputs.push(input.output.clone());
        }
    }
    transaction.inputs.push(input);
}

fn edit_datum(dice: &mut Dice, datum: &mut Datum, validity: ValidityRange) {
    let key = key_address(dice.pick(&KEYS));
    let script = PlutusAddress::script(ScriptHash::new([7; 28]));
    let other = dice.pick(&[None, Some(script), Some(key), Some(key)]);
    // Times near the validity interval's bounds, where the rules decide.
    let edges: Vec<u64> = [validity.from, validity.until, Some(0)].into_iter().flatten().collect();
    let mut time = dice.pick(&edges);
    if dice.coin() {
        dice.nudge(&mut time, 1);
    }
    match dice.below(15) {
        0 => datum.state = dice.pick(&State::ALL),
        1 => datum.result_hash = if datum.has_result() { vec![] } else { vec![1] },
        2 => datum.deadlines.submit_result = time,
        3 => datum.deadlines.unlock = time,
        4 => datum.deadlines.external_dispute_unlock = time,
        5 => datum.deadlines.pay_by = time,
        6 => datum.seller_cooldown = time,
        7 => datum.buyer_cooldown = time,
        8 => datum.collateral_return = Lovelace::new(dice.pick(&[0, 1, LOCKED, LOCKED + 1])).unwrap(),
        9 => datum.reference_signature = vec![2; 14 + dice.below(4)],
        10 => datum.buyer_return_address = other,
        11 => datum.seller_return_address = other,
        12 => datum.buyer = other.unwrap_or(datum.buyer),
        13 => datum.seller = other.unwrap_or(datum.seller),
        _ => datum.agent_identifier.clear(),
    }
}
