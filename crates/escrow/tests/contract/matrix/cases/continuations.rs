//! Cases of the output in which an escrow continues: its value, address, datum and script.

use cardano::chain::Value;
use surety_escrow::{Credential, PlutusAddress};

use super::{
    super::{
        scene::{AT_SCRIPT, LOCKED, STRANGER},
        transaction::{DatumOption, TxInfo, TxOut, add, credits, key_address, lovelace, tag},
    },
    Broken, MatrixCases, Spending, continuing,
};

pub(super) fn cases(cases: &mut MatrixCases) {
    for (name, spending, _) in continuing() {
        values(cases, &name, &spending);
        places(cases, &name, &spending);
        datums(cases, &name, &spending);
    }
}

fn with_tokens(quantity: u64) -> Value {
    Value { assets: [(credits(0x70), quantity)].into(), ..lovelace(LOCKED) }
}

fn values(cases: &mut MatrixCases, name: &str, spending: &Spending) {
    let holds = |value: Value| move |tx: &mut TxInfo| tx.next(|output| output.value = value);
    let kept = Broken::ValueKept;
    cases.forbidden(kept, format!("{name} 1 lovelace short"), spending, holds(lovelace(LOCKED - 1)));
    cases.permitted(format!("{name} with 1 lovelace more"), spending, |tx| tx.next(|output| add(&mut output.value, 1)));
    cases.forbidden(kept, format!("{name} with a token added"), spending, holds(with_tokens(1)));

    let rich = Spending { value: with_tokens(5), ..spending.clone() };
    cases.permitted(format!("{name} with its tokens"), &rich, |_| ());
    cases.forbidden(kept, format!("{name} a token short"), &rich, holds(with_tokens(4)));
    cases.forbidden(kept, format!("{name} with more of its tokens"), &rich, holds(with_tokens(6)));
    cases.forbidden(kept, format!("{name} without its tokens"), &rich, holds(lovelace(LOCKED)));
    cases.forbidden(kept, format!("{name} with lovelace for its tokens"), &rich, holds(lovelace(LOCKED * 2)));
}

fn places(cases: &mut MatrixCases, name: &str, spending: &Spending) {
    let moves = |address: PlutusAddress| move |tx: &mut TxInfo| tx.next(|output| output.address = address);
    let staked = PlutusAddress { stake: Some(Credential::Key(STRANGER)), ..AT_SCRIPT };
    cases.forbidden(Broken::Continues, format!("{name} under a stake key"), spending, moves(staked));
    cases.forbidden(Broken::Continues, format!("{name} to a wallet"), spending, moves(key_address(STRANGER)));
    cases.forbidden(Broken::Continues, format!("{name} to nowhere"), spending, |tx| {
        tx.outputs.retain(|output| output.address != AT_SCRIPT);
    });
    cases.permitted(format!("{name} in the last output"), spending, |tx| tx.outputs.rotate_left(1));
    cases.permitted(format!("{name} under the stake key that it had"), spending, |tx| {
        tx.all_outputs().filter(|output| output.address == AT_SCRIPT).for_each(|output| output.address = staked);
    });
}

fn datums(cases: &mut MatrixCases, name: &str, spending: &Spending) {
    cases.forbidden(Broken::OutputHasNoScript, format!("{name} with a script"), spending, |tx| {
        tx.next(|output| output.has_script = true);
    });
    cases.forbidden(Broken::OutputsDiffer, format!("{name} twice"), spending, |tx| {
        tx.outputs.push(tx.outputs[0].clone());
    });
    // Breaks two rules at once, because no output at that address is a readable escrow.
    let other = DatumOption::Inline(vec![0x05]);
    cases.cell(format!("{name} by hash"), spending, |tx| tx.next(TxOut::hash_datum));
    for (text, datum) in [("without a datum", DatumOption::None), ("with another datum", other.clone())] {
        cases.cell(format!("{name} {text}"), spending, |tx| tx.next(|output| output.datum = datum));
    }
    for (text, datum) in [("no datum", DatumOption::None), ("another datum", other), ("a tag", tag(spending.own))] {
        cases.forbidden(Broken::OutputIsEscrow, format!("{name} beside an output with {text}"), spending, |tx| {
            tx.outputs.push(TxOut::new(AT_SCRIPT, lovelace(2_000_000), datum));
        });
    }
}
