//! Stored payments, and the statements that read them.

use cardano::{Address, ContentHash, KeyHash, TxHash, slots::Millis};
use outbox::{ENTRY_JSON, Entry, EntryState, MAX_GIVEN_UP, MAX_LAG_MS, MAX_LATE_MS, Provenance};
use serde::Deserialize;
use sql::{Statement, statement};

use crate::{
    buyer,
    listing::ListingId,
    purchase::{PURCHASE_JSON, Status},
    release::{ReleaseFacts, Released, Unreleased, facts_json, release},
};

/// Maximum number of a buyer's failed payments that one request looks up on the chain.
pub(crate) const MAX_CHECKED: usize = 8;
/// SQL terms that order failed payments alternately: the oldest, the newest, the second oldest, and so on.
///
/// Retries spend the inputs of the first attempt, so the oldest is the one that a provider may have relayed despite
/// rejecting it. The newest is the one that a lagging provider does not show yet.
const OLDEST_AND_NEWEST_FIRST: &str =
    "min(row_number() OVER (ORDER BY created_at_ms), row_number() OVER (ORDER BY created_at_ms DESC))";

/// A stored payment: a transaction, the listing that it pays for, and its state.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentRecord {
    pub entry: Entry,
    /// The listing that is paid for.
    pub listing_id: ListingId,
    pub payer: Address,
    /// SHA-256 of the `PAYMENT-SIGNATURE` header that contained the payment.
    pub header: ContentHash,
    /// Time in POSIX ms at which the content was first delivered; `None` before that. A response whose client has
    /// disconnected does not count.
    pub delivered_at_ms: Option<Millis>,
    /// The facts that decide whether the content may be released.
    pub facts: ReleaseFacts,
}

impl PaymentRecord {
    /// Returns whether a block includes the payment, so that there is a purchase.
    #[must_use]
    pub const fn is_purchase(&self) -> bool {
        self.facts.status.is_some()
    }

    /// Returns whether the purchase was refunded, so that the buyer no longer owns the listing.
    #[must_use]
    pub const fn is_refunded(&self) -> bool {
        matches!(self.facts.status, Some(Status::Refunded))
    }

    /// Returns whether no answer to the payment's submission is known. The payer may still use such a payment for
    /// another listing.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        self.entry.state == EntryState::Claimed && self.entry.provenance == Provenance::Unknown
    }

    /// Decides whether the payment's content may be released. `confirmations` is the required number of newer blocks,
    /// and `clock` the clock for escrow deadlines in POSIX ms.
    ///
    /// # Errors
    /// Returns the reason why the content may not be released now.
    pub fn release(&self, confirmations: u64, clock: Millis) -> Result<Released, Unreleased> {
        release(&self.facts, confirmations, clock, &api_types::SLOTS)
    }
}

/// Returns the SQL that reads [`PaymentRecord`]s over `p` (payments) and `outbox`. Conditions and order are appended.
fn select_records() -> String {
    let facts = facts_json();
    format!(
        "SELECT json_object('entry', {ENTRY_JSON}, 'listingId', p.listing_id, 'payer', p.payer, \
           'header', p.header_digest, 'deliveredAtMs', p.delivered_at_ms, \
           'facts', {facts}) FROM payments p JOIN outbox ON outbox.tx_id = p.tx_id WHERE "
    )
}

/// Builds the statement that reads a transaction's [`PaymentRecord`].
pub fn by_tx(tx: &TxHash) -> Statement {
    statement!(select_records() + "p.tx_id = ?1", tx)
}

/// Builds the statement that reads the stored data about a presented payment, as [`Known`].
pub fn known(tx: &TxHash, listing: &ListingId, identifier: Option<&str>) -> Statement {
    let records = select_records();
    statement!(
        "SELECT json_object('payload', i.payload_digest, 'record', json(({records} p.tx_id = coalesce(i.tx_id, ?1)))) \
         FROM (SELECT 1) LEFT JOIN payment_identifiers i ON i.listing_id = ?2 AND i.identifier = ?3",
        tx,
        listing,
        identifier
    )
}

/// The stored data that concern a payment which a client has presented.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Known {
    /// The payment to which the client's payment identifier is bound, or else the transaction's own.
    pub record: Option<PaymentRecord>,
    /// Digest of the payload that first came with this identifier.
    pub payload: Option<ContentHash>,
}

/// Builds the statement that reads an included payment, as [`Settled`].
pub(crate) fn settled(tx: &TxHash) -> Statement {
    let records = select_records();
    statement!(
        "SELECT json_object('record', json(({records} p.tx_id = ?1)), \
           'purchase', '' || (SELECT {PURCHASE_JSON} FROM purchases WHERE id = ?1))",
        tx
    )
}

