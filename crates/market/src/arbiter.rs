//! What the arbiter remembers, in a database of its own (`arbiter/d1-migrations`): walks back to locks, evidence,
//! decisions, and the transactions that carry them out. Its rules are in the crate `arbitration`.

use cardano::{TxHash, TxRef, slots::Millis, tx::build::BuiltTx};
use serde::Deserialize;
use sql::{DatabaseError, Rows, Statement, statement};

/// How far back a provider's view may be, in ms: transactions of ours that are older are in every view.
const MAX_LAG_MS: Millis = 60 * 60 * 1_000;

/// A walk back to a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Walk {
    /// The earliest output that was reached.
    pub reached: TxRef,
    /// The lock, once it is found.
    pub lock: Option<TxHash>,
}

/// The statement that reads how far the walk from an escrow is.
#[must_use]
pub fn walk(escrow: &TxRef) -> Statement {
    statement!(
        "SELECT json_object('reached', reached, 'lock', lock_tx) FROM traces WHERE escrow = ?1",
        escrow.to_string()
    )
}

/// The statement that notes how far the walk from an escrow is.
#[must_use]
pub fn note_walk(escrow: &TxRef, walk: &Walk) -> Statement {
    statement!(
        "INSERT INTO traces (escrow, reached, lock_tx) VALUES (?1, ?2, ?3) ON CONFLICT (escrow) DO UPDATE SET \
           reached = excluded.reached, lock_tx = excluded.lock_tx WHERE traces.lock_tx IS NULL",
        escrow.to_string(),
        walk.reached.to_string(),
        walk.lock.map(|lock| lock.to_string()),
    )
}

/// The statement that keeps an output whose hash is the result of this lock, unless one is kept.
#[must_use]
pub fn keep_evidence(lock: &TxHash, result: &[u8], output: &str, now: Millis) -> Statement {
    statement!(
        "INSERT INTO evidence (lock_tx, result_hash, output, received_at_ms) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT DO NOTHING",
        lock.to_string(),
        hex::encode(result),
        output,
        now,
    )
}

/// The statement that reads the output that is kept for this result of this lock.
#[must_use]
pub fn kept_evidence(lock: &TxHash, result: &[u8]) -> Statement {
    statement!(
        "SELECT output FROM evidence WHERE lock_tx = ?1 AND result_hash = ?2",
        lock.to_string(),
        hex::encode(result)
    )
}

/// The statement that fixes a decision, unless one is fixed.
#[must_use]
pub fn fix_decision(escrow: &TxRef, winner: &str, verdict: &str, now: Millis) -> Statement {
    statement!(
        "INSERT INTO decisions (escrow, winner, verdict, decided_at_ms) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
        escrow.to_string(),
        winner,
        verdict,
        now,
    )
}

/// The statement that reads the decision on an escrow: its verdict's JSON.
#[must_use]
pub fn decision(escrow: &TxRef) -> Statement {
    statement!("SELECT verdict FROM decisions WHERE escrow = ?1", escrow.to_string())
}

/// A transaction that pays an escrow out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payout {
    /// Its id.
    pub tx: TxHash,
    /// Its bytes.
    pub cbor: Vec<u8>,
    /// Whether a provider took it.
    pub submitted: bool,
    /// The first slot in which it is no longer valid.
    pub valid_until: u64,
    /// Submissions that were begun.
    pub attempts: u32,
    /// When the last of them was, POSIX ms.
    pub attempted_at: Millis,
}

const PAYOUT_JSON: &str = "json_object('tx', tx_id, 'cbor', cbor, 'state', state, 'validUntil', valid_until_slot, \
    'attempts', attempts, 'attemptedAt', attempted_at_ms)";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PayoutRow {
    tx: TxHash,
    cbor: String,
    state: String,
    valid_until: u64,
    attempts: u32,
    attempted_at: Millis,
}

/// Reads an answer to [`live_payout`], [`begin_payout`] or [`retry_payout`].
///
/// # Errors
/// What is stored is not what we store.
pub fn payout(row: &Rows) -> Result<Option<Payout>, DatabaseError> {
    let Some(row) = row.first_json::<PayoutRow>()? else { return Ok(None) };
    let cbor = hex::decode(&row.cbor).map_err(|_| DatabaseError(format!("payout {} cannot be read", row.tx)))?;
    Ok(Some(Payout {
        tx: row.tx,
        cbor,
        submitted: row.state == "submitted",
        valid_until: row.valid_until,
        attempts: row.attempts,
        attempted_at: row.attempted_at,
    }))
}

