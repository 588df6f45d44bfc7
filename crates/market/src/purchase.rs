//! Purchases: payments that a block includes, with their buyers and their status.

use std::{fmt, str::FromStr};

use api_types::{Decision, EscrowDeadlines, ListingFacts, Purchase, PurchaseEvent};
pub use api_types::{PurchaseStatus as Status, Verification};
use cardano::{Address, ContentHash, KeyHash, Lovelace, TxHash, slots::Millis};
use escrow::plan::Escrow;
use serde::Deserialize;
use sql::{Answer, Database, DatabaseError, Param, Read, Write};

use crate::{
    buyer,
    listing::{DeliveryMode, ListingId},
};

/// Maximum number of purchases in one response.
pub(crate) const MAX_LISTED: u32 = 1_000;

/// Builds the statements that store the terms of a lock and the first step of its escrow. They write nothing until a
/// block includes the lock's transaction.
pub(crate) fn record_lock(tx: &TxHash, Escrow { utxo, datum }: &Escrow) -> [Write; 2] {
    let deadlines = &datum.deadlines;
    let terms = sql::write!(
        "INSERT INTO locks (purchase_id, address, input_hash, pay_by_ms, submit_result_ms, unlock_ms, \
           external_dispute_unlock_ms) SELECT id, ?2, ?3, ?4, ?5, ?6, ?7 FROM purchases WHERE id = ?1 ON CONFLICT DO NOTHING",
        tx,
        utxo.address.as_str(),
        hex::encode(&datum.input_hash),
        deadlines.pay_by,
        deadlines.submit_result,
        deadlines.unlock,
        deadlines.external_dispute_unlock,
    );
    let step = sql::write!(
        "INSERT INTO escrow_steps (purchase_id, tx_id, height, position, at_ms, status, utxo, datum, locked_lovelace, \
           creator_paid) SELECT p.id, p.id, o.block_height, 0, o.block_time_ms, ?2, ?3, ?4, CAST(?5 AS INTEGER), 0 \
         FROM purchases p JOIN outbox o ON o.tx_id = p.id WHERE p.id = ?1 ON CONFLICT DO NOTHING",
        tx,
        Status::from(datum.state).name(),
        utxo.reference,
        hex::encode(datum.to_cbor()),
        utxo.value.lovelace,
    );
    [terms, step]
}

/// Returns an SQL subquery for `columns` of a purchase's newest escrow step, which is the last transaction that changed
/// the escrow. `purchase` is an SQL expression for the purchase's id.
pub(crate) fn newest(columns: &str, purchase: &str) -> String {
    format!("(SELECT {columns} FROM escrow_steps WHERE purchase_id = {purchase} ORDER BY position DESC LIMIT 1)")
}

/// A stored purchase, from which a [`Purchase`] is made.
#[derive(Clone, Debug, Deserialize)]
pub struct PurchaseRow {
    id: TxHash,
    listing_id: String,
    mode: DeliveryMode,
    status: Status,
    buyer_address: Address,
    seller_address: Address,
    bought_at_ms: Millis,
    content_hash: ContentHash,
    price: Lovelace,
    #[serde(deserialize_with = "sql::flag")]
    paid_from_balance: bool,
    verification: Option<Verification>,
    /// Address of the contract; like the following six fields, `None` for instant purchases.
    address: Option<String>,
    input_hash: Option<String>,
    result_hash: Option<String>,
    pay_by_ms: Option<Millis>,
    submit_result_ms: Option<Millis>,
    unlock_ms: Option<Millis>,
    external_dispute_unlock_ms: Option<Millis>,
    /// Party that won the dispute, and the arbiter's reason; `None` until the arbiter has decided.
    winner: Option<String>,
    reason: Option<String>,
    decision_tx: Option<TxHash>,
    #[serde(deserialize_with = "sql::json")]
    events: Vec<PurchaseEvent>,
}

impl From<PurchaseRow> for Purchase {
    fn from(row: PurchaseRow) -> Self {
        let hash = |text: Option<String>| text.and_then(|text| text.parse().ok());
        let deadlines = EscrowDeadlines {
            pay_by: row.pay_by_ms,
            submit_result: row.submit_result_ms,
            unlock: row.unlock_ms,
            external_dispute_unlock: row.external_dispute_unlock_ms,
        };
        let escrow = row.address.map(|address| api_types::Escrow {
            address,
            input_hash: hash(row.input_hash),
            result_hash: hash(row.result_hash),
            identifier_from_purchaser: Some(row.id),
            deadlines: Some(deadlines),
        });
        let decision = row.winner.zip(row.reason);
        Self {
            id: row.id,
            listing_id: row.listing_id,
            mode: row.mode,
            buyer_address: row.buyer_address,
            paid_from_balance: row.paid_from_balance.then_some(true),
            tx_hash: row.id,
            status: row.status,
            events: row.events,
            escrow,
            verification: row.verification,
            decision: decision.map(|(winner, reason)| Decision { winner, reason, tx_hash: row.decision_tx }),
        }
    }
}

impl PurchaseRow {
    /// Returns the facts of the listing, for a statement that the service signs.
    #[must_use]
    pub fn listing(&self) -> ListingFacts {
        ListingFacts {
            id: self.listing_id.clone(),
            content_hash: self.content_hash,
            price_lovelace: self.price,
            seller_address: self.seller_address,
        }
    }
}

/// Builds the query that reads the purchases whose ids an SQL query selects, newest first. `params` are the query's
/// parameters.
fn select<T: Answer>(picked: &str, params: Vec<Param>) -> Read<T> {
    Read::new(format!(include_str!("purchases.sql"), picked = picked), params)
}

