//! Several escrows in one transaction: each is told from the others, and none pays for another.

use cardano::{TxHash, TxRef};
use escrow::{Action, datum::State};

use super::{Case, Group, named};
use crate::escrow::matrix::{
    honest::{AT_SCRIPT, LOCKED, Spending, escrow},
    rules::Broken,
    transaction::{Attached, Output, Transaction, Value},
};

/// Names of neighbours: one sorts before the escrow of the cases, one after it.
const NEIGHBOURS: [TxRef; 2] =
    [TxRef { tx: TxHash::new([0xcc; 32]), index: 0 }, TxRef { tx: TxHash::new([0xce; 32]), index: 7 }];

/// Actions whose signer and times allow two of them in one transaction.
const PAIRS: &[(Action, State)] = &[
    (Action::SubmitResult, State::FundsLocked),
    (Action::SetRefundRequested, State::ResultSubmitted),
    (Action::AuthorizeWithdrawal, State::Disputed),
    (Action::AuthorizeRefund, State::Disputed),
    (Action::Withdraw, State::WithdrawAuthorized),
    (Action::WithdrawRefund, State::RefundAuthorized),
    (Action::WithdrawDisputed, State::Disputed),
];

pub(super) fn cases() -> Vec<Case> {
    let mut group = Group::new("batches");
    for (action, state) in PAIRS {
        let spending = Spending::new(*action, *state);
        let name = named(*action, *state);
        for (own, place) in NEIGHBOURS.into_iter().zip(["before", "after"]) {
            beside(&mut group, &format!("{name}, another {place} it"), &spending, own);
        }
        three(&mut group, &name, &spending);
        locks(&mut group, &name, &spending);
    }
    one_output_for_two(&mut group);
    group.cases
}

fn other(spending: &Spending, own: TxRef, reference: u8) -> Spending {
    let mut other = Spending { own, ..spending.clone() };
    other.datum.reference_signature = vec![reference; 64];
    other
}

/// Both in one: the inputs and outputs of the second are added to the first.
fn merge(transaction: &mut Transaction, other: &Spending) {
    let other = other.transaction();
    let is_new = |reference: &TxRef| transaction.inputs.iter().all(|input| input.reference != *reference);
    let inputs: Vec<_> = other.inputs.into_iter().filter(|input| is_new(&input.reference)).collect();
    transaction.inputs.extend(inputs);
    transaction.outputs.extend(other.outputs);
}

fn beside(group: &mut Group, name: &str, spending: &Spending, own: TxRef) {
    let second = other(spending, own, 0x56);
    group.permitted(name.to_owned(), spending, |tx| merge(tx, &second));

    let twin = Spending { own, ..spending.clone() };
    let mut transaction = spending.transaction();
    merge(&mut transaction, &twin);
    // Continuations of twins are copies of each other, too: more than one rule.
    group.add(format!("{name}, under one reference"), spending, transaction, super::Shows::Cell);

    let hashed = |attached: &mut Attached| {
        if let Attached::Escrow(datum) = attached.clone() {
            *attached = Attached::HashedEscrow(datum);
        }
    };
    group.forbidden(Broken::HashedAlone, format!("{name}, by hash"), spending, |tx| {
        merge(tx, &second);
        tx.inputs
            .iter_mut()
            .filter(|input| input.reference == own)
            .for_each(|input| hashed(&mut input.output.attached));
    });
}

/// Two neighbours under one reference, which is not the escrow's own.
fn three(group: &mut Group, name: &str, spending: &Spending) {
    let neighbours = NEIGHBOURS.map(|own| other(spending, own, 0x56));
    let mut transaction = spending.transaction();
    neighbours.iter().for_each(|neighbour| merge(&mut transaction, neighbour));
    group.add(format!("{name}, two others under one reference"), spending, transaction, super::Shows::Cell);

    let [first, mut second] = neighbours;
    second.datum.reference_signature = vec![0x57; 64];
    group.permitted(format!("{name}, two others"), spending, |tx| {
        merge(tx, &first);
        merge(tx, &second);
    });
}

/// New escrows among the outputs.
fn locks(group: &mut Group, name: &str, spending: &Spending) {
    let lock = |reference: Vec<u8>| {
        let mut datum = escrow(State::FundsLocked);
        datum.reference_signature = reference;
        let attached = Attached::Escrow(Box::new(datum));
        Output { address: AT_SCRIPT, value: Value::lovelace(LOCKED), attached, has_script: false }
    };
    group.permitted(format!("{name} beside a new escrow"), spending, |tx| tx.outputs.push(lock(vec![0x57; 64])));
    group.forbidden(Broken::ReferenceIsLong, format!("{name} beside one with a short reference"), spending, |tx| {
        tx.outputs.push(lock(vec![0x57; 15]));
    });
    group.forbidden(Broken::OutputsDiffer, format!("{name} beside two new twins"), spending, |tx| {
        tx.outputs.extend([lock(vec![0x57; 64]), lock(vec![0x57; 64])]);
    });
    group.forbidden(Broken::OutputHasNoScript, format!("{name} beside one with a script"), spending, |tx| {
        tx.outputs.push(Output { has_script: true, ..lock(vec![0x57; 64]) });
    });
    let goes_on = spending.transaction().outputs.iter().any(|output| output.address == AT_SCRIPT);
    let rule = if goes_on { Broken::OutputsDiffer } else { Broken::Ends };
    group.forbidden(rule, format!("{name} beside a new escrow under its reference"), spending, |tx| {
        tx.outputs.push(lock(spending.datum.reference_signature.clone()));
    });
}

/// The theft that tags and references are there against.
fn one_output_for_two(group: &mut Group) {
    for (action, state) in PAIRS {
        let mut spending = Spending::new(*action, *state);
        let payout = crate::escrow::matrix::honest::key_address(crate::escrow::matrix::honest::STRANGER);
        spending.datum.buyer_return_address = Some(payout);
        spending.datum.seller_return_address =
            Some(crate::escrow::matrix::honest::key_address(crate::escrow::matrix::honest::SELLER));
        let [_, own] = NEIGHBOURS;
        let second = other(&spending, own, 0x56);
        let mut transaction = spending.transaction();
        let outputs = transaction.outputs.clone();
        merge(&mut transaction, &second);
        transaction.outputs = outputs;
        let name = format!("{}, one output for two", named(*action, *state));
        group.add(name, &spending, transaction, super::Shows::Cell);
    }
}
