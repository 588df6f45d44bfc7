//! Escrows that need an action now.

use cardano::{Address, ContentHash, Lovelace, TxHash, TxRef, slots::Millis};
use escrow::{Datum, Deadlines, deadlines::SUBMIT_RESULT_MS};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use sql::{DatabaseError, Read, Write};

use crate::purchase::newest;

/// Number of due escrows that one query reads, without the contents of their listings.
pub(super) const PAGE: u32 = 128;
/// Time in ms after an escrow's last deadline. Actions without a deadline (collecting, refunding, asking the arbiter)
/// are ordered as if their deadline were at that time.
const ASSUMED_DEADLINE_MS: Millis = 60 * 60 * 1_000;
/// Time in ms that each failure of an action without a deadline adds to its assumed deadline, so that the escrow is
/// handled later.
const FAILURE_PENALTY_MS: Millis = 10 * 60 * 1_000;
/// Time in ms that each failed attempt to post a result adds when results are ordered. New results therefore come
/// first, and all others are retried about equally often.
const RESULT_FAILED_MS: Millis = 5 * 60_000;
/// Time in ms until the first retry of a failed action. Each further failure doubles it. Posting a result is retried in
/// every run of the watcher.
const RETRY_MS: Millis = 30_000;
/// Maximum number of doublings of [`RETRY_MS`].
const MAX_DOUBLINGS: u32 = 3;
/// Time in ms before an escrow's `unlock` deadline at which the idle escrow is checked once more, because its buyer may
/// dispute until the deadline.
const LAST_CHECK_MS: Millis = 4 * 60_000;
/// Interval in ms for checking escrows whose deadlines have passed.
const EXPIRED_CHECK_MS: Millis = 24 * 60 * 60 * 1_000;

/// An escrow on which the watcher may have to act now, with its sale.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Due {
    pub purchase: TxHash,
    pub utxo: TxRef,
    #[serde(deserialize_with = "stored_datum")]
    datum: Option<Datum>,
    pub listing_id: String,
    pub content_hash: ContentHash,
    pub creator: Address,
    /// The creator's share of the price, to be paid when the escrow is collected. Zero if a separate payout was
    /// recorded after an award that a rollback has since removed, even if the payout failed, because a failed payout
    /// becomes due again.
    pub share: Lovelace,
    pub verification: Option<String>,
    /// Time in POSIX ms at which the escrow was due; 0 if its state has changed since the last check.
    next_at: Millis,
    /// Height of the block that includes the escrow's current output.
    height: u64,
    /// Number of failed actions on the escrow's current output.
    pub failures: u32,
    /// The service wallet that bought, if any.
    #[serde(deserialize_with = "sql::json")]
    pub service_wallet: Option<ServiceWallet>,
    /// Result that the seller must post: a hash over the lock's id and the delivered content. `None` if it was not
    /// computed yet.
    pub delivered: Option<ContentHash>,
}

/// A service wallet and its owner.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServiceWallet {
    pub owner: String,
    pub address: Address,
    /// Version of the master secret from which the wallet's key is derived.
    pub key_version: u32,
}

/// A creator who must be paid for a sale that was won in a dispute.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct DuePayout {
    pub purchase: TxHash,
    pub share: Lovelace,
    pub creator: Address,
}

impl Due {
    pub fn datum(&self) -> Result<&Datum, DatabaseError> {
        self.datum.as_ref().ok_or_else(|| DatabaseError(format!("the escrow of {} cannot be read", self.purchase)))
    }

    /// Returns whether the escrow may have been spent by a transaction that was already read from the address's
    /// history. This can be so if the escrow was checked before, or if its current output is in a block up to
    /// `read_to`, the height up to which the history is read.
    pub const fn may_be_spent(&self, read_to: u64) -> bool {
        self.next_at > 0 || self.height <= read_to
    }
}

/// Decodes a datum. Returns `None` if it is invalid, so that one invalid row does not fail the whole query.
fn stored_datum<'de, D: Deserializer<'de>>(stored: D) -> Result<Option<Datum>, D::Error> {
    let cbor = hex::decode(String::deserialize(stored)?).ok();
    Ok(cbor.and_then(|cbor| Datum::from_cbor(&cbor).ok()))
}

/// SQL expression for the [`ServiceWallet`] that bought the purchase `p`, as JSON; NULL if an external wallet did.
pub(super) const SERVICE_WALLET: &str = "(SELECT json_object('owner', a.owner, 'address', a.wallet_address, \
    'keyVersion', a.key_version) FROM accounts a WHERE a.wallet_address = p.buyer_address)";

