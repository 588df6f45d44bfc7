//! A tick holds few contents in memory at once. A worker has 128 MB, and anyone may sell and buy a mebibyte at a time.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

use sql::{Database, DatabaseError, Statement, Write, sqlite::Sqlite};
use std::cell::Cell;

use crate::support::{NOON, block, deployment, ledger::Ledger, list, person, sales::Platform};
use cardano::TxHash;
use market::{chain_state::ClockLead, contents::InDatabase, watch::Watch};

/// Counts the maximum number of contents that a batch returns.
struct Counting<'a>(&'a Sqlite, Cell<usize>);

impl Database for Counting<'_> {
    async fn run_statements(&self, statements: &[&Statement]) -> Result<Vec<String>, DatabaseError> {
        let contents = statements.iter().filter(|statement| statement.sql.contains("FROM contents")).count();
        self.1.set(self.1.get().max(contents));
        self.0.run_statements(statements).await
    }
}

#[test]
fn many_due_escrows_read_few_contents_at_once() {
    let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
    for number in 0..20_u8 {
        let listing = list(&db, number, 5_000_000);
        let id = TxHash::new([number; 32]).to_string();
        let datum = crate::support::fresh_escrow(u32::from(number));
        let buyer = person(1).enterprise_address().to_string();
        let purchase: Write = sql::write!(
            "INSERT INTO purchases (id, listing_id, mode, seller_address, buyer_address, buyer_key, price_lovelace, \
               creator_lovelace, status, bought_at_ms) VALUES (?1, ?2, 'protected', ?3, ?3, substr(?1, 1, 56), 5000000, 3500000, 'FundsLocked', ?4)",
            id.as_str(),
            listing.as_str(),
            buyer,
            NOON
        );
        let escrow = sql::write!(
            "INSERT INTO escrows (purchase_id, utxo, address, datum, locked_lovelace, input_hash, pay_by_ms, submit_result_ms, \
               unlock_ms, external_dispute_unlock_ms, next_at_ms) \
             VALUES (?1, ?1 || '#0', '', ?2, 5000000, '', ?3, ?4, ?5, ?6, 0)",
            id.as_str(),
            hex::encode(datum.to_cbor()),
            datum.deadlines.pay_by,
            datum.deadlines.submit_result,
            datum.deadlines.unlock,
            datum.deadlines.external_dispute_unlock
        );
        let step = sql::write!(
            "INSERT INTO escrow_steps (purchase_id, tx_id, height, position, at_ms, status, utxo, datum, locked_lovelace, \
               creator_paid) SELECT purchase_id, purchase_id, 9, 0, 0, 'FundsLocked', utxo, datum, locked_lovelace, 0 \
             FROM escrows WHERE purchase_id = ?1",
            id
        );
        block(db.batch(vec![purchase, escrow, step])).unwrap();
    }
    let deployment = deployment();
    let database = Counting(&db, Cell::new(0));
    let platform = Platform { seller: person(2), wallets: vec![], arbiter: Default::default() };
    let watch = Watch {
        database: &database,
        chain: &Ledger::new(),
        contents: &InDatabase(&database),
        keys: &platform,
        arbiter: &platform,
        deployment: Some(&deployment),
        sells: true,
        lead: ClockLead::Bounded,
        number: 1,
        now: NOON + 60_000,
        calls_left: &|| 40,
    };
    block(watch.tick()).unwrap();
    assert_eq!(database.1.get(), 1);
    assert_eq!(
        crate::support::one(&db, "SELECT CAST(count(*) AS TEXT) FROM escrows WHERE next_at_ms > 0"),
        "20",
        "all were tried"
    );
}
