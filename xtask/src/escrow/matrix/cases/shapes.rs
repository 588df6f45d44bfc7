//! What is spent and what is handed over: of the right type, and within its bounds.

use cardano::Lovelace;
use escrow::{Action, Redeemer};
use pallas_codec::minicbor;
use pallas_primitives::{BigInt, Constr, MaybeIndefArray, PlutusData};

use super::{Case, Group, honest_pairs, named};
use crate::escrow::matrix::{
    honest::{LOCKED, OWN, Spending},
    rules::Broken,
    transaction::{Attached, Handed, Transaction},
};

pub(super) fn cases() -> Vec<Case> {
    let mut group = Group::new("shapes");
    for (action, state) in honest_pairs() {
        let spending = Spending::new(action, state);
        let name = named(action, state);
        references(&mut group, &name, &spending);
        datums(&mut group, &name, &spending);
        redeemers(&mut group, &name, &spending);
        if matches!(action, Action::SubmitResult | Action::Withdraw) {
            collateral(&mut group, &name, &spending);
        }
    }
    group.cases
}

fn references(group: &mut Group, name: &str, spending: &Spending) {
    let with = |bytes: usize| {
        let mut spending = spending.clone();
        spending.datum.reference_signature = vec![0x55; bytes];
        spending
    };
    group.permitted(format!("{name} under a reference of 16 bytes"), &with(16), |_| ());
    group.forbidden(Broken::ReferenceIsLong, format!("{name} under a reference of 15 bytes"), &with(15), |_| ());
}

fn collateral(group: &mut Group, name: &str, spending: &Spending) {
    let with = |collateral: u64| {
        let mut spending = spending.clone();
        spending.datum.collateral_return = Lovelace::new(collateral).unwrap_or_default();
        spending
    };
    group.permitted(format!("{name} with everything as collateral"), &with(LOCKED), |_| ());
    group.permitted(format!("{name} without collateral"), &with(0), |_| ());
    group.forbidden(
        Broken::CollateralLocked,
        format!("{name} with more collateral than is locked"),
        &with(LOCKED + 1),
        |_| (),
    );
}

/// Data that differs from the escrow's in one place and is no escrow.
fn datums(group: &mut Group, name: &str, spending: &Spending) {
    let PlutusData::Constr(datum) = spending.datum.to_data() else { return };
    let fields: Vec<_> = datum.fields.iter().cloned().collect();
    let with_field = |index: usize, field: PlutusData| {
        let mut fields = fields.clone();
        if let Some(place) = fields.get_mut(index) {
            *place = field;
        }
        constr(0, fields)
    };
    let short = fields.iter().take(18).cloned().collect();
    let long = fields.iter().cloned().chain([integer(0)]).collect();
    for (text, data) in [
        ("of another constructor", constr(1, fields.clone())),
        ("with a field missing", constr(0, short)),
        ("with a field too many", constr(0, long)),
        ("with a number for reference_key", with_field(4, integer(1))),
        ("with negative collateral", with_field(9, integer(-1))),
        ("with bytes for collateral", with_field(9, bytes())),
        ("with a number for result_hash", with_field(11, integer(1))),
        ("with bytes for pay_by_time", with_field(12, bytes())),
        ("with an unknown state", with_field(18, constr(6, vec![]))),
        ("with a state that carries something", with_field(18, constr(0, vec![integer(0)]))),
        ("with a number for the buyer", with_field(0, integer(1))),
        ("with an unknown credential", with_field(0, constr(0, vec![constr(2, vec![bytes()]), constr(1, vec![])]))),
        ("with a third kind of option", with_field(1, constr(2, vec![]))),
        ("that is a number", integer(0)),
    ] {
        spent(group, name, spending, text, Attached::Other(minicbor::to_vec(data).unwrap_or_default()));
    }
    spent(group, name, spending, "that is missing", Attached::Nothing);
    let hashed = Attached::HashedEscrow(Box::new(spending.datum.clone()));
    group.permitted(format!("{name} of an escrow by hash, alone"), spending, |tx| spends(tx, hashed));
}

fn spent(group: &mut Group, name: &str, spending: &Spending, text: &str, attached: Attached) {
    group.forbidden(Broken::SpentIsEscrow, format!("{name} of a datum {text}"), spending, |tx| spends(tx, attached));
}

fn spends(transaction: &mut Transaction, attached: Attached) {
    if let Some(input) = transaction.inputs.iter_mut().find(|input| input.reference == OWN) {
        input.output.attached = attached;
    }
}

/// Redeemers beside those of the type.
fn redeemers(group: &mut Group, name: &str, spending: &Spending) {
    let hands = |tx: &mut Transaction, data: PlutusData| {
        if let Some(input) = tx.inputs.iter_mut().find(|input| input.reference == OWN) {
            input.handed = Some(Handed::Other(minicbor::to_vec(data).unwrap_or_default()));
        }
    };
    let own = match Redeemer::plain(spending.action) {
        Some(redeemer) => redeemer.to_data(),
        None => spending.settlement(&[]).to_data(),
    };
    let mut longer = own;
    if let PlutusData::Constr(constr) = &mut longer {
        let fields = constr.fields.iter().cloned().chain([integer(0)]).collect();
        constr.fields = MaybeIndefArray::Indef(fields);
    }
    for (text, data) in [
        ("an eighth constructor", constr(7, vec![])),
        ("a number", integer(5)),
        ("a field too many", longer),
        ("no shares", constr(4, vec![])),
    ] {
        group.forbidden(Broken::RedeemerIsAction, format!("{name} handed {text}"), spending, |tx| hands(tx, data));
    }
}

fn constr(index: u64, fields: Vec<PlutusData>) -> PlutusData {
    let tag = if index < 7 { 121u64.saturating_add(index) } else { 1280u64.saturating_add(index.saturating_sub(7)) };
    let fields = if fields.is_empty() { MaybeIndefArray::Def(fields) } else { MaybeIndefArray::Indef(fields) };
    PlutusData::Constr(Constr { tag, any_constructor: None, fields })
}

fn integer(number: i64) -> PlutusData {
    PlutusData::BigInt(BigInt::Int(number.into()))
}

fn bytes() -> PlutusData {
    PlutusData::BoundedBytes(vec![0x11; 28].into())
}
