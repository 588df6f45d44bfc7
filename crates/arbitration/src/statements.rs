//! What the arbiter remembers besides its outbox, in SQL: walks back to locks, evidence, awards.

use cardano::{ContentHash, TxHash, TxRef, slots::Millis};
use serde::Deserialize;
use sql::{DatabaseError, Statement, statement};

use crate::Award;

/// Migrations of the arbiter's database, in order.
pub const SCHEMA: &[&str] = &[outbox::SCHEMA, include_str!("../../../arbiter/d1-migrations/0002_disputes.sql")];

/// A walk back to a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Walk {
    /// The earliest output that was reached.
    pub(crate) reached: TxRef,
    /// How many of the transactions that its own spent from were found not to be on the way, in the order of their ids.
    pub(crate) tried: u32,
    /// The lock, once it is found.
    pub(crate) lock: Option<TxHash>,
}

/// Reads how far the walk from an escrow is.
pub(crate) fn walk(escrow: &TxRef) -> Statement {
    statement!(
        "SELECT json_object('reached', reached, 'tried', tried, 'lock', lock_tx) FROM walks WHERE escrow = ?1",
        escrow
    )
}

/// Notes how far the walk from an escrow is.
pub(crate) fn note_walk(escrow: &TxRef, walk: &Walk) -> Statement {
    statement!(
        "INSERT INTO walks (escrow, reached, tried, lock_tx) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (escrow) DO UPDATE SET \
           reached = excluded.reached, tried = excluded.tried, lock_tx = excluded.lock_tx WHERE walks.lock_tx IS NULL",
        escrow,
        walk.reached,
        walk.tried,
        walk.lock,
    )
}

/// Keeps the hash of an output that is the result of this lock, unless one is kept.
pub(crate) fn keep_evidence(lock: &TxHash, result: &[u8], output: &ContentHash, now: Millis) -> Statement {
    statement!(
        "INSERT INTO evidence (lock_tx, result_hash, output_hash, received_at_ms) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT DO NOTHING",
        lock,
        hex::encode(result),
        output,
        now,
    )
}

/// Reads the hash of the output that is kept for this result of this lock.
pub(crate) fn kept_evidence(lock: &TxHash, result: &[u8]) -> Statement {
    statement!(
        "SELECT json_quote(output_hash) FROM evidence WHERE lock_tx = ?1 AND result_hash = ?2",
        lock,
        hex::encode(result)
    )
}

/// Fixes an award permanently, unless one is fixed.
pub(crate) fn fix_award(escrow: &TxRef, award: &Award, now: Millis) -> Result<Statement, DatabaseError> {
    let json = serde_json::to_string(award).map_err(|error| DatabaseError(format!("an award: {error}")))?;
    let sql = "INSERT INTO awards (escrow, award, decided_at_ms) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    Ok(statement!(sql, escrow, json, now))
}

/// Reads the award on an escrow.
pub(crate) fn award(escrow: &TxRef) -> Statement {
    statement!("SELECT award FROM awards WHERE escrow = ?1", escrow)
}

#[cfg(test)]
mod tests {
    #[test]
    fn its_first_migration_is_the_outboxs_schema() {
        assert_eq!(include_str!("../../../arbiter/d1-migrations/0001_outbox.sql"), outbox::SCHEMA);
    }
}
