//! Purchases: payments that a block includes, with their buyers and their status.

use std::str::FromStr;

use api_types::{ListingFacts, Purchase};
pub use api_types::{PurchaseStatus as Status, Verification};
use cardano::{Address, KeyHash, Lovelace, TxHash, slots::Millis};
use escrow::plan::Escrow;
use serde::Deserialize;
use sql::{Database, DatabaseError, Read, Statement, Write, statement};

use crate::{buyer, catalogue::Page, listing::ListingId};

/// Maximum number of purchases in one response.
pub(crate) const MAX_LISTED: u32 = 1_000;

/// SQL expression for a purchase as public JSON, with its timeline in chain order and the creator's payout.
pub(crate) const PURCHASE_JSON: &str = include_str!("purchase_json.sql");

/// Builds the statements that record the terms and the first step of a lock that a block includes. The statements write
/// nothing if no block includes it.
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

/// Returns the SQL for `columns` of a purchase's newest step. `purchase` is an SQL expression for the purchase's id.
pub(crate) fn newest(columns: &str, purchase: &str) -> String {
    format!("(SELECT {columns} FROM escrow_steps WHERE purchase_id = {purchase} ORDER BY position DESC LIMIT 1)")
}

/// Returns a purchase as JSON.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn one(db: &impl Database, id: &TxHash) -> Result<Option<String>, DatabaseError> {
    db.fetch(read(id)).await
}

/// Builds the query that reads a purchase as JSON.
pub fn read(id: &TxHash) -> Read<Option<String>> {
    sql::read!("SELECT {PURCHASE_JSON} FROM purchases WHERE id = ?1", id)
}

/// Facts of a purchase, for a statement that the service signs.
#[derive(Debug, Deserialize)]
pub struct Facts {
    pub listing: ListingFacts,
    pub purchase: Purchase,
}

/// Builds the statement that reads a purchase with its listing, even one that is off sale, as JSON of [`Facts`].
pub fn facts(id: &TxHash) -> Statement {
    statement!(
        "SELECT json_object('listing', json((SELECT json_object('id', l.id, 'contentHash', l.content_hash, \
           'priceLovelace', CAST(purchases.price_lovelace AS TEXT), 'sellerAddress', l.seller_address) \
           FROM listings l WHERE l.id = purchases.listing_id)), 'purchase', json({PURCHASE_JSON})) \
         FROM purchases WHERE id = ?1",
        id
    )
}

/// Returns the SQL that reads the newest purchases as JSON, at most `most`. `clause` (`WHERE ...`) selects them.
pub(crate) fn newest_of(clause: &str, most: u32) -> String {
    format!(
        "WITH picked AS MATERIALIZED (SELECT id AS which FROM purchases {clause} \
           ORDER BY bought_at_ms DESC, id DESC LIMIT {most}) \
         SELECT {PURCHASE_JSON} FROM picked CROSS JOIN purchases ON id = which ORDER BY bought_at_ms DESC, id DESC"
    )
}

/// Returns a seller's sales as a JSON array, newest first. If `buyers` is not empty, returns only sales to these
/// buyers.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn of_seller(db: &impl Database, seller: &Address, buyers: &[KeyHash]) -> Result<String, DatabaseError> {
    let clause = match buyers {
        [] => "INDEXED BY purchases_by_seller WHERE seller_address = ?1 AND ?2 IS NULL",
        [_, ..] => {
            "INDEXED BY purchases_between WHERE seller_address = ?1 AND buyer_key IN (SELECT value FROM json_each(?2))"
        }
    };
    let buyers = (!buyers.is_empty()).then(|| buyer::parameter(buyers));
    let rows = db.run(statement!(newest_of(clause, MAX_LISTED), seller, buyers)).await?.rows;
    Ok(format!("[{}]", rows.join(",")))
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

impl FromStr for Cursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (at, id) = text.split_once('.').ok_or(())?;
        Ok(Self { at: at.parse().map_err(|_| ())?, id: id.parse().map_err(|_| ())? })
    }
}

/// Returns a page of these buyers' purchases, newest first. Each purchase has its listing's `title` and
/// `priceLovelace`.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn of_buyers(db: &impl Database, buyers: &[KeyHash], after: Option<Cursor>) -> Result<Page, DatabaseError> {
    let keys = buyer::keys("?1");
    let read = statement!(
        "WITH picked AS MATERIALIZED (SELECT id AS which FROM purchases \
           WHERE buyer_key IN {keys} AND (?2 IS NULL OR (bought_at_ms, id) < (?2, ?3)) \
           ORDER BY bought_at_ms DESC, id DESC LIMIT {BUYERS_PAGE} + 1) \
         SELECT bought_at_ms || '.' || id || ' ' || json_patch({PURCHASE_JSON}, (SELECT json_object('title', l.title, \
           'priceLovelace', CAST(purchases.price_lovelace AS TEXT)) FROM listings l WHERE l.id = purchases.listing_id)) \
         FROM picked CROSS JOIN purchases ON id = which ORDER BY bought_at_ms DESC, id DESC",
        buyer::parameter(buyers),
        after.map(|cursor| cursor.at),
        after.map(|cursor| cursor.id)
    );
    let rows = db.run(read).await?.rows;
    let shown: Vec<(&str, &str)> = rows.iter().take(BUYERS_PAGE).filter_map(|row| row.split_once(' ')).collect();
    let next = shown.last().filter(|_| rows.len() > BUYERS_PAGE).map(|(cursor, _)| (*cursor).to_owned());
    Ok(Page {
        json: format!("[{}]", shown.iter().map(|(_, json)| *json).collect::<Vec<_>>().join(",")),
        next,
        some_words: false,
    })
}

/// Builds the query that reads the newest purchase by which one of these keys owns a listing.
pub fn owned_by(listing: &ListingId, buyers: &[KeyHash]) -> Read<Option<TxHash>> {
    let keys = buyer::keys("?2");
    sql::read!(
        "SELECT id FROM purchases WHERE listing_id = ?1 AND status <> 'refunded' \
           AND buyer_key IN {keys} ORDER BY bought_at_ms DESC LIMIT 1",
        listing,
        buyer::parameter(buyers),
    )
}

/// Stores a buyer's verdict and returns the purchase as JSON. If a service wallet paid, a reported mismatch makes the
/// watcher dispute the delivery. Idempotent.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn verify(db: &impl Database, id: &TxHash, verdict: Verification) -> Result<Option<String>, DatabaseError> {
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
    Ok(purchase)
}
