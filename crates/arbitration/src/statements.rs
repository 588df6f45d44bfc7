//! SQL statements for the arbiter's own tables: progress of traces to locks, evidence, and awards.

use cardano::{ContentHash, TxHash, TxRef, slots::Millis};
use serde::Deserialize;
use sql::{DatabaseError, Read, Write};

use crate::Award;

/// Migrations of the arbiter's database, in the order in which they are applied.
pub const SCHEMA: &[&str] = &[outbox::SCHEMA, include_str!("../../../arbiter/d1-migrations/0002_disputes.sql")];

/// Progress of tracing an escrow back to the transaction that locked it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Trace {
    /// Earliest output of the escrow that has been found so far.
    pub(crate) reached: TxRef,
    /// Number of transactions that were ruled out as the origin of the escrow's previous output. The candidates are
    /// checked in the order of their ids.
    pub(crate) ruled_out: u32,
    /// Id of the transaction that locked the escrow; `None` until it is found.
    pub(crate) lock: Option<TxHash>,
}

/// Builds the query for the progress of tracing this escrow.
pub(crate) fn trace(escrow: &TxRef) -> Read<Option<Trace>> {
    sql::read!("SELECT reached, tried AS ruled_out, lock_tx AS lock FROM walks WHERE escrow = ?1", escrow)
}

/// Builds the statement that stores the progress of tracing this escrow.
pub(crate) fn store_trace(escrow: &TxRef, trace: &Trace) -> Write {
    sql::write!(
        "INSERT INTO walks (escrow, reached, tried, lock_tx) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (escrow) DO UPDATE SET \
           reached = excluded.reached, tried = excluded.tried, lock_tx = excluded.lock_tx WHERE walks.lock_tx IS NULL",
        escrow,
        trace.reached,
        trace.ruled_out,
        trace.lock,
    )
}

/// Builds the statement that stores `output`, the hash of the delivered text, as evidence for this lock and the result
/// that its seller posted. A hash that is already stored is kept.
pub(crate) fn store_evidence(lock: &TxHash, result: &[u8], output: &ContentHash, now: Millis) -> Write {
    sql::write!(
        "INSERT INTO evidence (lock_tx, result_hash, output_hash, received_at_ms) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT DO NOTHING",
        lock,
        hex::encode(result),
        output,
        now,
    )
}

/// Builds the query for the stored hash of the delivered text, for this lock and the result that its seller posted.
pub(crate) fn stored_evidence(lock: &TxHash, result: &[u8]) -> Read<Option<ContentHash>> {
    sql::read!("SELECT output_hash FROM evidence WHERE lock_tx = ?1 AND result_hash = ?2", lock, hex::encode(result))
}

/// Builds the statement that stores an award, unless one is already stored for the escrow.
pub(crate) fn store_award(escrow: &TxRef, award: &Award, now: Millis) -> Result<Write, DatabaseError> {
    let json = serde_json::to_string(award).map_err(|error| DatabaseError(format!("an award: {error}")))?;
    let sql = "INSERT INTO awards (escrow, award, decided_at_ms) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    Ok(sql::write!(sql, escrow, json, now))
}

#[derive(Deserialize)]
pub(crate) struct AwardRow {
    #[serde(deserialize_with = "sql::json")]
    pub(crate) award: Award,
}

pub(crate) fn award(escrow: &TxRef) -> Read<Option<AwardRow>> {
    sql::read!("SELECT award FROM awards WHERE escrow = ?1", escrow)
}

#[cfg(test)]
mod tests {
    #[test]
    fn its_first_migration_is_the_outboxs_schema() {
        assert_eq!(include_str!("../../../arbiter/d1-migrations/0001_outbox.sql"), outbox::SCHEMA);
    }
}
