//! Purchases: what was bought, by whom, and what became of it. They exist once their transaction is in a block.

use cardano::{Address, Lovelace, TxHash, chain::Inclusion};
use escrow::Datum;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sql::{Database, DatabaseError, Statement, statement};

use crate::listing::DeliveryMode;

/// Purchases that one answer lists at most.
const MAX_LISTED: u32 = 1_000;

/// A purchase as the public JSON, with its timeline in the chain's order; within a block, a creator is paid for what ended.
pub(crate) const PURCHASE_JSON: &str = "json_patch('{}', json_object('id', id, 'listingId', listing_id, 'mode', mode, \
    'buyerAddress', buyer_address, 'txHash', id, 'status', status, \
    'events', (SELECT json_group_array(json_object('status', e.status, 'txHash', e.tx_hash, 'at', CAST(e.at_ms AS TEXT))) \
      FROM (SELECT * FROM purchase_events WHERE purchase_id = purchases.id ORDER BY at_ms, \
      status = 'creator_paid', position) AS e), \
    'escrow', json(escrow), 'verification', verification))";

/// What a buyer found when comparing what was delivered with what was listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verification {
    /// It is what was listed.
    Ok,
    /// It is something else.
    Mismatch,
    /// Nothing was posted yet.
    NoResultYet,
}

impl Verification {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Mismatch => "mismatch",
            Self::NoResultYet => "no_result_yet",
        }
    }
}

/// The statements that record an instant payment that is in a block: the purchase, its timeline, and with them (by
/// trigger) the figures of the listing and its seller. Recording it again changes nothing.
#[must_use]
pub fn record_instant(tx: &TxHash, inclusion: &Inclusion) -> [Statement; 2] {
    let tx = tx.to_string();
    [
        statement!(
            "INSERT INTO purchases (id, listing_id, mode, seller_address, buyer_address, price_lovelace, status, bought_at_ms) \
             SELECT p.tx_id, p.listing_id, p.mode, l.seller_address, p.payer, p.amount_lovelace, 'settled', ?2 \
             FROM settlements p JOIN listings l ON l.id = p.listing_id WHERE p.tx_id = ?1 AND p.mode = 'instant' \
             ON CONFLICT (id) DO NOTHING",
            tx.as_str(),
            inclusion.time_ms,
        ),
        event(&tx, &tx, "settled", inclusion.time_ms, 0),
    ]
}

/// The escrow that a lock made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEscrow {
    /// Which output of the lock's transaction it is.
    pub index: u16,
    /// Its address, bech32.
    pub address: String,
    /// Its datum.
    pub datum: Datum,
    /// What it holds.
    pub locked: Lovelace,
}

/// The statements that record a lock that is in a block: the purchase, its timeline, the escrow to watch, and (by
/// trigger) the figures. Recording it again changes nothing.
#[must_use]
pub fn record_protected(tx: &TxHash, inclusion: &Inclusion, escrow: &NewEscrow) -> [Statement; 3] {
    let tx = tx.to_string();
    [
        statement!(
            "INSERT INTO purchases (id, listing_id, mode, seller_address, buyer_address, price_lovelace, status, \
               bought_at_ms, escrow) \
             SELECT p.tx_id, p.listing_id, p.mode, l.seller_address, p.payer, p.amount_lovelace, ?2, ?3, ?4 \
             FROM settlements p JOIN listings l ON l.id = p.listing_id WHERE p.tx_id = ?1 AND p.mode = 'protected' \
             ON CONFLICT (id) DO NOTHING",
            tx.as_str(),
            escrow.datum.state.name(),
            inclusion.time_ms,
            escrow_json(&tx, &escrow.address, &escrow.datum),
        ),
        event(&tx, &tx, escrow.datum.state.name(), inclusion.time_ms, 0),
        statement!(
            "INSERT INTO escrows (purchase_id, utxo, address, datum, locked_lovelace, next_at_ms) \
             SELECT id, ?2, ?3, ?4, CAST(?5 AS INTEGER), ?6 FROM purchases WHERE id = ?1 ON CONFLICT DO NOTHING",
            tx.as_str(),
            format!("{tx}#{}", escrow.index),
            escrow.address.as_str(),
            hex::encode(escrow.datum.to_cbor()),
            escrow.locked,
            inclusion.time_ms,
        ),
    ]
}

