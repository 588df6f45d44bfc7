//! Cases of several escrows in one transaction: the contract tells them apart, and no payout counts for two of them.

use cardano::{TxHash, TxRef};
use surety_escrow::{Action, State};

use super::{
    super::{
        scene::{AT_SCRIPT, LOCKED, SELLER, STRANGER},
        transaction::{DatumOption, TxInfo, TxOut, key_address, lovelace},
    },
    Broken, MatrixCases, Spending, escrow, named,
};

/// References of two other escrows: one sorts before the escrow under test, the other after it.
const NEIGHBOURS: [TxRef; 2] =
    [TxRef { tx: TxHash::new([0xcc; 32]), index: 0 }, TxRef { tx: TxHash::new([0xce; 32]), index: 7 }];

/// Actions that two escrows can take in the same transaction, because signers and times allow it, with the state of the
/// escrows.
const PAIRS: [(Action, State); 7] = [
    (Action::SubmitResult, State::FundsLocked),
    (Action::SetRefundRequested, State::ResultSubmitted),
    (Action::AuthorizeWithdrawal, State::Disputed),
    (Action::AuthorizeRefund, State::Disputed),
    (Action::Withdraw, State::WithdrawAuthorized),
    (Action::WithdrawRefund, State::RefundAuthorized),
    (Action::WithdrawDisputed, State::Disputed),
];

pub(super) fn cases(cases: &mut MatrixCases) {
    for (action, state) in PAIRS {
        let spending = Spending::new(action, state);
        let name = named(action, state);
        for (own, place) in NEIGHBOURS.into_iter().zip(["before", "after"]) {
            beside(cases, &format!("{name}, another {place} it"), &spending, own);
        }
        three(cases, &name, &spending);
        locks(cases, &name, &spending);
    }
    for (action, state) in PAIRS {
        one_output_for_two(cases, &named(action, state), Spending::new(action, state));
    }
}

fn other(spending: &Spending, own: TxRef, reference: u8) -> Spending {
    let mut other = Spending { own, ..spending.clone() };
    other.datum.reference_signature = vec![reference; 64];
    other
}

/// Adds the inputs and outputs of a second action to the transaction.
fn merge(transaction: &mut TxInfo, other: &Spending) {
    let other = other.transaction();
    let known: Vec<TxRef> = transaction.inputs.iter().map(|input| input.reference).collect();
    transaction.inputs.extend(other.inputs.into_iter().filter(|input| !known.contains(&input.reference)));
    transaction.outputs.extend(other.outputs);
}

fn beside(cases: &mut MatrixCases, name: &str, spending: &Spending, own: TxRef) {
    let second = other(spending, own, 0x56);
    cases.permitted(name, spending, |tx| merge(tx, &second));
    // The continuations of twins are copies of each other too, which breaks more than one rule.
    let twin = Spending { own, ..spending.clone() };
    cases.cell(format!("{name}, under one reference"), spending, |tx| merge(tx, &twin));
    cases.forbidden(Broken::HashedAlone, format!("{name}, by hash"), spending, |tx| {
        merge(tx, &second);
        let added = tx.inputs.iter_mut().filter(|input| input.reference == own);
        added.for_each(|input| input.output.hash_datum());
    });
}

/// Adds cases with two other escrows in the transaction: with the same reference signature as each other, and with
/// different ones.
fn three(cases: &mut MatrixCases, name: &str, spending: &Spending) {
    let [first, twin] = NEIGHBOURS.map(|own| other(spending, own, 0x56));
    let second = other(spending, twin.own, 0x57);
    cases.cell(format!("{name}, two others under one reference"), spending, |tx| {
        [&first, &twin].into_iter().for_each(|neighbour| merge(tx, neighbour));
    });
    cases.permitted(format!("{name}, two others"), spending, |tx| {
        [&first, &second].into_iter().for_each(|neighbour| merge(tx, neighbour));
    });
}

/// Adds cases in which the transaction also creates new escrows.
fn locks(cases: &mut MatrixCases, name: &str, spending: &Spending) {
    let lock = |reference_signature: Vec<u8>| {
        let datum = surety_escrow::Datum { reference_signature, ..escrow(State::FundsLocked) };
        TxOut::new(AT_SCRIPT, lovelace(LOCKED), DatumOption::Inline(datum.to_cbor()))
    };
    let new = lock(vec![0x57; 64]);
    let goes_on = spending.transaction().outputs.iter().any(|output| output.address == AT_SCRIPT);
    let own_reference = Some(if goes_on { Broken::OutputsDiffer } else { Broken::Ends });
    let with_script = TxOut { has_script: true, ..new.clone() };
    for (rule, text, locks) in [
        (None, "a new escrow", vec![new.clone()]),
        (Some(Broken::ReferenceIsLong), "one with a short reference", vec![lock(vec![0x57; 15])]),
        (Some(Broken::OutputsDiffer), "two new twins", vec![new.clone(), new]),
        (Some(Broken::OutputHasNoScript), "one with a script", vec![with_script]),
        (own_reference, "a new escrow under its reference", vec![lock(spending.datum.reference_signature.clone())]),
    ] {
        cases.decided(rule, format!("{name} beside {text}"), spending, |tx| tx.outputs.extend(locks));
    }
}

/// Adds a case of the theft that tags and reference signatures prevent: two escrows end, and one output pays for both.
fn one_output_for_two(cases: &mut MatrixCases, name: &str, mut spending: Spending) {
    spending.datum.buyer_return_address = Some(key_address(STRANGER));
    spending.datum.seller_return_address = Some(key_address(SELLER));
    let second = other(&spending, NEIGHBOURS[1], 0x56);
    cases.cell(format!("{name}, one output for two"), &spending, |tx| {
        let outputs = tx.outputs.clone();
        merge(tx, &second);
        tx.outputs = outputs;
    });
}