/// A payment that is in a block, with its purchase.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Settled {
    pub record: Option<PaymentRecord>,
    /// The purchase as unparsed JSON.
    pub purchase: Option<String>,
}

/// Builds the statement that reads a transaction's [`PaymentRecord`] if one of these keys paid.
pub fn of_buyers(tx: &TxHash, buyers: &[KeyHash]) -> Statement {
    statement!(select_records() + "p.tx_id = ?1 AND p.payer_key IN " + &buyer::keys("?2"), tx, buyer::parameter(buyers))
}

/// Builds the statement that reads the oldest [`PaymentRecord`] by which one of these keys owns a listing.
pub fn owned(listing: &ListingId, buyers: &[KeyHash]) -> Statement {
    let (records, keys) = (select_records(), buyer::keys("?2"));
    statement!(
        "{records} p.tx_id = (SELECT id FROM purchases WHERE listing_id = ?1 AND status <> 'refunded' AND buyer_key IN {keys} \
           ORDER BY bought_at_ms LIMIT 1)",
        listing,
        buyer::parameter(buyers)
    )
}

/// Builds the statement that reads those payments of a buyer for one listing which a block may include by now, open
/// ones first. `buyers` are the buyer's payment keys.
///
/// Rejected payments count too, because other parties may have submitted them.
pub fn maybe_included(listing: &ListingId, buyers: &[KeyHash]) -> Statement {
    let (records, keys) = (select_records(), buyer::keys("?2"));
    statement!(
        "{records} p.listing_id = ?1 AND p.payer_key IN {keys} AND outbox.state <> 'included' AND outbox.never_included = 0 \
         ORDER BY outbox.state IN ('claimed', 'submitted') DESC, {OLDEST_AND_NEWEST_FIRST} LIMIT {MAX_CHECKED}",
        listing,
        buyer::parameter(buyers)
    )
}

/// Builds the statement that reads those failed payments of a buyer for one listing which may still be included,
/// alternately from the oldest and the newest.
///
/// A failed payment may still be included because another party submitted it, or because the provider lags. Payments of
/// `wallet` within the last hour are omitted, because the next payment will conflict with them ([`given_up_recently`]).
/// One row more than [`MAX_CHECKED`] is read, to detect that there are too many.
pub fn unresolved(listing: &ListingId, buyers: &[KeyHash], wallet: Option<&Address>, now: Millis) -> Statement {
    let (records, keys) = (select_records(), buyer::keys("?2"));
    statement!(
        "{records} p.listing_id = ?1 AND p.payer_key IN {keys} AND outbox.state IN ('refused', 'expired') \
           AND outbox.never_included = 0 \
           AND NOT (?3 IS NOT NULL AND outbox.wallet IS ?3 AND outbox.created_at_ms > ?4) \
         ORDER BY {OLDEST_AND_NEWEST_FIRST} LIMIT {MAX_CHECKED} + 1",
        listing,
        buyer::parameter(buyers),
        wallet.copied(),
        now.saturating_sub(MAX_LATE_MS)
    )
}

/// Builds the statement that reads the payments of a service wallet for a listing that failed within the last hour,
/// oldest first ([`outbox::Earlier`]).
pub fn given_up_recently(wallet: &Address, listing: &ListingId, now: Millis) -> Statement {
    statement!(
        "SELECT {ENTRY_JSON} FROM payments p JOIN outbox ON outbox.tx_id = p.tx_id WHERE p.payer_key = ?1 \
           AND p.listing_id = ?2 AND outbox.wallet IS NOT NULL AND outbox.state IN ('refused', 'expired') \
           AND outbox.created_at_ms > ?3 ORDER BY created_at_ms LIMIT {MAX_GIVEN_UP} + 1",
        wallet.payment_key(),
        listing,
        now.saturating_sub(MAX_LATE_MS)
    )
}

/// Returns the slot after which an expired transaction may still be missing from a provider's view ([`MAX_LAG_MS`]).
pub(crate) fn oldest_uncertain_slot(now: Millis) -> u64 {
    api_types::SLOTS.slot_at(now).unwrap_or(0).saturating_sub(MAX_LAG_MS / 1_000)
}

/// Builds the statement that records that the content was delivered for a payment. Later deliveries change nothing.
pub fn mark_delivered(tx: &TxHash, now: Millis) -> Statement {
    statement!("UPDATE payments SET delivered_at_ms = ?2 WHERE tx_id = ?1 AND delivered_at_ms IS NULL", tx, now)
}
