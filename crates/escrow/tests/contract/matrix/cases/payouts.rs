//! Cases of the payouts when an escrow ends without a dispute, and of the outputs that count as payouts.

use cardano::{KeyHash, Lovelace, ScriptHash, TxHash, TxRef};
use surety_escrow::{Action, Credential, PlutusAddress, State};

use super::{
    super::{
        scene::{BUYER, COLLATERAL, LOCKED, OWN, SELLER, STRANGER},
        transaction::{DatumOption, TxInfo, TxOut, add, credits, key_address, lovelace, tag},
    },
    Broken, MatrixCases, Spending, named,
};

/// Return addresses with a stake credential. A payout to the same key without it does not count.
const BUYER_RETURN: PlutusAddress = staked([0xb0; 28]);
const SELLER_RETURN: PlutusAddress = staked([0xb1; 28]);

const fn staked(key: [u8; 28]) -> PlutusAddress {
    let stake = Some(Credential::Key(KeyHash::new([0xb2; 28])));
    PlutusAddress { payment: Credential::Key(KeyHash::new(key)), stake }
}

pub(super) fn cases(cases: &mut MatrixCases) {
    for state in [State::ResultSubmitted, State::WithdrawAuthorized] {
        withdrawal(cases, &named(Action::Withdraw, state), &Spending::new(Action::Withdraw, state));
    }
    for state in [State::FundsLocked, State::RefundRequested, State::RefundAuthorized] {
        refund(cases, &named(Action::WithdrawRefund, state), &Spending::new(Action::WithdrawRefund, state));
    }
}

fn withdrawal(cases: &mut MatrixCases, name: &str, spending: &Spending) {
    let collateral = Broken::CollateralReturned;
    payment(cases, &format!("{name}: collateral"), spending, key_address(BUYER), collateral);
    cases.permitted(format!("{name}: the rest goes anywhere"), spending, |tx| {
        tx.outputs.retain(|output| output.address != key_address(SELLER));
    });
    let mut free = spending.clone();
    free.datum.collateral_return = Lovelace::ZERO;
    cases.permitted(format!("{name}: no collateral, no output for the buyer"), &free, |tx| {
        tx.outputs.retain(|output| output.address != key_address(BUYER));
    });

    let mut bound = spending.clone();
    bound.datum.buyer_return_address = Some(BUYER_RETURN);
    bound.datum.seller_return_address = Some(SELLER_RETURN);
    payment(cases, &format!("{name}: collateral to the return address"), &bound, BUYER_RETURN, collateral);
    payment(cases, &format!("{name}: rest to the return address"), &bound, SELLER_RETURN, Broken::SellerPaid);
    instead(cases, &format!("{name}: collateral"), &bound, BUYER_RETURN, BUYER, collateral);
    instead(cases, &format!("{name}: rest"), &bound, SELLER_RETURN, SELLER, Broken::SellerPaid);
    tokens(cases, &format!("{name}: rest"), &bound, SELLER_RETURN, Broken::SellerPaid);
    bound.datum.collateral_return = Lovelace::new(LOCKED).unwrap();
    cases.permitted(format!("{name}: nothing is left for the seller"), &bound, |_| ());

    // Both shares at one address: one output may count for both, as in the published validator.
    let mut shared = spending.clone();
    shared.datum.buyer_return_address = Some(SELLER_RETURN);
    shared.datum.seller_return_address = Some(SELLER_RETURN);
    cases.permitted(format!("{name}: one address for both"), &shared, |tx| {
        tx.outputs.retain(|output| output.value.lovelace.get() != COLLATERAL);
    });
}