/// Builds the query that reads the due escrows on which no transaction of the platform is pending. Skips the first
/// `except` escrows.
///
/// The escrows are ordered by deadline: results by the seller's deadline, and disputes by the buyer's. All other
/// actions can wait, and come last.
pub(super) fn due(clock: Millis, except: usize) -> Read<Vec<Due>> {
    sql::read!(
        format!(
            include_str!("due.sql"),
            page = PAGE,
            service_wallet = SERVICE_WALLET,
            height = newest("height", "e.purchase_id"),
            fresh = "p.status IN ('FundsLocked', 'RefundRequested') AND e.submit_result_ms > ?1 AND coalesce(w.failures, 0) = 0",
            // Results are ordered by the time of issuance instead of their deadline, because the buyer is waiting for
            // the content.
            result =
                format_args!("e.submit_result_ms - {SUBMIT_RESULT_MS} + coalesce(w.failures, 0) * {RESULT_FAILED_MS}"),
            no_deadline = format_args!(
                "e.external_dispute_unlock_ms + {ASSUMED_DEADLINE_MS} + coalesce(w.failures, 0) * {FAILURE_PENALTY_MS}"
            ),
        ),
        clock,
        u64::try_from(except).unwrap_or(u64::MAX)
    )
}

/// Builds the query that reads the creators who are owed a payout and have none pending. Creators without an earlier
/// attempt come first.
///
/// A creator whose earlier payout may be in a block waits without delaying others. After a restore from a backup, no
/// creator is returned until the payouts made since the backup are known.
pub(super) fn payouts() -> Read<Vec<DuePayout>> {
    sql::read!(include_str!("payouts.sql"))
}

/// Builds the statement that stores the result for an escrow (a hash over the lock's id and the delivered content), so
/// that the content is read only once.
pub(super) fn store_result(purchase: &TxHash, result: &ContentHash) -> Write {
    sql::write!(
        "INSERT INTO escrow_watch (purchase_id, utxo, next_at_ms, delivered_hash) \
         SELECT purchase_id, utxo, next_at_ms, ?2 FROM escrows WHERE purchase_id = ?1 \
         ON CONFLICT (purchase_id) DO UPDATE SET delivered_hash = excluded.delivered_hash",
        purchase,
        result
    )
}

/// Builds the statement that sets the time of each escrow's next check, unless the escrow has changed since it was
/// read. A single statement sets all times, because D1 limits the number of statements per invocation.
pub(super) fn check_later(escrows: &[(Due, Millis)]) -> Write {
    let later = escrows.iter().map(|(due, at)| {
        json!({ "purchase": due.purchase, "utxo": due.utxo.to_string(), "at": at, "read": due.next_at,
            "verification": due.verification })
    });
    sql::write!(include_str!("check_later.sql"), later.collect::<Value>().to_string())
}

/// Returns the time of an idle escrow's next check: `until`, or the escrow's next deadline if there is nothing to wait
/// for.
pub(super) fn next_check(until: Millis, deadlines: &Deadlines, clock: Millis) -> Millis {
    let last = deadlines.unlock.saturating_sub(LAST_CHECK_MS);
    let stops = [deadlines.submit_result, last, deadlines.unlock, deadlines.external_dispute_unlock];
    let next = stops.into_iter().find(|stop| *stop > clock).unwrap_or(clock.saturating_add(EXPIRED_CHECK_MS));
    if until == Millis::MAX { next } else { until }
}

/// Builds the statement that postpones a failed action. Writes nothing if the escrow has changed, or if a concurrent
/// run of the watcher has postponed the action.
pub(super) fn retry_later(due: &Due, now: Millis) -> Write {
    let in_every_tick = due.datum().is_ok_and(|datum| !datum.has_result() && datum.deadlines.submit_result > now);
    sql::write!(
        include_str!("retry_later.sql"),
        due.purchase,
        due.utxo,
        now,
        RETRY_MS,
        if in_every_tick { 0 } else { MAX_DOUBLINGS },
        due.failures
    )
}

/// Builds the statements that make all open escrows due if the watcher's keys have changed, because the watcher may now
/// be able to act.
pub(super) fn signers_changed(fingerprint: &str) -> [Write; 2] {
    [
        sql::write!(
            // Joined in this order so that no escrow is read if nothing has changed.
            "UPDATE escrow_watch SET next_at_ms = 0 WHERE purchase_id IN \
             (SELECT e.purchase_id FROM chain_reading CROSS JOIN escrows e \
              WHERE signer_fingerprint IS NOT ?1 AND e.utxo IS NOT NULL AND e.next_at_ms > 0)",
            fingerprint
        ),
        sql::write!("UPDATE chain_reading SET signer_fingerprint = ?1 WHERE signer_fingerprint IS NOT ?1", fingerprint),
    ]
}
