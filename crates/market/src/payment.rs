//! Payments that were claimed, and the statements that read them.

use cardano::{Address, ContentHash, KeyHash, TxHash, slots::Millis};
use outbox::{ENTRY_JSON, Entry, EntryState, MAX_GIVEN_UP, MAX_LAG_MS, MAX_LATE_MS, Provenance};
use serde::Deserialize;
use sql::{Statement, statement};

use crate::{
    buyer,
    contents::MOST_HELD,
    listing::ListingId,
    purchase::{PURCHASE_JSON, Status},
    release::{FACTS_JSON, Release, ReleaseFacts, release},
};

/// Failed payments of a buyer that one request checks on the chain.
pub(crate) const MAX_CHECKED: usize = 8;
/// SQL for their order: the oldest and the newest first. A retry spends what the first try spent, so the oldest is the
/// one that a provider may have forwarded although it refused it. The newest is the one that a lagging provider does
/// not show.
const OLDEST_AND_NEWEST_FIRST: &str =
    "min(row_number() OVER (ORDER BY created_at_ms), row_number() OVER (ORDER BY created_at_ms DESC))";

/// A payment that was claimed before.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentRecord {
    pub entry: Entry,
    /// What is paid for.
    pub listing_id: ListingId,
    pub payer: Address,
    /// SHA-256 of what carried it here.
    pub header: ContentHash,
    pub delivered: bool,
    /// What its release waits for.
    pub facts: ReleaseFacts,
}

impl PaymentRecord {
    /// Whether a block has it: there is a purchase.
    #[must_use]
    pub const fn is_purchase(&self) -> bool {
        self.facts.status.is_some()
    }

    /// Whether the purchase that it made was refunded: the buyer no longer owns it.
    #[must_use]
    pub const fn is_refunded(&self) -> bool {
        matches!(self.facts.status, Some(Status::Refunded))
    }

    /// Whether its submission has no answer yet: it binds its payer to no listing.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        self.entry.state == EntryState::Claimed && self.entry.provenance == Provenance::Unknown
    }

    /// Whether its content may be released at this time of the escrow clock, POSIX ms.
    #[must_use]
    pub fn release(&self, clock: Millis) -> Release {
        release(&self.facts, clock, &api_types::SLOTS)
    }
}

/// SQL that reads [`PaymentRecord`]s; conditions and order follow, over `p` (payments) and `outbox`.
fn select_records() -> String {
    format!(
        "SELECT json_object('entry', {ENTRY_JSON}, 'listingId', p.listing_id, 'payer', p.payer, \
           'header', p.header_digest, 'delivered', json(iif(p.delivered_at_ms IS NULL, 'false', 'true')), \
           'facts', {FACTS_JSON}) FROM payments p JOIN outbox ON outbox.tx_id = p.tx_id WHERE "
    )
}

/// The statement that reads the payment by a transaction, as [`PaymentRecord`].
pub fn by_tx(tx: &TxHash) -> Statement {
    statement!(select_records() + "p.tx_id = ?1", tx)
}

/// The statement that reads what is known of a payment that is presented, as [`Known`].
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

/// An answer to [`known`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Known {
    /// The payment that answers its client's name for it, or else the payment by its transaction.
    pub record: Option<PaymentRecord>,
    /// The digest of the payload that came under this name, where the name is known.
    pub payload: Option<ContentHash>,
}

/// The statement that reads a payment that a block has, as [`Settled`].
pub(crate) fn settled(tx: &TxHash) -> Statement {
    let records = select_records();
    statement!(
        "SELECT json_object('record', json(({records} p.tx_id = ?1)), \
           'purchase', '' || (SELECT {PURCHASE_JSON} FROM purchases WHERE id = ?1))",
        tx
    )
}

/// An answer to [`settled`].
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Settled {
    pub record: Option<PaymentRecord>,
    /// The purchase that it made, as the text of a JSON object: who does not need it is not kept by it.
    pub purchase: Option<String>,
}

/// The statement that reads the payment by a transaction, where one of these buyers made it, as [`PaymentRecord`].
pub fn of_buyers(tx: &TxHash, buyers: &[KeyHash]) -> Statement {
    statement!(select_records() + "p.tx_id = ?1 AND p.payer_key IN " + &buyer::keys("?2"), tx, buyer::parameter(buyers))
}

/// The statement that reads the oldest payment by which one of these buyers owns a listing, as [`PaymentRecord`].
pub fn owned(listing: &ListingId, buyers: &[KeyHash]) -> Statement {
    let (records, keys) = (select_records(), buyer::keys("?2"));
    statement!(
        "{records} p.tx_id = (SELECT id FROM purchases WHERE listing_id = ?1 AND status <> 'refunded' AND buyer_key IN {keys} \
           ORDER BY bought_at_ms LIMIT 1)",
        listing,
        buyer::parameter(buyers)
    )
}

/// The statement that reads the buyer's payments for a listing that may be in a block by now, open ones first, as
/// [`PaymentRecord`]s. A ledger's refusal proves little: others may have handed the payment in.
pub fn maybe_included(listing: &ListingId, buyers: &[KeyHash]) -> Statement {
    let (records, keys) = (select_records(), buyer::keys("?2"));
    statement!(
        "{records} p.listing_id = ?1 AND p.payer_key IN {keys} AND outbox.state <> 'included' AND outbox.never_included = 0 \
         ORDER BY outbox.state IN ('claimed', 'submitted') DESC, {OLDEST_AND_NEWEST_FIRST} LIMIT {MAX_CHECKED}",
        listing,
        buyer::parameter(buyers)
    )
}

/// The statement that reads the buyer's failed payments for a listing that may still be in a block, oldest and
/// newest first, as [`PaymentRecord`]s. Others may have submitted them, or the provider lagged. Not those that this
/// wallet made within the last hour, which the next payment excludes by spending what they spend
/// ([`given_up_recently`]). One more than [`MAX_CHECKED`] tells that there are too many.
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

/// The statement that reads the payments of a service wallet for a listing that failed within the last hour
/// ([`outbox::Earlier`]), oldest first.
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

/// The first slot after which a transaction that expired may still be missing from a provider's view ([`MAX_LAG_MS`]).
pub(crate) fn oldest_uncertain_slot(now: Millis) -> u64 {
    api_types::SLOTS.slot_at(now).unwrap_or(0).saturating_sub(MAX_LAG_MS / 1_000)
}

/// The statement that marks a payment's content as delivered, if the database has it and it is short enough to be read
/// in the same batch ([`crate::contents::MOST_HELD`]).
pub(crate) fn mark_delivered_with(tx: &TxHash, content: &ContentHash, now: Millis) -> Statement {
    statement!(
        "UPDATE payments SET delivered_at_ms = ?3 WHERE tx_id = ?1 AND delivered_at_ms IS NULL AND EXISTS \
         (SELECT 1 FROM contents WHERE hash = ?2 AND octet_length(content) <= {MOST_HELD})",
        tx,
        content,
        now
    )
}

/// The statement that notes that content was delivered for a payment: from now on its header alone opens nothing.
pub fn mark_delivered(tx: &TxHash, now: Millis) -> Statement {
    statement!("UPDATE payments SET delivered_at_ms = ?2 WHERE tx_id = ?1 AND delivered_at_ms IS NULL", tx, now)
}
