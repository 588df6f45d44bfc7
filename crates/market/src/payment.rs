//! Stored payments, and the queries that read them.

use cardano::{Address, ContentHash, KeyHash, TxHash, slots::Millis};
use outbox::{ENTRY, Entry, EntryState, MAX_GIVEN_UP, MAX_LAG_MS, MAX_LATE_MS, Provenance};
use serde::Deserialize;
use sql::{Both, Read, Write};

use crate::{
    buyer,
    chain_state::SETTLED_DEPTH,
    listing::ListingId,
    purchase::Status,
    release::{ReleaseFacts, Released, Unreleased, release},
};

/// Maximum number of a buyer's failed payments that one request looks up on the chain.
pub(crate) const MAX_CHECKED: usize = 8;
/// SQL expression that orders failed payments alternately: the oldest, the newest, the second oldest, and so on.
///
/// The oldest comes first because a provider may have relayed it despite rejecting it; retries then fail because they
/// spend the same inputs. The newest comes next because a lagging provider may not show it yet.
const OLDEST_AND_NEWEST_FIRST: &str =
    "min(row_number() OVER (ORDER BY outbox.created_at_ms), row_number() OVER (ORDER BY outbox.created_at_ms DESC))";

/// A stored payment: a transaction, the listing that it pays for, and its state.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Both<Entry, Both<PaymentRow, ReleaseFacts>>")]
pub struct PaymentRecord {
    pub entry: Entry,
    /// The listing that is paid for.
    pub listing_id: ListingId,
    pub payer: Address,
    /// SHA-256 of the `PAYMENT-SIGNATURE` header that contained the payment.
    pub header: ContentHash,
    /// Time in POSIX ms of the first delivery of the content; `None` before it. A delivery to a client that has
    /// disconnected does not count.
    pub delivered_at_ms: Option<Millis>,
    /// Facts that decide whether the content may be released.
    pub facts: ReleaseFacts,
}

/// Columns of a [`PaymentRecord`] that belong neither to its outbox entry nor to its [`ReleaseFacts`].
#[derive(Deserialize)]
struct PaymentRow {
    listing_id: ListingId,
    payer: Address,
    header_digest: ContentHash,
    delivered_at_ms: Option<Millis>,
}

impl From<Both<Entry, Both<PaymentRow, ReleaseFacts>>> for PaymentRecord {
    fn from(Both(entry, Both(row, facts)): Both<Entry, Both<PaymentRow, ReleaseFacts>>) -> Self {
        let PaymentRow { listing_id, payer, header_digest: header, delivered_at_ms } = row;
        Self { entry, listing_id, payer, header, delivered_at_ms, facts }
    }
}

impl PaymentRecord {
    /// Returns whether the payment has become a purchase, because a block includes it.
    #[must_use]
    pub const fn is_purchase(&self) -> bool {
        self.facts.status.is_some()
    }

    /// Returns whether the purchase was refunded, so that the buyer no longer owns the listing.
    #[must_use]
    pub const fn is_refunded(&self) -> bool {
        matches!(self.facts.status, Some(Status::Refunded))
    }

    /// Returns `true` while no node's answer to the payment's submission is recorded. The payer may still use such a
    /// payment for another listing.
    #[must_use]
    pub fn awaits_submission_answer(&self) -> bool {
        self.entry.state == EntryState::Claimed && self.entry.provenance == Provenance::Unknown
    }

    /// Decides whether the payment's content may be released. `confirmations` is the required number of newer blocks.
    /// `clock` is the time in POSIX ms that escrow deadlines are compared with.
    ///
    /// # Errors
    /// Returns the reason why the content may not be released now.
    pub fn release(&self, confirmations: u64, clock: Millis) -> Result<Released, Unreleased> {
        release(&self.facts, confirmations, clock, &api_types::SLOTS)
    }
}

/// Returns the SQL that reads [`PaymentRecord`]s from the tables `p` (payments) and `outbox`. `which` is an SQL
/// condition, and may be followed by an order.
fn records(which: &str) -> String {
    records_with("", which)
}

/// Returns the SQL that reads [`PaymentRecord`]s with the additional columns `more`.
fn records_with(more: &str, which: &str) -> String {
    format!(include_str!("payment_records.sql"), ENTRY = ENTRY, deep = SETTLED_DEPTH, more = more, which = which)
}

/// Builds the query that reads the [`PaymentRecord`] of a transaction.
pub fn by_tx(tx: &TxHash) -> Read<Option<PaymentRecord>> {
    sql::read!(records("p.tx_id = ?1"), tx)
}

/// The first use of a payment identifier.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct IdentifierUse {
    /// Digest of the payload with which the identifier was first used; `None` if the identifier is new or the client
    /// sent none.
    pub payload: Option<ContentHash>,
}

