//! Which escrows somebody may have to act on now, and what is known of them.

use cardano::{Address, ContentHash, Lovelace, TxHash, TxRef, slots::Millis};
use escrow::Datum;
use serde::Deserialize;
use sql::{DatabaseError, Statement, statement};

/// Escrows that one tick looks at, those with the earliest deadline first: as many as its calls may reach, and no more than
/// have room in a worker's memory with their contents.
const fn most_due(calls: u32) -> u32 {
    let reached = calls.saturating_mul(3) / 5;
    if reached > MOST_DUE { MOST_DUE } else { reached }
}
const MOST_DUE: u32 = 96;
/// Where waiting loses nothing (collecting, refunding, asking the arbiter), how long after the last of its deadlines an
/// escrow comes before those that have one still ahead.
const NO_DEADLINE_MS: Millis = 60 * 60 * 1_000;
/// How long after an action that failed it is tried again; twice as long after each further failure, but never so long
/// that a deadline of a quarter of an hour could pass.
const RETRY_MS: Millis = 30_000;
/// How often that is doubled.
const MAX_DOUBLINGS: u32 = 3;

/// An escrow that is due, and what was sold.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Due {
    pub purchase: TxHash,
    pub utxo: TxRef,
    datum: String,
    pub listing_id: String,
    pub content_hash: ContentHash,
    pub price: Lovelace,
    pub creator: Address,
    pub verification: Option<String>,
    /// When it was to be looked at, as it was read.
    next_at: Millis,
    /// The account whose service wallet bought, if one did.
    pub holder: Option<Holder>,
}

/// Whose service wallet it is.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// The account.
    pub owner: String,
    /// The wallet.
    pub wallet: Address,
    /// The version of its derivation.
    pub key_version: u32,
}

/// A creator who is to be paid after a dispute was won.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Owed {
    pub purchase: TxHash,
    pub price: Lovelace,
    pub creator: Address,
}

impl Due {
    pub fn datum(&self) -> Result<Datum, DatabaseError> {
        let cbor = hex::decode(&self.datum).ok();
        cbor.and_then(|cbor| Datum::from_cbor(&cbor).ok())
            .ok_or_else(|| DatabaseError(format!("the escrow of {} cannot be read", self.purchase)))
    }
}

/// The statement that reads what is due and has no transaction of ours under way: by the time until which it must be
/// done, which is the seller's for a result before there is one, and the buyer's for a dispute then. What can wait comes
/// after, but not for ever.
pub(super) fn due(clock: Millis, calls: u32) -> Statement {
    statement!(
        format!(
            "SELECT json_object('purchase', e.purchase_id, 'utxo', e.utxo, 'datum', e.datum, 'listingId', p.listing_id, \
               'contentHash', l.content_hash, 'price', CAST(p.price_lovelace AS TEXT), 'creator', p.seller_address, \
               'verification', p.verification, 'nextAt', e.next_at_ms, 'holder', json((SELECT json_object('owner', a.owner, \
                 'wallet', a.wallet_address, 'keyVersion', a.key_version) \
                 FROM accounts a WHERE a.wallet_address = p.buyer_address))) \
             FROM escrows e JOIN purchases p ON p.id = e.purchase_id JOIN listings l ON l.id = p.listing_id \
             WHERE e.utxo IS NOT NULL AND e.next_at_ms <= ?1 \
               AND NOT EXISTS (SELECT 1 FROM reservations r WHERE r.tx_in = e.utxo) \
             ORDER BY CASE p.status WHEN 'ResultSubmitted' THEN iif({unlock} > ?1, {unlock}, {some_day}) \
               WHEN 'FundsLocked' THEN iif({submit} > ?1, {submit}, {some_day}) \
               WHEN 'RefundRequested' THEN iif({submit} > ?1, {submit}, {some_day}) ELSE {some_day} END, e.purchase_id \
             LIMIT {most}",
            most = most_due(calls),
            submit = deadline("submitResult"),
            unlock = deadline("unlock"),
            some_day = format!("{} + {NO_DEADLINE_MS}", deadline("externalDisputeUnlock")),
        ),
        clock
    )
}

/// SQL for a deadline of a purchase's escrow.
fn deadline(name: &str) -> String {
    format!("CAST(p.escrow ->> '$.deadlines.{name}' AS INTEGER)")
}

/// The statement that reads which creators are owed and have no payout under way.
pub(super) fn owed() -> Statement {
    statement!(
        "SELECT json_object('purchase', e.purchase_id, 'price', CAST(p.price_lovelace AS TEXT), 'creator', p.seller_address) \
         FROM escrows e JOIN purchases p ON p.id = e.purchase_id WHERE e.creator_due = 1 \
           AND NOT EXISTS (SELECT 1 FROM settlements s WHERE s.purpose = 'payout:' || e.purchase_id) LIMIT 4"
    )
}

/// The statement that says when to look at an escrow again, unless something about it has changed since it was read.
pub(super) fn look_again(due: &Due, at: Millis) -> Statement {
    statement!(
        "UPDATE escrows SET next_at_ms = ?3 WHERE purchase_id = ?1 AND utxo = ?2 AND next_at_ms = ?4 \
         AND (SELECT verification FROM purchases WHERE id = ?1) IS ?5",
        due.purchase.to_string(),
        due.utxo.to_string(),
        at,
        due.next_at,
        due.verification.clone(),
    )
}

/// The statement that says when to try an action again that failed, unless the escrow has gone on since.
pub(super) fn put_off(due: &Due, now: Millis) -> Statement {
    statement!(
        format!(
            "UPDATE escrows SET next_at_ms = ?3 + ?4 * (1 << min(failures, {MAX_DOUBLINGS})), failures = failures + 1 \
             WHERE purchase_id = ?1 AND utxo = ?2"
        ),
        due.purchase.to_string(),
        due.utxo.to_string(),
        now,
        RETRY_MS
    )
}

/// The statements that look at every open escrow again when the watcher acts for somebody else than before: what it had
/// no key for then it may have one for now.
pub(super) fn acts_as(who: &str) -> [Statement; 2] {
    [
        statement!(
            // Joined in this order, so that no escrow is read as long as nothing changes.
            "UPDATE escrows SET next_at_ms = 0 WHERE purchase_id IN \
             (SELECT e.purchase_id FROM chain_reading CROSS JOIN escrows e \
              WHERE acts_as IS NOT ?1 AND e.utxo IS NOT NULL AND e.next_at_ms > 0)",
            who
        ),
        statement!("UPDATE chain_reading SET acts_as = ?1 WHERE acts_as IS NOT ?1", who),
    ]
}
