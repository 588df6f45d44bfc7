//! What a continuation may say: every field changed alone, in every transition.

use cardano::{Lovelace, slots::Millis};
use escrow::{
    Credential, Datum, PlutusAddress,
    datum::State,
    rules::{Effect, Party, ResultChange, Rule},
};

use super::{Case, Group, continuing_pairs, named};
use crate::escrow::matrix::{
    honest::{STRANGER, Spending, key_address},
    rules::Broken,
    transaction::{Attached, Transaction},
};

/// A change of one field that no action makes.
type Change = fn(&mut Datum);

const FIXED: &[(&str, Change)] = &[
    ("buyer", |datum| datum.buyer = key_address(STRANGER)),
    ("buyer's stake", |datum| datum.buyer.stake = Some(Credential::Key(STRANGER))),
    ("buyer_return_address", |datum| datum.buyer_return_address = Some(key_address(STRANGER))),
    ("seller", |datum| datum.seller = key_address(STRANGER)),
    ("seller's stake", |datum| datum.seller.stake = Some(Credential::Key(STRANGER))),
    ("seller_return_address", |datum| datum.seller_return_address = Some(key_address(STRANGER))),
    ("reference_key", |datum| datum.reference_key.push(0)),
    ("seller_nonce", |datum| datum.seller_nonce.push(0)),
    ("buyer_nonce", |datum| datum.buyer_nonce.clear()),
    ("agent_identifier", |datum| datum.agent_identifier.clear()),
    ("collateral_return_lovelace", |datum| datum.collateral_return = Lovelace::ZERO),
    ("input_hash", |datum| datum.input_hash = vec![0x89; 32]),
    ("pay_by_time", |datum| later(&mut datum.deadlines.pay_by)),
    ("submit_result_time", |datum| later(&mut datum.deadlines.submit_result)),
    ("unlock_time", |datum| later(&mut datum.deadlines.unlock)),
    ("external_dispute_unlock_time", |datum| later(&mut datum.deadlines.external_dispute_unlock)),
];

fn later(time: &mut Millis) {
    *time = time.saturating_add(1);
}

pub(super) fn cases() -> Vec<Case> {
    let mut group = Group::new("terms");
    for (action, state) in continuing_pairs() {
        let spending = Spending::new(action, state);
        let Some(rule) = Rule::find(action, &spending.datum) else { continue };
        let name = named(action, state);
        for (field, change) in FIXED {
            group.forbidden(Broken::TermsFollow, format!("{name} changes {field}"), &spending, |tx| {
                continuation(tx, *change);
            });
        }
        group.forbidden(Broken::Continues, format!("{name} changes reference_signature"), &spending, |tx| {
            continuation(tx, |datum| datum.reference_signature.push(0));
        });
        states(&mut group, rule, &name, &spending);
        results(&mut group, rule, &name, &spending);
        cooldowns(&mut group, rule, &name, &spending);
        return_addresses(&mut group, &name, &spending);
    }
    group.cases
}

fn states(group: &mut Group, rule: &Rule, name: &str, spending: &Spending) {
    let Effect::Continue { to, .. } = rule.effect else { return };
    for other in State::ALL.into_iter().filter(|other| *other != to) {
        let name = format!("{name} leads to {}", other.name());
        group.forbidden(Broken::TermsFollow, name, spending, |tx| continuation(tx, |datum| datum.state = other));
    }
}

fn results(group: &mut Group, rule: &Rule, name: &str, spending: &Spending) {
    let Effect::Continue { result, .. } = rule.effect else { return };
    let mut set = |permitted: bool, result: Vec<u8>, text: &str| {
        let name = format!("{name} leaves {text}");
        let change = |tx: &mut Transaction| continuation(tx, |datum| datum.result_hash = result);
        if permitted {
            group.permitted(name, spending, change);
        } else {
            group.forbidden(Broken::TermsFollow, name, spending, change);
        }
    };
    set(result == ResultChange::Set, vec![0xbb], "another result, of one byte");
    let stays_empty = result == ResultChange::Keep && !spending.datum.has_result();
    set(stays_empty || result == ResultChange::Clear, vec![], "no result");
}

fn cooldowns(group: &mut Group, rule: &Rule, name: &str, spending: &Spending) {
    let seller_acts = rule.by == Party::Seller;
    let own = move |datum: &mut Datum, by: i64| {
        let cooldown = if seller_acts { &mut datum.seller_cooldown } else { &mut datum.buyer_cooldown };
        *cooldown = cooldown.saturating_add_signed(by);
    };
    group.permitted(format!("{name} with the shortest cooldown"), spending, |_| ());
    group.permitted(format!("{name} with a longer cooldown"), spending, |tx| continuation(tx, |datum| own(datum, 1)));
    group.forbidden(Broken::TermsFollow, format!("{name} with a cooldown 1 ms short"), spending, |tx| {
        continuation(tx, |datum| own(datum, -1));
    });
    group.forbidden(Broken::TermsFollow, format!("{name} with a cooldown for the other"), spending, |tx| {
        continuation(tx, |datum| if seller_acts { datum.buyer_cooldown = 1 } else { datum.seller_cooldown = 1 });
    });
}

/// Terms with return addresses and stake credentials go on like others, and cannot lose them.
fn return_addresses(group: &mut Group, name: &str, spending: &Spending) {
    let staked =
        PlutusAddress { stake: Some(Credential::Script(cardano::ScriptHash::new([7; 28]))), ..key_address(STRANGER) };
    let mut bound = spending.clone();
    bound.datum.buyer_return_address = Some(staked);
    bound.datum.seller_return_address = Some(staked);
    group.permitted(format!("{name} with return addresses"), &bound, |_| ());
    group.forbidden(Broken::TermsFollow, format!("{name} loses buyer_return_address"), &bound, |tx| {
        continuation(tx, |datum| datum.buyer_return_address = None);
    });
    group.forbidden(Broken::TermsFollow, format!("{name} loses seller_return_address's stake"), &bound, |tx| {
        continuation(tx, |datum| datum.seller_return_address = Some(key_address(STRANGER)));
    });
}

fn continuation(transaction: &mut Transaction, change: impl FnOnce(&mut Datum)) {
    let escrow = transaction.outputs.iter_mut().find_map(|output| match &mut output.attached {
        Attached::Escrow(datum) => Some(datum),
        _ => None,
    });
    if let Some(datum) = escrow {
        change(datum);
    }
}