/// Builds the query that reads the stored payment that a presented payment resumes: the payment to which its identifier
/// is bound, or else the payment of its transaction.
pub fn resumed_by(
    tx: &TxHash,
    listing: &ListingId,
    identifier: Option<&str>,
) -> Read<Option<Both<PaymentRecord, IdentifierUse>>> {
    let identified =
        |column| format!("(SELECT {column} FROM payment_identifiers WHERE listing_id = ?2 AND identifier = ?3)");
    let payload = format!(", {} AS payload", identified("payload_digest"));
    let which = format!("p.tx_id = coalesce({}, ?1)", identified("tx_id"));
    sql::read!(records_with(&payload, &which), tx, listing, identifier)
}

/// Builds the query that reads the [`PaymentRecord`] of a transaction, if the payer's key is one of `buyers`.
pub fn of_buyers(tx: &TxHash, buyers: &[KeyHash]) -> Read<Option<PaymentRecord>> {
    let which = format!("p.tx_id = ?1 AND p.payer_key IN {}", buyer::keys("?2"));
    sql::read!(records(&which), tx, buyer::parameter(buyers))
}

/// Builds the query that reads the payment of a buyer's oldest purchase of a listing. Refunded purchases do not count.
/// `buyers` are the buyer's payment keys.
pub fn owned(listing: &ListingId, buyers: &[KeyHash]) -> Read<Option<PaymentRecord>> {
    let which = format!(
        "p.tx_id = (SELECT id FROM purchases WHERE listing_id = ?1 AND status <> 'refunded' AND buyer_key IN {} \
           ORDER BY bought_at_ms LIMIT 1)",
        buyer::keys("?2")
    );
    sql::read!(records(&which), listing, buyer::parameter(buyers))
}

/// Builds the query that reads a buyer's payments for one listing, if a block may include them by now. Open payments
/// come first. `buyers` are the buyer's payment keys.
///
/// Rejected payments count too, because other parties may have submitted them.
pub fn maybe_included(listing: &ListingId, buyers: &[KeyHash]) -> Read<Vec<PaymentRecord>> {
    let which = format!(
        "p.listing_id = ?1 AND p.payer_key IN {} AND outbox.state <> 'included' AND outbox.never_included = 0 \
         ORDER BY outbox.phase = 'open' DESC, {OLDEST_AND_NEWEST_FIRST} LIMIT {MAX_CHECKED}",
        buyer::keys("?2")
    );
    sql::read!(records(&which), listing, buyer::parameter(buyers))
}

/// Builds the query that reads a buyer's failed payments for one listing, if a block may still include them. They are
/// ordered alternately from the oldest and the newest.
///
/// A failed payment may still be included because another party submitted it, or because the provider lags. Payments of
/// `wallet` within the last hour are omitted, because the next payment will conflict with them ([`given_up_recently`]).
/// The query reads one row more than [`MAX_CHECKED`], to detect that there are too many.
pub fn unresolved(
    listing: &ListingId,
    buyers: &[KeyHash],
    wallet: Option<&Address>,
    now: Millis,
) -> Read<Vec<PaymentRecord>> {
    let which = format!(
        "p.listing_id = ?1 AND p.payer_key IN {} AND outbox.phase = 'given_up' \
           AND outbox.never_included = 0 \
           AND NOT (?3 IS NOT NULL AND outbox.wallet IS ?3 AND outbox.created_at_ms > ?4) \
         ORDER BY {OLDEST_AND_NEWEST_FIRST} LIMIT {MAX_CHECKED} + 1",
        buyer::keys("?2")
    );
    let since = now.saturating_sub(MAX_LATE_MS);
    sql::read!(records(&which), listing, buyer::parameter(buyers), wallet, since)
}

/// Builds the query that reads the failed payments of a service wallet for a listing, oldest first. Only payments that
/// were recorded within the last [`MAX_LATE_MS`] are read ([`outbox::Replacement`]).
pub fn given_up_recently(wallet: &Address, listing: &ListingId, now: Millis) -> Read<Vec<Entry>> {
    sql::read!(
        "SELECT {ENTRY} FROM payments p JOIN outbox ON outbox.tx_id = p.tx_id WHERE p.payer_key = ?1 \
           AND p.listing_id = ?2 AND outbox.wallet IS NOT NULL AND outbox.phase = 'given_up' \
           AND outbox.created_at_ms > ?3 ORDER BY outbox.created_at_ms LIMIT {MAX_GIVEN_UP} + 1",
        wallet.payment_key(),
        listing,
        now.saturating_sub(MAX_LATE_MS)
    )
}

/// Returns the current slot minus the maximum lag of a provider ([`MAX_LAG_MS`]). If a transaction expired after this
/// slot, the provider may not show the block that includes it yet.
pub(crate) fn oldest_uncertain_slot(now: Millis) -> u64 {
    api_types::SLOTS.slot_at(now).unwrap_or(0).saturating_sub(MAX_LAG_MS / 1_000)
}

/// Builds the statement that records that the content was delivered for a payment. Later deliveries change nothing.
pub fn mark_delivered(tx: &TxHash, now: Millis) -> Write {
    sql::write!("UPDATE payments SET delivered_at_ms = ?2 WHERE tx_id = ?1 AND delivered_at_ms IS NULL", tx, now)
}