/// The statement that reads the transaction that stands for an escrow's payout.
#[must_use]
pub fn live_payout(escrow: &TxRef) -> Statement {
    statement!(format!("SELECT {PAYOUT_JSON} FROM payouts WHERE escrow = ?1 AND state <> 'ended'"), escrow.to_string())
}

/// The statements that write a payout down with its first attempt and reserve what it spends: all of it, or nothing
/// where another payout stands for the escrow or uses an input. The first says whether it was written.
#[must_use]
pub fn begin_payout(escrow: &TxRef, built: &BuiltTx, now: Millis) -> [Statement; 2] {
    let tx = built.facts.tx_id.to_string();
    let used: Vec<String> = built.facts.inputs.iter().chain(&built.facts.collateral).map(ToString::to_string).collect();
    let used = serde_json::json!(used).to_string();
    [
        statement!(
            format!(
                "INSERT INTO payouts (tx_id, escrow, cbor, state, valid_until_slot, attempts, attempted_at_ms, created_at_ms) \
                 SELECT ?1, ?2, ?3, 'claimed', ?4, 1, ?5, ?5 \
                 WHERE NOT EXISTS (SELECT 1 FROM reservations r JOIN payouts p ON p.tx_id = r.tx_id \
                   WHERE r.tx_in IN (SELECT value FROM json_each(?6)) AND p.created_at_ms > ?7) \
                 ON CONFLICT DO NOTHING RETURNING {PAYOUT_JSON}"
            ),
            tx.as_str(),
            escrow.to_string(),
            hex::encode(&built.cbor),
            built.facts.valid_until_slot,
            now,
            used.as_str(),
            now.saturating_sub(MAX_LAG_MS),
        ),
        // What an old payout only put up as collateral is shown again, and free.
        statement!(
            "INSERT INTO reservations (tx_in, tx_id) SELECT j.value, p.tx_id FROM payouts p, json_each(?2) j \
             WHERE p.tx_id = ?1 AND p.state = 'claimed' ON CONFLICT (tx_in) DO UPDATE SET tx_id = excluded.tx_id",
            tx.as_str(),
            used.as_str(),
        ),
    ]
}

/// The statement that begins a further attempt, unless somebody else began one since this was read.
#[must_use]
pub fn retry_payout(payout: &Payout, now: Millis) -> Statement {
    statement!(
        format!(
            "UPDATE payouts SET attempts = attempts + 1, attempted_at_ms = ?3 \
             WHERE tx_id = ?1 AND attempts = ?2 AND state <> 'ended' RETURNING {PAYOUT_JSON}"
        ),
        payout.tx.to_string(),
        i64::from(payout.attempts),
        now,
    )
}

/// The statement that notes that a provider took the transaction.
#[must_use]
pub fn mark_submitted(tx: &TxHash) -> Statement {
    statement!("UPDATE payouts SET state = 'submitted' WHERE tx_id = ?1 AND state = 'claimed'", tx.to_string())
}

/// The statement that ends a payout that was refused at its only attempt, and gives its inputs back.
#[must_use]
pub fn end_refused(tx: &TxHash, reason: &str) -> Statement {
    statement!(
        "UPDATE payouts SET state = 'ended', reason = ?2 WHERE tx_id = ?1 AND attempts = 1 AND state = 'claimed'",
        tx.to_string(),
        reason
    )
}

/// The statement that ends a payout whose time is over, and gives its inputs back.
#[must_use]
pub fn end_expired(tx: &TxHash) -> Statement {
    statement!("UPDATE payouts SET state = 'ended', reason = 'expired' WHERE tx_id = ?1", tx.to_string())
}

/// The statements that read what is promised of the arbiter's wallet, for [`crate::wallet::Promises::read`]. Change of
/// a transaction that is no longer valid in `tip_slot` is on the chain, where the provider shows it, or will never be.
#[must_use]
pub fn promises(now: Millis, tip_slot: u64) -> [Statement; 2] {
    let since = now.saturating_sub(MAX_LAG_MS);
    [
        statement!(
            "SELECT json_object('cbor', cbor, 'state', state) FROM payouts WHERE created_at_ms > ?1 AND state <> 'ended' \
             AND valid_until_slot > ?2",
            since,
            tip_slot
        ),
        statement!(
            "SELECT r.tx_in FROM payouts p JOIN reservations r ON r.tx_id = p.tx_id WHERE p.created_at_ms > ?1",
            since
        ),
    ]
}