fn refund(cases: &mut MatrixCases, name: &str, spending: &Spending) {
    cases.permitted(format!("{name}: goes anywhere"), spending, |tx| {
        tx.outputs.retain(|output| output.address == key_address(STRANGER));
    });
    let mut bound = spending.clone();
    bound.datum.buyer_return_address = Some(BUYER_RETURN);
    payment(cases, &format!("{name}: to the return address"), &bound, BUYER_RETURN, Broken::BuyerPaid);
    instead(cases, &format!("{name}: refund"), &bound, BUYER_RETURN, BUYER, Broken::BuyerPaid);
    tokens(cases, &format!("{name}: refund"), &bound, BUYER_RETURN, Broken::BuyerPaid);
    bound.datum.seller_return_address = Some(SELLER_RETURN);
    cases.permitted(format!("{name}: the seller's return address gets nothing"), &bound, |_| ());
}

/// Adds cases for the ways in which a payout to the address `to` counts, or does not count and so breaks `rule`.
fn payment(cases: &mut MatrixCases, name: &str, spending: &Spending, to: PlutusAddress, rule: Broken) {
    cases.permitted(format!("{name}, exactly"), spending, |_| ());
    for (rule, by, text) in [(None, 1, "1 lovelace more"), (Some(rule), -1, "1 lovelace short")] {
        cases.decided(rule, format!("{name}, {text}"), spending, |tx| {
            tx.each_to(to, |output| add(&mut output.value, by))
        });
    }
    cases.permitted(format!("{name}, in two outputs"), spending, |tx| halve(tx, to));
    cases.forbidden(rule, format!("{name}, in two outputs but one untagged"), spending, |tx| {
        halve(tx, to);
        tx.outputs.last_mut().unwrap().datum = DatumOption::None;
    });
    cases.forbidden(rule, format!("{name}, not at all"), spending, |tx| {
        tx.outputs.retain(|output| output.address != to);
    });
    for (text, datum) in [
        ("untagged", DatumOption::None),
        ("tagged with another output of the transaction", tag(TxRef { index: 2, ..OWN })),
        ("tagged with another transaction", tag(TxRef { tx: TxHash::new([0xce; 32]), ..OWN })),
        ("with another datum", DatumOption::Inline(vec![0x05])),
    ] {
        cases.forbidden(rule, format!("{name}, {text}"), spending, |tx| {
            tx.each_to(to, |output| output.datum = datum.clone());
        });
    }
    let restaked = PlutusAddress { stake: Some(Credential::Script(ScriptHash::new([9; 28]))), ..to };
    cases.forbidden(rule, format!("{name}, under another stake credential"), spending, |tx| {
        tx.each_to(to, |output| output.address = restaked);
    });
}

fn instead(cases: &mut MatrixCases, name: &str, spending: &Spending, due: PlutusAddress, party: KeyHash, rule: Broken) {
    cases.forbidden(rule, format!("{name} to the party instead of its return address"), spending, |tx| {
        tx.each_to(due, |output| output.address = key_address(party));
    });
}

/// Adds cases of payouts from an escrow that also holds a native token.
fn tokens(cases: &mut MatrixCases, name: &str, spending: &Spending, to: PlutusAddress, rule: Broken) {
    let mut rich = spending.clone();
    rich.value.assets.insert(credits(0x70), 5);
    let mut paid = |rule, text: &str, change: &dyn Fn(&mut TxOut)| {
        cases.decided(rule, format!("{name} {text}"), &rich, |tx| tx.each_to(to, change));
    };
    let with = |policy, quantity| {
        move |output: &mut TxOut| {
            output.value.assets.insert(credits(policy), quantity);
        }
    };
    paid(None, "with tokens", &|_| ());
    paid(Some(rule), "without the tokens", &|output| output.value.assets.clear());
    paid(Some(rule), "a token short", &with(0x70, 4));
    paid(None, "with a foreign token too", &with(0x71, 1));
}

fn halve(transaction: &mut TxInfo, to: PlutusAddress) {
    let output = transaction.outputs.iter_mut().find(|output| output.address == to).unwrap();
    let half = output.value.lovelace.get() / 2;
    output.value.lovelace = Lovelace::new(output.value.lovelace.get() - half).unwrap();
    let other = TxOut { value: lovelace(half), ..output.clone() };
    transaction.outputs.push(other);
}
