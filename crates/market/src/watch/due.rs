//! Which escrows need an action now, and what is known of them.

use cardano::{Address, ContentHash, Lovelace, TxHash, TxRef, slots::Millis};
use escrow::{Datum, Deadlines};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use sql::{DatabaseError, Statement, statement};

use crate::purchase::newest;

/// Escrows that are read at once: their contents are not.
pub(super) const PAGE: u32 = 128;
/// Where waiting loses nothing (collecting, refunding, asking the arbiter), an escrow counts as due this long after the
/// last of its deadlines. It comes before escrows with a later deadline.
const NO_DEADLINE_MS: Millis = 60 * 60 * 1_000;
/// How much later such an escrow counts for each action on it that failed.
const FAILED_MS: Millis = 10 * 60 * 1_000;
/// How much earlier than its deadline a result counts, from issuance to that deadline: as if it were due now. A buyer waits
/// for the content that comes with it.
const RESULT_WINDOW_MS: Millis = 16 * 60 * 1_000;
/// How much later a result counts for each time that it failed: what was not tried yet comes first, and all are
/// tried about equally often.
const RESULT_FAILED_MS: Millis = 5 * 60_000;
/// How long after an action that failed it is tried again; twice as long after each further failure. A result is tried in every
/// tick: its time is short.
const RETRY_MS: Millis = 30_000;
/// How often that is doubled.
const MAX_DOUBLINGS: u32 = 3;
/// How long before `unlock` an escrow is checked on which there was nothing to do: the buyer may still dispute.
const LAST_CHECK_MS: Millis = 4 * 60_000;
/// How often an escrow is checked whose deadlines have passed.
const SELDOM_MS: Millis = 24 * 60 * 60 * 1_000;

/// An escrow that is due, and what was sold.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Due {
    pub purchase: TxHash,
    pub utxo: TxRef,
    #[serde(deserialize_with = "stored_datum")]
    datum: Option<Datum>,
    pub listing_id: String,
    pub content_hash: ContentHash,
    pub creator: Address,
    /// What the creator gets when it is collected: nothing where a payout was made before a rollback undid its award.
    /// Payouts are kept apart from each other, and one that failed is due again.
    pub share: Lovelace,
    pub verification: Option<String>,
    /// When it was to be looked at, as it was read; 0 where something about it is new.
    next_at: Millis,
    /// The height of the block that made it what it is.
    height: u64,
    /// How often an action on what it is now was refused, or came into no block.
    pub failures: u32,
    /// The service wallet that bought, if one did.
    pub service_wallet: Option<ServiceWallet>,
    /// The hash of what was delivered, as a result of this lock, where it was read before, or posted by this service.
    pub delivered: Option<ContentHash>,
}

/// A service wallet that bought, and whose it is.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceWallet {
    pub owner: String,
    pub address: Address,
    /// The version of its derivation.
    pub key_version: u32,
}

/// A creator who is to be paid after a dispute was won.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Owed {
    pub purchase: TxHash,
    pub share: Lovelace,
    pub creator: Address,
}

impl Due {
    pub fn datum(&self) -> Result<&Datum, DatabaseError> {
        self.datum.as_ref().ok_or_else(|| DatabaseError(format!("the escrow of {} cannot be read", self.purchase)))
    }

    /// Whether a transaction that the address's history no longer shows may have spent it. It was read before, or
    /// became what it is behind the position up to which that history was read.
    pub const fn may_be_gone(&self, read_to: u64) -> bool {
        self.next_at > 0 || self.height <= read_to
    }
}

/// One that cannot be read makes no other unreadable.
fn stored_datum<'de, D: Deserializer<'de>>(stored: D) -> Result<Option<Datum>, D::Error> {
    let cbor = hex::decode(String::deserialize(stored)?).ok();
    Ok(cbor.and_then(|cbor| Datum::from_cbor(&cbor).ok()))
}

