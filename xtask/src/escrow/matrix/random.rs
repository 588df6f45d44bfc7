//! Transactions that nobody thought of: cases of the matrix with a few random edits. Whatever comes out, the rules and
//! the contract must say the same.

use cardano::{KeyHash, Lovelace, ScriptHash, TxHash, TxRef};
use escrow::{Action, Credential, Datum, PlutusAddress, Redeemer, datum::State};

use super::{
    cases::{self, Case, Shows},
    honest::{AT_SCRIPT, BUYER, LOCKED, OWN, SELLER, STRANGER, escrow, key_address},
    transaction::{Attached, Handed, Input, Output, Transaction},
};

/// Edits of one case at the most; more would hide each other.
const MAX_EDITS: usize = 4;

/// SplitMix64 (Steele, Lea, Flood 2014): small, and the same everywhere for one seed.
struct Dice(u64);

impl Dice {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if there is none.
    fn below(&mut self, end: usize) -> usize {
        let end = end as u64;
        self.next().checked_rem(end).map_or(0, |n| n as usize)
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }

    fn pick_mut<'a, T>(&mut self, from: &'a mut [T]) -> Option<&'a mut T> {
        let at = self.below(from.len());
        from.get_mut(at)
    }

    fn nudge(&mut self, number: &mut u64, by: u64) {
        *number = if self.below(2) == 0 { number.saturating_add(by) } else { number.saturating_sub(by) };
    }
}

/// As many random cases as asked for, the same for the same seed.
#[must_use]
pub fn cases(count: usize, seed: u64) -> Vec<Case> {
    let mut dice = Dice(seed);
    let bases = cases::all();
    (0..count)
        .filter_map(|number| {
            let base = dice.pick(&bases)?.clone();
            let mut transaction = base.transaction;
            for _ in 0..=dice.below(MAX_EDITS) {
                edit(&mut dice, &mut transaction);
            }
            let name = format!("#{number} of seed {seed}: {}", base.name);
            Some(Case { group: "random", name, transaction, shows: Shows::Cell, ..base })
        })
        .collect()
}

fn edit(dice: &mut Dice, transaction: &mut Transaction) {
    match dice.below(10) {
        0 => edit_validity(dice, transaction),
        1 => edit_signers(dice, transaction),
        2 => edit_outputs(dice, transaction),
        3 | 4 => {
            if let Some(output) = dice.pick_mut(&mut transaction.outputs) {
                edit_output(dice, output);
            }
        }
        5 => edit_spent(dice, transaction),
        6 => edit_handed(dice, transaction),
        7 => add_input(dice, transaction),
        // The escrow before and after, alike: what only one of them says is soon refused.
        _ => {
            let seed = dice.next();
            let inputs = transaction.inputs.iter_mut().map(|input| &mut input.output);
            for output in inputs.chain(&mut transaction.outputs) {
                if let Attached::Escrow(datum) = &mut output.attached {
                    edit_datum(&mut Dice(seed), datum, &transaction.validity);
                }
            }
        }
    }
}

fn edit_validity(dice: &mut Dice, transaction: &mut Transaction) {
    let validity = &mut transaction.validity;
    let bound = if dice.below(2) == 0 { &mut validity.from } else { &mut validity.until };
    match bound {
        Some(time) if dice.below(4) > 0 => dice.nudge(time, 1_000),
        _ => *bound = None,
    }
}

fn edit_signers(dice: &mut Dice, transaction: &mut Transaction) {
    match dice.pick(&[BUYER, SELLER, STRANGER]) {
        Some(key) if dice.below(2) == 0 && !transaction.signers.contains(key) => transaction.signers.push(*key),
        _ => {
            transaction.signers.pop();
        }
    }
}

fn edit_outputs(dice: &mut Dice, transaction: &mut Transaction) {
    let at = dice.below(transaction.outputs.len());
    match dice.below(3) {
        0 if transaction.outputs.len() > 1 => {
            transaction.outputs.remove(at);
        }
        1 => transaction.outputs.extend(transaction.outputs.get(at).cloned()),
        _ => transaction.outputs.rotate_left(at),
    }
}

fn edit_output(dice: &mut Dice, output: &mut Output) {
    match dice.below(6) {
        0 => dice.nudge(&mut output.value.lovelace, 1),
        1 => {
            let asset = (ScriptHash::new([0x70; 28]), b"credit".to_vec());
            if output.value.tokens.remove(&asset).is_none() {
                output.value.tokens.insert(asset, 5);
            }
        }
        2 => output.has_script = !output.has_script,
        3 => output.address = address(dice),
        4 => output.attached = attached(dice, &output.attached),
        _ => {
            if let Attached::Escrow(datum) = &mut output.attached {
                let unbounded = escrow::rules::ValidityRange { from: None, until: None };
                edit_datum(dice, datum, &unbounded);
            }
        }
    }
}

