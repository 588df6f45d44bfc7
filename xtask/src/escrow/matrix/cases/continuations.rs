//! The output in which an escrow goes on: its value, its place, its datum's place, its script.

use cardano::ScriptHash;
use escrow::{Credential, PlutusAddress};

use super::{Case, Group, continuing_pairs, named};
use crate::escrow::matrix::{
    cbor,
    honest::{AT_SCRIPT, LOCKED, STRANGER, Spending, key_address},
    rules::Broken,
    transaction::{Attached, Output, Transaction, Value},
};

/// Another way to attach the same datum, or another datum.
type Reattach = fn(Attached) -> Attached;

/// A token beside the lovelace.
fn with_tokens(quantity: u64) -> Value {
    let mut value = Value::lovelace(LOCKED);
    value.tokens.insert((ScriptHash::new([0x70; 28]), b"credit".to_vec()), quantity);
    value
}

pub(super) fn cases() -> Vec<Case> {
    let mut group = Group::new("continuations");
    for (action, state) in continuing_pairs() {
        let spending = Spending::new(action, state);
        let name = named(action, state);
        values(&mut group, &name, &spending);
        places(&mut group, &name, &spending);
        datums(&mut group, &name, &spending);
    }
    group.cases
}

fn values(group: &mut Group, name: &str, spending: &Spending) {
    let lovelace = |lovelace: u64| move |tx: &mut Transaction| goes_on(tx, |output| output.value.lovelace = lovelace);
    group.forbidden(Broken::ValueKept, format!("{name} 1 lovelace short"), spending, lovelace(LOCKED - 1));
    group.permitted(format!("{name} with 1 lovelace more"), spending, lovelace(LOCKED + 1));
    group.forbidden(Broken::ValueKept, format!("{name} with a token added"), spending, |tx| {
        goes_on(tx, |output| output.value = with_tokens(1));
    });

    let rich = Spending { value: with_tokens(5), ..spending.clone() };
    let tokens = |quantity| move |tx: &mut Transaction| goes_on(tx, |output| output.value = with_tokens(quantity));
    group.permitted(format!("{name} with its tokens"), &rich, |_| ());
    group.forbidden(Broken::ValueKept, format!("{name} a token short"), &rich, tokens(4));
    group.forbidden(Broken::ValueKept, format!("{name} with more of its tokens"), &rich, tokens(6));
    group.forbidden(Broken::ValueKept, format!("{name} without its tokens"), &rich, |tx| {
        goes_on(tx, |output| output.value = Value::lovelace(LOCKED));
    });
    group.forbidden(Broken::ValueKept, format!("{name} with lovelace for its tokens"), &rich, |tx| {
        goes_on(tx, |output| output.value = Value::lovelace(LOCKED * 2));
    });
}

fn places(group: &mut Group, name: &str, spending: &Spending) {
    let moves = |address: PlutusAddress| move |tx: &mut Transaction| goes_on(tx, |output| output.address = address);
    let staked = PlutusAddress { stake: Some(Credential::Key(STRANGER)), ..AT_SCRIPT };
    group.forbidden(Broken::Continues, format!("{name} under a stake key"), spending, moves(staked));
    group.forbidden(Broken::Continues, format!("{name} to a wallet"), spending, moves(key_address(STRANGER)));
    group.forbidden(Broken::Continues, format!("{name} to nowhere"), spending, |tx| {
        tx.outputs.retain(|output| output.address != AT_SCRIPT);
    });
    group.permitted(format!("{name} in the last output"), spending, |tx| tx.outputs.rotate_left(1));

    let mut there = spending.transaction();
    for output in there.inputs.iter_mut().map(|input| &mut input.output).chain(&mut there.outputs) {
        if output.address == AT_SCRIPT {
            output.address = staked;
        }
    }
    group.permitted(format!("{name} under the stake key that it had"), spending, |tx| *tx = there);
}

fn datums(group: &mut Group, name: &str, spending: &Spending) {
    group.forbidden(Broken::OutputHasNoScript, format!("{name} with a script"), spending, |tx| {
        goes_on(tx, |output| output.has_script = true);
    });
    group.forbidden(Broken::OutputsDiffer, format!("{name} twice"), spending, |tx| {
        let copy = tx.outputs.iter().find(|output| output.address == AT_SCRIPT).cloned();
        tx.outputs.extend(copy);
    });
    let by_hash = |attached: Attached| match attached {
        Attached::Escrow(datum) => Attached::HashedEscrow(datum),
        other => other,
    };
    let attachments: [(&str, Reattach); 3] = [
        ("by hash", by_hash),
        ("without a datum", |_| Attached::Nothing),
        ("with another datum", |_| Attached::Other(vec![0x05])),
    ];
    for (text, attach) in attachments {
        let mut transaction = spending.transaction();
        goes_on(&mut transaction, |output| output.attached = attach(output.attached.clone()));
        // Two rules at once: no output there is an escrow, so none goes on.
        group.add(format!("{name} {text}"), spending, transaction, super::Shows::Cell);
    }
    for (text, attached) in [
        ("no datum", Attached::Nothing),
        ("another datum", Attached::Other(vec![0x05])),
        ("a tag", cbor::tag(spending.own).map_or(Attached::Nothing, Attached::Other)),
    ] {
        let stray = Output { address: AT_SCRIPT, value: Value::lovelace(2_000_000), attached, has_script: false };
        group.forbidden(Broken::OutputIsEscrow, format!("{name} beside an output with {text}"), spending, |tx| {
            tx.outputs.push(stray);
        });
    }
}

/// Changes the output in which the escrow goes on.
fn goes_on(transaction: &mut Transaction, change: impl FnOnce(&mut Output)) {
    if let Some(output) = transaction.outputs.iter_mut().find(|output| output.address == AT_SCRIPT) {
        change(output);
    }
}
