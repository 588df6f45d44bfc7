//! Cases of datums and redeemers that have the wrong type or are out of bounds.

use cardano::Lovelace;
use pallas_codec::minicbor;
use pallas_primitives::{BigInt, Constr, MaybeIndefArray, PlutusData};
use surety_escrow::{Action, Redeemer};

use super::{
    super::{
        scene::{BUYER, LOCKED},
        transaction::{DatumOption, TxOut, add, key_address},
    },
    Broken, MatrixCases, Spending, honest,
};

pub(super) fn cases(cases: &mut MatrixCases) {
    for (name, spending, rule) in honest() {
        for (bytes, broken) in [(16, None), (15, Some(Broken::ReferenceIsLong))] {
            let mut spending = spending.clone();
            spending.datum.reference_signature = vec![0x55; bytes];
            cases.decided(broken, format!("{name} under a reference of {bytes} bytes"), &spending, |_| ());
        }
        datums(cases, &name, &spending);
        redeemers(cases, &name, &spending);
        if matches!(rule.action, Action::SubmitResult | Action::Withdraw) {
            collateral(cases, &name, &spending);
        }
    }
}

fn collateral(cases: &mut MatrixCases, name: &str, spending: &Spending) {
    let with = |collateral: u64| {
        let mut spending = spending.clone();
        spending.datum.collateral_return = Lovelace::new(collateral).unwrap();
        spending
    };
    cases.permitted(format!("{name} with everything as collateral"), &with(LOCKED), |_| ());
    cases.permitted(format!("{name} without collateral"), &with(0), |_| ());
    let name = format!("{name} with more collateral than is locked");
    cases.forbidden(Broken::CollateralLocked, name, &with(LOCKED + 1), |tx| {
        tx.each_to(key_address(BUYER), |output| add(&mut output.value, 1));
    });
}

/// Adds cases with data that differs from a datum in one place and is therefore not a datum of the contract.
fn datums(cases: &mut MatrixCases, name: &str, spending: &Spending) {
    let PlutusData::Constr(datum) = spending.datum.to_data() else { unreachable!() };
    let fields = datum.fields.to_vec();
    let with_field = |index: usize, field: PlutusData| {
        let mut fields = fields.clone();
        fields[index] = field;
        constr(0, fields)
    };
    let unknown_credential = constr(0, vec![constr(2, vec![bytes()]), constr(1, vec![])]);
    for (text, data) in [
        ("of another constructor", constr(1, fields.clone())),
        ("with a field missing", constr(0, fields[..18].to_vec())),
        ("with a field too many", constr(0, [&fields[..], &[integer(0)]].concat())),
        ("with a number for reference_key", with_field(4, integer(1))),
        ("with negative collateral", with_field(9, integer(-1))),
        ("with bytes for collateral", with_field(9, bytes())),
        ("with a number for result_hash", with_field(11, integer(1))),
        ("with bytes for pay_by_time", with_field(12, bytes())),
        ("with an unknown state", with_field(18, constr(6, vec![]))),
        ("with a state that carries something", with_field(18, constr(0, vec![integer(0)]))),
        ("with a number for the buyer", with_field(0, integer(1))),
        ("with an unknown credential", with_field(0, unknown_credential)),
        ("with a third kind of option", with_field(1, constr(2, vec![]))),
        ("that is a number", integer(0)),
    ] {
        let datum = DatumOption::Inline(minicbor::to_vec(data).unwrap());
        cases.forbidden(Broken::SpentIsEscrow, format!("{name} of a datum {text}"), spending, |tx| {
            tx.own_input().output.datum = datum;
        });
    }
    cases.forbidden(Broken::SpentIsEscrow, format!("{name} of a datum that is missing"), spending, |tx| {
        tx.own_input().output.datum = DatumOption::None;
    });
    cases.permitted(format!("{name} of an escrow by hash, alone"), spending, |tx| {
        TxOut::hash_datum(&mut tx.own_input().output);
    });
}

/// Adds cases with redeemers that are not of the contract's type.
fn redeemers(cases: &mut MatrixCases, name: &str, spending: &Spending) {
    let own = Redeemer::plain(spending.action).unwrap_or_else(|| spending.award(&[]));
    let PlutusData::Constr(mut longer) = own.to_data() else { unreachable!() };
    longer.fields = MaybeIndefArray::Indef([&longer.fields[..], &[integer(0)]].concat());
    for (text, data) in [
        ("an eighth constructor", constr(7, vec![])),
        ("a number", integer(5)),
        ("a field too many", PlutusData::Constr(longer)),
        ("no shares", constr(4, vec![])),
    ] {
        cases.forbidden(Broken::RedeemerIsAction, format!("{name} handed {text}"), spending, |tx| {
            tx.own_input().redeemer = Some(minicbor::to_vec(data).unwrap());
        });
    }
}

fn constr(index: u64, fields: Vec<PlutusData>) -> PlutusData {
    let tag = if index < 7 { 121 + index } else { 1280 + index - 7 };
    let fields = if fields.is_empty() { MaybeIndefArray::Def(fields) } else { MaybeIndefArray::Indef(fields) };
    PlutusData::Constr(Constr { tag, any_constructor: None, fields })
}

fn integer(number: i64) -> PlutusData {
    PlutusData::BigInt(BigInt::Int(number.into()))
}

fn bytes() -> PlutusData {
    PlutusData::BoundedBytes(vec![0x11; 28].into())
}