fn address(dice: &mut Dice) -> PlutusAddress {
    let staked = PlutusAddress { stake: Some(Credential::Key(STRANGER)), ..AT_SCRIPT };
    let known = [key_address(BUYER), key_address(SELLER), key_address(STRANGER), AT_SCRIPT, staked];
    dice.pick(&known).copied().unwrap_or(AT_SCRIPT)
}

fn attached(dice: &mut Dice, now: &Attached) -> Attached {
    match (dice.below(5), now) {
        (0, _) => Attached::Nothing,
        (1, _) => Attached::Tag(OWN),
        (2, _) => Attached::Tag(TxRef { index: 0, ..OWN }),
        (3, Attached::Escrow(datum)) => Attached::HashedEscrow(datum.clone()),
        _ => Attached::Escrow(Box::new(escrow(state(dice)))),
    }
}

fn state(dice: &mut Dice) -> State {
    dice.pick(&State::ALL).copied().unwrap_or(State::Disputed)
}

fn edit_spent(dice: &mut Dice, transaction: &mut Transaction) {
    let mut scripts: Vec<_> = transaction.inputs.iter_mut().filter(|input| input.handed.is_some()).collect();
    let Some(input) = dice.pick_mut(&mut scripts) else { return };
    match (dice.below(3), input.output.attached.clone()) {
        (0, _) => dice.nudge(&mut input.output.value.lovelace, 1),
        (1, Attached::Escrow(datum)) => input.output.attached = Attached::HashedEscrow(datum),
        (_, Attached::Escrow(mut datum)) => {
            edit_datum(dice, &mut datum, &transaction.validity);
            input.output.attached = Attached::Escrow(datum);
        }
        _ => {}
    }
}

fn edit_handed(dice: &mut Dice, transaction: &mut Transaction) {
    let action = dice.pick(&Action::ALL).copied().unwrap_or(Action::Withdraw);
    let mut scripts: Vec<_> = transaction.inputs.iter_mut().filter(|input| input.handed.is_some()).collect();
    if let (Some(input), Some(redeemer)) = (dice.pick_mut(&mut scripts), Redeemer::plain(action)) {
        input.handed = Some(Handed::Action(redeemer));
    }
}

/// Another escrow is spent, perhaps under a reference that is already there.
fn add_input(dice: &mut Dice, transaction: &mut Transaction) {
    let reference = TxRef { tx: TxHash::new([dice.below(256) as u8; 32]), index: 3 };
    let copied = transaction.inputs.iter().find(|input| input.handed.is_some()).cloned();
    let Some(mut input) = copied.filter(|_| transaction.inputs.iter().all(|input| input.reference != reference)) else {
        return;
    };
    if let Attached::Escrow(datum) = &mut input.output.attached
        && dice.below(3) > 0
    {
        datum.reference_signature = vec![dice.below(4) as u8; 20];
        if dice.below(2) == 0 {
            transaction.outputs.push(input.output.clone());
        }
    }
    transaction.inputs.push(Input { reference, ..input });
}

fn edit_datum(dice: &mut Dice, datum: &mut Datum, validity: &escrow::rules::ValidityRange) {
    let key = dice.pick(&[BUYER, SELLER, STRANGER]).copied().unwrap_or(KeyHash::new([0; 28]));
    let other = match dice.below(4) {
        0 => None,
        1 => Some(PlutusAddress::script(ScriptHash::new([7; 28]))),
        _ => Some(key_address(key)),
    };
    // Around the transaction's own bounds, where the rules decide.
    let edges = [validity.from, validity.until, Some(0)].into_iter().flatten().collect::<Vec<_>>();
    let mut time = dice.pick(&edges).copied().unwrap_or_default();
    if dice.below(2) == 0 {
        dice.nudge(&mut time, 1);
    }
    match dice.below(15) {
        0 => datum.state = state(dice),
        1 => datum.result_hash = if datum.has_result() { vec![] } else { vec![1] },
        2 => datum.deadlines.submit_result = time,
        3 => datum.deadlines.unlock = time,
        4 => datum.deadlines.external_dispute_unlock = time,
        5 => datum.deadlines.pay_by = time,
        6 => datum.seller_cooldown = time,
        7 => datum.buyer_cooldown = time,
        8 => {
            let amounts = [0, 1, LOCKED, LOCKED.saturating_add(1)];
            let amount = dice.pick(&amounts).copied().and_then(Lovelace::new);
            datum.collateral_return = amount.unwrap_or_default();
        }
        9 => {
            let length = 14usize.saturating_add(dice.below(4));
            datum.reference_signature = vec![2; length];
        }
        10 => datum.buyer_return_address = other,
        11 => datum.seller_return_address = other,
        12 => datum.buyer = other.unwrap_or(datum.buyer),
        13 => datum.seller = other.unwrap_or(datum.seller),
        _ => datum.agent_identifier.clear(),
    }
}
