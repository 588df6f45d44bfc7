//! A seller takes a listing off sale, and puts it back.
//!
//! ```text
//! for sale ── take off ──> taken off ── relist ──> for sale        (its seller)
//!     └────── hide ───────────> hidden ── show ──────> for sale    (an operator: docs/operations.md)
//! ```
//!
//! `taken_off` says that the seller alone hid it: what an operator hides has it at 0, and no seller puts that back.

use cardano::Address;
use sql::{Database, DatabaseError, Statement, exactly, statement};

use super::{LISTING_JSON, LISTINGS, ListingId};

/// Listings off sale that one answer lists at most: the newest.
const MAX_LISTED: u32 = 200;

/// What a seller wants of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaleState {
    /// Shown and sold no more; buyers keep what they bought.
    OffSale,
    /// For sale again.
    ForSale,
}

/// Why it is not so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotChanged {
    /// There is no such listing, or an operator hid it.
    Unknown,
    /// Another address sells it.
    NotYours,
}

/// Makes a listing what its seller wants. Asked twice, it stays so.
///
/// # Errors
/// The database cannot be asked.
pub async fn change(
    db: &impl Database,
    id: &ListingId,
    seller: &Address,
    state: SaleState,
    now_ms: u64,
) -> Result<Result<(), NotChanged>, DatabaseError> {
    let seller = seller.to_string();
    let update = match state {
        SaleState::OffSale => statement!(
            "UPDATE listings SET hidden_at_ms = ?3, taken_off = 1 \
             WHERE id = ?1 AND seller_address = ?2 AND hidden_at_ms IS NULL",
            id.as_str(),
            seller.as_str(),
            now_ms
        ),
        SaleState::ForSale => statement!(
            "UPDATE listings SET hidden_at_ms = NULL, taken_off = 0 \
             WHERE id = ?1 AND seller_address = ?2 AND taken_off = 1",
            id.as_str(),
            seller.as_str()
        ),
    };
    let known = statement!(
        "SELECT json_quote(seller_address) FROM listings WHERE id = ?1 AND (hidden_at_ms IS NULL OR taken_off = 1)",
        id.as_str()
    );
    let [_, known] = exactly(db.batch(vec![update, known]).await?)?;
    let known: Option<String> = known.first_json()?;
    Ok(match known {
        None => Err(NotChanged::Unknown),
        Some(by) if by != seller => Err(NotChanged::NotYours),
        Some(_) => Ok(()),
    })
}

/// A listing as JSON for its buyers, and whether it is for sale; `None` where there is none or an operator hid it.
///
/// # Errors
/// The database cannot be asked.
pub async fn bought(db: &impl Database, id: &ListingId) -> Result<Option<(String, bool)>, DatabaseError> {
    let sql = format!(
        "SELECT iif(hidden_at_ms IS NULL, '+', '-') || {LISTING_JSON} FROM {LISTINGS} \
         WHERE id = ?1 AND (hidden_at_ms IS NULL OR taken_off = 1)"
    );
    let rows = db.run(statement!(sql, id.as_str())).await?.rows;
    let found = rows.first().and_then(|row| row.split_at_checked(1));
    Ok(found.map(|(sale, json)| (json.to_owned(), sale == "+")))
}

/// The statement that reads what an address took off sale, newest first, as the catalogue's JSON.
pub fn taken_off(seller: &str) -> Statement {
    statement!(
        "SELECT {LISTING_JSON} FROM {LISTINGS} WHERE seller_address = ?1 AND taken_off = 1 ORDER BY seq DESC LIMIT {MAX_LISTED}",
        seller
    )
}