/// An escrow as the public JSON. `purchase` is the lock's transaction id, by which the purchaser is identified.
#[must_use]
pub fn escrow_json(purchase: &str, address: &str, datum: &Datum) -> String {
    let deadlines = &datum.deadlines;
    let mut escrow = serde_json::Map::new();
    escrow.insert("address".into(), json!(address));
    escrow.insert("inputHash".into(), json!(hex::encode(&datum.input_hash)));
    if !datum.result_hash.is_empty() {
        escrow.insert("resultHash".into(), json!(hex::encode(&datum.result_hash)));
    }
    escrow.insert("identifierFromPurchaser".into(), json!(purchase));
    escrow.insert(
        "deadlines".into(),
        json!({
            "payBy": deadlines.pay_by.to_string(),
            "submitResult": deadlines.submit_result.to_string(),
            "unlock": deadlines.unlock.to_string(),
            "externalDisputeUnlock": deadlines.external_dispute_unlock.to_string(),
        }),
    );
    serde_json::Value::Object(escrow).to_string()
}

/// The statement that adds an event to a purchase's timeline, once. `position` orders events of one block.
#[must_use]
pub fn event(purchase: &str, tx: &str, status: &str, at_ms: u64, position: u64) -> Statement {
    statement!(
        "INSERT INTO purchase_events (purchase_id, tx_hash, status, at_ms, position) \
         SELECT id, ?2, ?3, ?4, ?5 FROM purchases WHERE id = ?1 ON CONFLICT DO NOTHING",
        purchase,
        tx,
        status,
        at_ms,
        position,
    )
}

/// One purchase as JSON.
///
/// # Errors
/// The database cannot be asked.
pub async fn one(db: &impl Database, id: &TxHash) -> Result<Option<String>, DatabaseError> {
    Ok(db.run(read(id)).await?.rows.into_iter().next())
}

/// The statement that reads a purchase as JSON.
#[must_use]
pub fn read(id: &TxHash) -> Statement {
    statement!(format!("SELECT {PURCHASE_JSON} FROM purchases WHERE id = ?1"), id.to_string())
}

/// What a seller sold, newest first, as a JSON array.
///
/// # Errors
/// The database cannot be asked.
pub async fn of_seller(db: &impl Database, seller: &Address) -> Result<String, DatabaseError> {
    let sql = format!(
        "SELECT {PURCHASE_JSON} FROM purchases WHERE seller_address = ?1 ORDER BY bought_at_ms DESC, id DESC LIMIT {MAX_LISTED}"
    );
    let rows = db.run(statement!(sql, seller.to_string())).await?.rows;
    Ok(format!("[{}]", rows.join(",")))
}

/// Whose a purchase is, of what, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owned {
    /// The purchase: the payment's or the lock's transaction id.
    pub id: TxHash,
    /// The listing.
    pub listing_id: String,
    /// How it was bought.
    pub mode: DeliveryMode,
    /// Who paid.
    pub buyer_address: Address,
    /// What became of it.
    pub status: String,
}

const OWNED_JSON: &str = "json_object('id', id, 'listingId', listing_id, 'mode', mode, 'buyerAddress', buyer_address, \
    'status', status)";

/// The statement that reads a purchase as [`Owned`].
#[must_use]
pub fn owner(id: &TxHash) -> Statement {
    statement!(format!("SELECT {OWNED_JSON} FROM purchases WHERE id = ?1"), id.to_string())
}

/// The statement that reads the newest purchase of a listing by this buyer that was not refunded, as [`Owned`].
#[must_use]
pub fn owned(listing: &str, buyer: &Address) -> Statement {
    let sql = format!(
        "SELECT {OWNED_JSON} FROM purchases WHERE buyer_address = ?2 AND listing_id = ?1 AND status <> 'refunded' \
         ORDER BY bought_at_ms DESC LIMIT 1"
    );
    statement!(sql, listing, buyer.to_string())
}

/// Records a buyer's verdict and answers the purchase as JSON.
///
/// # Errors
/// The database cannot be asked.
pub async fn verify(db: &impl Database, id: &TxHash, verdict: Verification) -> Result<Option<String>, DatabaseError> {
    let set = statement!("UPDATE purchases SET verification = ?2 WHERE id = ?1", id.to_string(), verdict.as_str());
    let [_, read] = sql::exactly(db.batch(vec![set, read(id)]).await?)?;
    Ok(read.rows.into_iter().next())
}