/// Builds the query that reads the newest purchases that match an SQL clause (`WHERE ...`), at most [`MAX_LISTED`].
pub(crate) fn newest_of(clause: &str, params: Vec<Param>) -> Read<Vec<PurchaseRow>> {
    select(&format!("SELECT id FROM purchases {clause} ORDER BY bought_at_ms DESC, id DESC LIMIT {MAX_LISTED}"), params)
}

/// Builds the query that reads a purchase.
pub fn read(id: &TxHash) -> Read<Option<PurchaseRow>> {
    select("SELECT ?1", vec![id.into()])
}

/// Returns a purchase.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn one(db: &impl Database, id: &TxHash) -> Result<Option<Purchase>, DatabaseError> {
    Ok(db.fetch(read(id)).await?.map(Into::into))
}

fn shown(rows: Vec<PurchaseRow>) -> Vec<Purchase> {
    rows.into_iter().map(Into::into).collect()
}

/// Returns a seller's sales, newest first; only those to `buyers` if any are given.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn of_seller(
    db: &impl Database,
    seller: &Address,
    buyers: &[KeyHash],
) -> Result<Vec<Purchase>, DatabaseError> {
    let clause = match buyers {
        [] => "INDEXED BY purchases_by_seller WHERE seller_address = ?1 AND ?2 IS NULL",
        [_, ..] => {
            "INDEXED BY purchases_between WHERE seller_address = ?1 AND buyer_key IN (SELECT value FROM json_each(?2))"
        }
    };
    let buyers = (!buyers.is_empty()).then(|| buyer::parameter(buyers));
    Ok(shown(db.fetch(newest_of(clause, vec![seller.into(), buyers.into()])).await?))
}

/// A sale, as its seller sees it.
#[derive(Clone, Debug, Deserialize)]
pub struct Sale {
    pub id: TxHash,
    pub title: String,
    pub status: Status,
    /// Time of the sale, POSIX ms.
    pub sold_at: Millis,
    /// The seller's share.
    pub amount: Lovelace,
    /// Transaction that paid the seller; `None` until a block includes it.
    pub paid_by: Option<TxHash>,
    /// Time in POSIX ms of the block in which the seller was paid; `None` until then.
    pub paid_at: Option<Millis>,
}

/// Builds the query that reads an address's sales, newest first.
pub fn sales(address: &str) -> Read<Vec<Sale>> {
    sql::read!(format!(include_str!("sales.sql"), most = MAX_LISTED), address)
}

/// Page size of a buyer's purchases.
const BUYERS_PAGE: usize = 20;

/// Position in a buyer's list of purchases: the time (POSIX ms) and the id of the last purchase before it. Written as
/// `time.id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    at: u64,
    id: TxHash,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.at, self.id)
    }
}

impl FromStr for Cursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (at, id) = text.split_once('.').ok_or(())?;
        Ok(Self { at: at.parse().map_err(|_| ())?, id: id.parse().map_err(|_| ())? })
    }
}

/// Returns a page of these buyers' purchases, newest first, and the cursor of the next page if there is one.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn of_buyers(
    db: &impl Database,
    buyers: &[KeyHash],
    after: Option<Cursor>,
) -> Result<(Vec<Purchase>, Option<Cursor>), DatabaseError> {
    let picked = format!(
        "SELECT id FROM purchases WHERE buyer_key IN {} AND (?2 IS NULL OR (bought_at_ms, id) < (?2, ?3)) \
         ORDER BY bought_at_ms DESC, id DESC LIMIT {BUYERS_PAGE} + 1",
        buyer::keys("?1")
    );
    let params =
        vec![buyer::parameter(buyers), after.map(|cursor| cursor.at).into(), after.map(|cursor| cursor.id).into()];
    let mut rows: Vec<PurchaseRow> = db.fetch(select(&picked, params)).await?;
    let has_more = rows.len() > BUYERS_PAGE;
    rows.truncate(BUYERS_PAGE);
    let next = rows.last().filter(|_| has_more).map(|last| Cursor { at: last.bought_at_ms, id: last.id });
    Ok((shown(rows), next))
}

/// Builds the query that reads the id of a buyer's newest purchase of a listing. Refunded purchases do not count.
/// `buyers` are the buyer's payment keys.
pub fn owned_by(listing: &ListingId, buyers: &[KeyHash]) -> Read<Option<TxHash>> {
    let keys = buyer::keys("?2");
    sql::read!(
        "SELECT id FROM purchases WHERE listing_id = ?1 AND status <> 'refunded' \
           AND buyer_key IN {keys} ORDER BY bought_at_ms DESC LIMIT 1",
        listing,
        buyer::parameter(buyers),
    )
}

/// Stores a buyer's verdict and returns the purchase. If a service wallet paid, a reported mismatch makes the
/// watcher dispute the delivery. Idempotent.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn verify(db: &impl Database, id: &TxHash, verdict: Verification) -> Result<Option<Purchase>, DatabaseError> {
    let look: Write = sql::write!(
        "UPDATE escrow_watch SET next_at_ms = 0 WHERE purchase_id = ?1 AND ?2 = 'mismatch' AND EXISTS (SELECT 1 \
           FROM payments p JOIN accounts a ON a.wallet_address = p.payer WHERE p.tx_id = ?1 \
           AND p.verification IS NOT ?2)",
        id,
        verdict.as_str()
    );
    let set: Write = sql::write!(
        "UPDATE payments SET verification = ?2 WHERE tx_id = ?1 AND verification IS NOT ?2 \
           AND EXISTS (SELECT 1 FROM purchases WHERE id = ?1)",
        id,
        verdict.as_str()
    );
    let ((), (), purchase) = db.batch((look, set, read(id))).await?;
    Ok(purchase.map(Into::into))
}