/// The statement that reads due escrows without a pending transaction of the platform, except the first so many. They are
/// ordered by the time until which the action must happen: results by the seller's deadline, then disputes by the
/// buyer's. What can wait comes after, within a bound.
pub(super) fn due(clock: Millis, except: usize) -> Statement {
    statement!(
        format!(
            include_str!("due.sql"),
            page = PAGE,
            height = newest("height", "e.purchase_id"),
            fresh = "p.status IN ('FundsLocked', 'RefundRequested') AND e.submit_result_ms > ?1 AND e.failures = 0",
            result = format_args!("e.submit_result_ms - {RESULT_WINDOW_MS} + e.failures * {RESULT_FAILED_MS}"),
            some_day = format_args!("e.external_dispute_unlock_ms + {NO_DEADLINE_MS} + e.failures * {FAILED_MS}"),
        ),
        clock,
        u64::try_from(except).unwrap_or(u64::MAX)
    )
}

/// The statement that reads which creators are owed and have no pending payout; those never paid or tried come first. A
/// creator whose earlier payout may be in a block waits, and delays no other. None while payouts since a backup may not
/// be read yet.
pub(super) fn owed() -> Statement {
    statement!(include_str!("owed.sql"))
}

/// The statement that keeps the hash of what was delivered, as a result of this lock: it is never another.
pub(super) fn keep_delivered(purchase: &TxHash, result: &ContentHash) -> Statement {
    statement!("UPDATE escrows SET delivered_hash = ?2 WHERE purchase_id = ?1", purchase, result)
}

/// The statement that sets when to read escrows again, unless something about them has changed since they were read. It
/// is one for all, as a database bounds the statements of a tick.
pub(super) fn check_later(escrows: &[(Due, Millis)]) -> Statement {
    let later = escrows.iter().map(|(due, at)| {
        json!({ "purchase": due.purchase, "utxo": due.utxo.to_string(), "at": at, "read": due.next_at,
            "verification": due.verification })
    });
    statement!(include_str!("check_later.sql"), later.collect::<Value>().to_string())
}

/// When to read an escrow again that needs no action before this time. It is then, or, where that is never, at its next
/// deadline, to see the other parties' steps.
pub(super) fn next_check(until: Millis, deadlines: &Deadlines, clock: Millis) -> Millis {
    let last = deadlines.unlock.saturating_sub(LAST_CHECK_MS);
    let stops = [deadlines.submit_result, last, deadlines.unlock, deadlines.external_dispute_unlock];
    let next = stops.into_iter().find(|stop| *stop > clock).unwrap_or(clock.saturating_add(SELDOM_MS));
    if until == Millis::MAX { next } else { until }
}

/// The statement that sets when to retry a failed action, unless the escrow has moved on or another run failed at it. A
/// failure that several runs meet at once counts once.
pub(super) fn retry_later(due: &Due, now: Millis) -> Statement {
    let in_every_tick = due.datum().is_ok_and(|datum| !datum.has_result() && datum.deadlines.submit_result > now);
    statement!(
        "UPDATE escrows SET next_at_ms = ?3 + ?4 * (1 << min(failures, ?5)), failures = failures + 1 \
         WHERE purchase_id = ?1 AND utxo = ?2 AND failures = ?6",
        due.purchase,
        due.utxo,
        now,
        RETRY_MS,
        if in_every_tick { 0 } else { MAX_DOUBLINGS },
        due.failures
    )
}

/// The statements that look at every open escrow again when the watcher signs with other keys than before: it may have one
/// now that it lacked.
pub(super) fn signers_changed(fingerprint: &str) -> [Statement; 2] {
    [
        statement!(
            // Joined in this order, so that no escrow is read as long as nothing changes.
            "UPDATE escrows SET next_at_ms = 0 WHERE purchase_id IN \
             (SELECT e.purchase_id FROM chain_reading CROSS JOIN escrows e \
              WHERE signer_fingerprint IS NOT ?1 AND e.utxo IS NOT NULL AND e.next_at_ms > 0)",
            fingerprint
        ),
        statement!("UPDATE chain_reading SET signer_fingerprint = ?1 WHERE signer_fingerprint IS NOT ?1", fingerprint),
    ]
}
