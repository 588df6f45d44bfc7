//! Who is paid when an escrow ends without a dispute, and what counts as paid.

use cardano::{ScriptHash, TxRef};
use escrow::{Action, Credential, PlutusAddress, datum::State};

use super::{Case, Group, named};
use crate::escrow::matrix::{
    honest::{BUYER, COLLATERAL, LOCKED, OWN, SELLER, STRANGER, Spending, key_address},
    rules::Broken,
    transaction::{Attached, Output, Transaction, Value},
};

/// Return addresses: with a stake credential, which is part of them.
const BUYER_RETURN: PlutusAddress = staked([0xb0; 28]);
const SELLER_RETURN: PlutusAddress = staked([0xb1; 28]);

const fn staked(key: [u8; 28]) -> PlutusAddress {
    let stake = Some(Credential::Key(cardano::KeyHash::new([0xb2; 28])));
    PlutusAddress { payment: Credential::Key(cardano::KeyHash::new(key)), stake }
}

pub(super) fn cases() -> Vec<Case> {
    let mut group = Group::new("payouts");
    for state in [State::ResultSubmitted, State::WithdrawAuthorized] {
        let name = named(Action::Withdraw, state);
        let spending = Spending::new(Action::Withdraw, state);
        payment(&mut group, &format!("{name}: collateral"), &spending, key_address(BUYER), Broken::CollateralReturned);
        withdrawal(&mut group, &name, &spending);
    }
    for state in [State::FundsLocked, State::RefundRequested, State::RefundAuthorized] {
        let name = named(Action::WithdrawRefund, state);
        refund(&mut group, &name, &Spending::new(Action::WithdrawRefund, state));
    }
    group.cases
}

fn withdrawal(group: &mut Group, name: &str, spending: &Spending) {
    group.permitted(format!("{name}: the rest goes anywhere"), spending, |tx| {
        tx.outputs.retain(|output| output.address != key_address(SELLER));
    });
    let mut free = spending.clone();
    free.datum.collateral_return = cardano::Lovelace::ZERO;
    group.permitted(format!("{name}: no collateral, no output for the buyer"), &free, |tx| {
        tx.outputs.retain(|output| output.address != key_address(BUYER));
    });

    let mut bound = spending.clone();
    bound.datum.buyer_return_address = Some(BUYER_RETURN);
    bound.datum.seller_return_address = Some(SELLER_RETURN);
    payment(
        group,
        &format!("{name}: collateral to the return address"),
        &bound,
        BUYER_RETURN,
        Broken::CollateralReturned,
    );
    payment(group, &format!("{name}: rest to the return address"), &bound, SELLER_RETURN, Broken::SellerPaid);
    instead(
        group,
        &format!("{name}: collateral"),
        &bound,
        BUYER_RETURN,
        key_address(BUYER),
        Broken::CollateralReturned,
    );
    instead(group, &format!("{name}: rest"), &bound, SELLER_RETURN, key_address(SELLER), Broken::SellerPaid);
    tokens(group, &format!("{name}: rest"), &bound, SELLER_RETURN, Broken::SellerPaid);

    let mut all_collateral = bound;
    all_collateral.datum.collateral_return = cardano::Lovelace::new(LOCKED).unwrap_or_default();
    group.permitted(format!("{name}: nothing is left for the seller"), &all_collateral, |_| ());

    // Both shares to one address: one output may count for both, as in the published validator.
    let mut shared = spending.clone();
    shared.datum.buyer_return_address = Some(SELLER_RETURN);
    shared.datum.seller_return_address = Some(SELLER_RETURN);
    group.permitted(format!("{name}: one address for both"), &shared, |tx| {
        tx.outputs.retain(|output| output.value.lovelace != COLLATERAL);
    });
}

fn refund(group: &mut Group, name: &str, spending: &Spending) {
    group.permitted(format!("{name}: goes anywhere"), spending, |tx| {
        tx.outputs.retain(|output| output.address == key_address(STRANGER));
    });
    let mut bound = spending.clone();
    bound.datum.buyer_return_address = Some(BUYER_RETURN);
    payment(group, &format!("{name}: to the return address"), &bound, BUYER_RETURN, Broken::BuyerPaid);
    instead(group, &format!("{name}: refund"), &bound, BUYER_RETURN, key_address(BUYER), Broken::BuyerPaid);
    tokens(group, &format!("{name}: refund"), &bound, BUYER_RETURN, Broken::BuyerPaid);
    let mut other = bound.clone();
    other.datum.seller_return_address = Some(SELLER_RETURN);
    group.permitted(format!("{name}: the seller's return address gets nothing"), &other, |_| ());
}

