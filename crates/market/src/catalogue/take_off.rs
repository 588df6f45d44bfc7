//! Withdrawing a listing from sale, and offering it again.
//!
//! ```text
//! for sale ── take off ──> taken off ── relist ──> for sale        (by its seller)
//!     └────── hide ───────────> hidden ── show ──────> for sale    (by an operator: docs/operations.md)
//! ```
//!
//! `taken_off` is set only if the seller hid the listing, so sellers cannot show again what an operator has hidden.

use cardano::Address;
use sql::{Database, DatabaseError, Statement, exactly, statement};

use super::{LISTING_JSON, LISTINGS, ListingId};

/// Maximum number of withdrawn listings in an answer, newest first.
const MAX_LISTED: u32 = 200;

/// Whether a seller wants a listing to be for sale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaleState {
    /// Not shown and not sold. Its buyers keep access.
    OffSale,
    /// For sale again.
    ForSale,
}

/// Reason why a listing was neither taken off sale nor offered again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotChanged {
    /// The listing does not exist, or an operator hid it.
    Unknown,
    /// The listing has another seller.
    NotYours,
}

/// Changes the state of a listing. Idempotent.
///
/// # Errors
/// Returns an error if the database query failed.
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

/// Returns a listing as JSON for its buyers, and whether it is for sale; `None` if it does not exist or an operator hid
/// it.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn bought(db: &impl Database, id: &ListingId) -> Result<Option<(String, bool)>, DatabaseError> {
    let sql = format!(
        "SELECT iif(hidden_at_ms IS NULL, '+', '-') || {LISTING_JSON} FROM {LISTINGS} \
         WHERE id = ?1 AND (hidden_at_ms IS NULL OR taken_off = 1)"
    );
    let rows = db.run(statement!(sql, id.as_str())).await?.rows;
    let found = rows.first().and_then(|row| row.split_at_checked(1));
    Ok(found.map(|(sale, json)| (json.to_owned(), sale == "+")))
}

/// Builds the statement that reads the listings withdrawn by an address, newest first, as JSON.
pub fn taken_off(seller: &str) -> Statement {
    statement!(
        "SELECT {LISTING_JSON} FROM {LISTINGS} WHERE seller_address = ?1 AND taken_off = 1 ORDER BY seq DESC LIMIT {MAX_LISTED}",
        seller
    )
}
