//! Cases of the datum with which an escrow continues: every field changed alone, for every action.

use cardano::{Lovelace, ScriptHash};
use surety_escrow::{
    Credential, Datum, PlutusAddress, State,
    rules::{Effect, Party, ResultChange, Rule},
};

use super::{
    super::{scene::STRANGER, transaction::key_address},
    Broken, MatrixCases, Spending, continuing,
};

/// A change of one field of a datum.
type FieldChange = fn(&mut Datum);

/// Changes of fields that every action must leave as they are.
const FIXED: [(&str, FieldChange); 16] = [
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
    ("pay_by_time", |datum| datum.deadlines.pay_by += 1),
    ("submit_result_time", |datum| datum.deadlines.submit_result += 1),
    ("unlock_time", |datum| datum.deadlines.unlock += 1),
    ("external_dispute_unlock_time", |datum| datum.deadlines.external_dispute_unlock += 1),
];

pub(super) fn cases(cases: &mut MatrixCases) {
    for (name, spending, rule) in continuing() {
        let mut forbidden = |text: String, change: &dyn Fn(&mut Datum)| {
            let name = format!("{name} {text}");
            cases.forbidden(Broken::TermsFollow, name, &spending, |tx| tx.next_datum(change));
        };
        for (field, change) in FIXED {
            forbidden(format!("changes {field}"), &change);
        }
        let Effect::Continue { to, result } = rule.effect else { unreachable!() };
        for other in State::ALL.into_iter().filter(|other| *other != to) {
            forbidden(format!("leads to {}", other.name()), &|datum| datum.state = other);
        }
        cases.forbidden(Broken::Continues, format!("{name} changes reference_signature"), &spending, |tx| {
            tx.next_datum(|datum| datum.reference_signature.push(0));
        });
        let stays_empty = result == ResultChange::Keep && !spending.datum.has_result();
        for (permitted, left, text) in [
            (result == ResultChange::Set, vec![0xbb], "another result, of one byte"),
            (stays_empty || result == ResultChange::Clear, vec![], "no result"),
        ] {
            let rule = (!permitted).then_some(Broken::TermsFollow);
            cases.decided(rule, format!("{name} leaves {text}"), &spending, |tx| {
                tx.next_datum(|datum| datum.result_hash = left);
            });
        }
        cooldowns(cases, rule, &name, &spending);
        return_addresses(cases, &name, &spending);
    }
}

fn cooldowns(cases: &mut MatrixCases, rule: &Rule, name: &str, spending: &Spending) {
    let seller_acts = rule.by == Party::Seller;
    let own = |datum: &mut Datum, by: i64| {
        let cooldown = if seller_acts { &mut datum.seller_cooldown } else { &mut datum.buyer_cooldown };
        *cooldown = cooldown.saturating_add_signed(by);
    };
    cases.permitted(format!("{name} with the shortest cooldown"), spending, |_| ());
    for (rule, by, text) in [(None, 1, "a longer cooldown"), (Some(Broken::TermsFollow), -1, "a cooldown 1 ms short")] {
        let name = format!("{name} with {text}");
        cases.decided(rule, name, spending, |tx| tx.next_datum(|datum| own(datum, by)));
    }
    cases.forbidden(Broken::TermsFollow, format!("{name} with a cooldown for the other"), spending, |tx| {
        tx.next_datum(|datum| if seller_acts { datum.buyer_cooldown = 1 } else { datum.seller_cooldown = 1 });
    });
}

/// Adds cases in which a return address or a stake credential differs in the datum with which the escrow continues.
fn return_addresses(cases: &mut MatrixCases, name: &str, spending: &Spending) {
    let stake = Some(Credential::Script(ScriptHash::new([7; 28])));
    let staked = PlutusAddress { stake, ..key_address(STRANGER) };
    let mut bound = spending.clone();
    bound.datum.buyer_return_address = Some(staked);
    bound.datum.seller_return_address = Some(staked);
    cases.permitted(format!("{name} with return addresses"), &bound, |_| ());
    cases.forbidden(Broken::TermsFollow, format!("{name} loses buyer_return_address"), &bound, |tx| {
        tx.next_datum(|datum| datum.buyer_return_address = None);
    });
    cases.forbidden(Broken::TermsFollow, format!("{name} loses seller_return_address's stake"), &bound, |tx| {
        tx.next_datum(|datum| datum.seller_return_address = Some(key_address(STRANGER)));
    });
}
