//! What the arbiter promises of its wallet, on SQLite: while a payout may be under way, and not for ever.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

mod support;

use cardano::{
    Lovelace, TxHash, TxRef,
    chain::{Utxo, Value},
    tx::build::{BuiltTx, NewOutput, TxPlan, Validity, Wallet, build},
};
use market::{
    arbiter::{begin_payout, fix_decision, promises},
    schema::ARBITER_MIGRATIONS,
    wallet::Promises,
};
use sql::{Database, sqlite::Sqlite};
use support::{NOON, block, parameters, person};

const MINUTE: u64 = 60_000;

fn escrow(number: u8) -> TxRef {
    TxRef { tx: TxHash::new([number; 32]), index: 0 }
}

/// The arbiter's only output.
fn coin() -> Utxo {
    Utxo {
        reference: TxRef { tx: TxHash::new([9; 32]), index: 3 },
        address: person(1).enterprise_address().to_string(),
        value: Value { lovelace: Lovelace::from_ada(50), ..Value::default() },
        inline_datum: None,
        datum_hash: None,
        reference_script: None,
    }
}

/// A transaction that uses it.
fn using_the_coin(ada: u32) -> BuiltTx {
    let key = person(1);
    let plan = TxPlan {
        outputs: vec![NewOutput::pay(person(2).enterprise_address(), Lovelace::from_ada(ada))],
        validity: Validity { from: None, until: 1_000 },
        ..TxPlan::default()
    };
    let wallet = Wallet { address: key.enterprise_address(), utxos: &[coin()], reserved: &[].into() };
    build(&plan, &wallet, &parameters()).unwrap().sign(&[&key]).unwrap()
}

/// Whether a payout of this escrow is written down at this time.
fn begins(db: &Sqlite, number: u8, ada: u32, now: u64) -> bool {
    block(db.run(fix_decision(&escrow(number), "buyer", "{}", now))).unwrap();
    let written = block(db.batch(begin_payout(&escrow(number), &using_the_coin(ada), now).into())).unwrap();
    written.first().unwrap().first().is_some()
}

fn may_spend_the_coin(db: &Sqlite, now: u64) -> bool {
    let read = block(db.batch(promises(now, 2_000).into())).unwrap();
    let promised = Promises::read(&person(1).enterprise_address(), &read[0], &read[1]).unwrap();
    promised.spendable(&[coin()]) == [coin()]
}

#[test]
fn an_output_that_was_only_put_up_can_be_used_again_when_it_is_shown_again() {
    let db = Sqlite::of(ARBITER_MIGRATIONS).unwrap();
    assert!(begins(&db, 1, 2, NOON));
    for (later, free) in [(1, false), (59, false), (61, true)] {
        assert_eq!(may_spend_the_coin(&db, NOON + later * MINUTE), free, "{later} minutes later");
        assert_eq!(begins(&db, 2, 3, NOON + later * MINUTE), free, "{later} minutes later");
    }
    let next = NOON + 62 * MINUTE;
    assert!(!may_spend_the_coin(&db, next), "it is promised to the second now");
    assert!(!begins(&db, 3, 4, next));
}