/// One payment, and all the ways in which it does not count.
fn payment(group: &mut Group, name: &str, spending: &Spending, to: PlutusAddress, rule: Broken) {
    group.permitted(format!("{name}, exactly"), spending, |_| ());
    group.permitted(format!("{name}, 1 lovelace more"), spending, |tx| {
        each(tx, to, |output| output.value.lovelace = output.value.lovelace.saturating_add(1));
    });
    group.forbidden(rule, format!("{name}, 1 lovelace short"), spending, |tx| {
        each(tx, to, |output| output.value.lovelace = output.value.lovelace.saturating_sub(1));
    });
    group.permitted(format!("{name}, in two outputs"), spending, |tx| halve(tx, to));
    group.forbidden(rule, format!("{name}, in two outputs but one untagged"), spending, |tx| {
        halve(tx, to);
        if let Some(last) = tx.outputs.last_mut() {
            last.attached = Attached::Nothing;
        }
    });
    group.forbidden(rule, format!("{name}, not at all"), spending, |tx| {
        tx.outputs.retain(|output| output.address != to);
    });
    let wrong = TxRef { index: 2, ..OWN };
    let elsewhere = TxRef { tx: cardano::TxHash::new([0xce; 32]), ..OWN };
    for (text, attached) in [
        ("untagged", Attached::Nothing),
        ("tagged with another output of the transaction", Attached::Tag(wrong)),
        ("tagged with another transaction", Attached::Tag(elsewhere)),
        ("with another datum", Attached::Other(vec![0x05])),
    ] {
        group.forbidden(rule, format!("{name}, {text}"), spending, |tx| {
            each(tx, to, |output| output.attached = attached.clone());
        });
    }
    let restaked = PlutusAddress { stake: Some(Credential::Script(ScriptHash::new([9; 28]))), ..to };
    group.forbidden(rule, format!("{name}, under another stake credential"), spending, |tx| {
        each(tx, to, |output| output.address = restaked);
    });
}

fn instead(group: &mut Group, name: &str, spending: &Spending, due: PlutusAddress, to: PlutusAddress, rule: Broken) {
    group.forbidden(rule, format!("{name} to the party instead of its return address"), spending, |tx| {
        each(tx, due, |output| output.address = to);
    });
}

/// The same with a token in the escrow.
fn tokens(group: &mut Group, name: &str, spending: &Spending, to: PlutusAddress, rule: Broken) {
    let asset = (ScriptHash::new([0x70; 28]), b"credit".to_vec());
    let mut value = Value::lovelace(LOCKED);
    value.tokens.insert(asset.clone(), 5);
    let rich = Spending { value, ..spending.clone() };
    group.permitted(format!("{name} with tokens"), &rich, |_| ());
    group.forbidden(rule, format!("{name} without the tokens"), &rich, |tx| {
        each(tx, to, |output| output.value.tokens.clear());
    });
    group.forbidden(rule, format!("{name} a token short"), &rich, |tx| {
        each(tx, to, |output| {
            output.value.tokens.insert(asset.clone(), 4);
        });
    });
    group.permitted(format!("{name} with a foreign token too"), &rich, |tx| {
        each(tx, to, |output| {
            output.value.tokens.insert((ScriptHash::new([0x71; 28]), vec![]), 1);
        });
    });
}

fn each(transaction: &mut Transaction, to: PlutusAddress, change: impl Fn(&mut Output)) {
    transaction.outputs.iter_mut().filter(|output| output.address == to).for_each(change);
}

fn halve(transaction: &mut Transaction, to: PlutusAddress) {
    let Some(output) = transaction.outputs.iter_mut().find(|output| output.address == to) else { return };
    let half = output.value.lovelace / 2;
    output.value.lovelace = output.value.lovelace.saturating_sub(half);
    let other = Output { value: Value::lovelace(half), ..output.clone() };
    transaction.outputs.push(other);
}
