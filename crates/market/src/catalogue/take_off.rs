//! Takes a listing off sale, and offers it again.
//!
//! ```text
//! for sale ── take off ──> taken off ── relist ──> for sale        (by its seller)
//!     └────── hide ───────────> hidden ── show ──────> for sale    (by an operator: docs/operations.md)
//! ```
//!
//! `taken_off` is set only if the seller took the listing off sale, so sellers cannot show again what an operator has
//! hidden.

use cardano::{Address, slots::Millis};
use serde::Deserialize;
use sql::{Database, DatabaseError, Read, Write};

use super::{LISTING_JSON, LISTINGS, ListingId};

/// Maximum number of off-sale listings that a seller can list, newest first.
const MAX_LISTED: u32 = 200;

/// State that a seller requests for a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaleState {
    /// Neither shown nor sold. Buyers of the listing can still read its content.
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
    /// The seller's signature was used before, or is older than one that was used for the same purpose.
    ProofUsed,
}

/// Changes the state of a listing. Idempotent.
///
/// `signed_at` is the timestamp of the seller's proof, or `None` in a session. Once a proof was used, only a proof with
/// a later timestamp can change a listing to the same state. So nobody who has seen an earlier proof can use it to undo
/// a later change.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn change(
    db: &impl Database,
    id: &ListingId,
    seller: &Address,
    state: SaleState,
    signed_at: Option<Millis>,
    now_ms: Millis,
) -> Result<Result<(), NotChanged>, DatabaseError> {
    let update: Write = match state {
        SaleState::OffSale => sql::write!(
            "UPDATE listings SET hidden_at_ms = ?3, taken_off = 1 WHERE id = ?1 AND seller_address = ?2 \
             AND hidden_at_ms IS NULL AND (?4 IS NULL OR ?4 > take_off_signed_ms)",
            id,
            seller,
            now_ms,
            signed_at
        ),
        SaleState::ForSale => sql::write!(
            "UPDATE listings SET hidden_at_ms = NULL, taken_off = 0 WHERE id = ?1 AND seller_address = ?2 \
             AND taken_off = 1 AND (?3 IS NULL OR ?3 > relist_signed_ms)",
            id,
            seller,
            signed_at
        ),
    };
    // Recorded even if the listing already had this state, so that the proof cannot be used after a later change.
    let used = signed_at.map(|signed_at| -> Write {
        sql::write!(
            "UPDATE listings SET take_off_signed_ms = iif(?4, take_off_signed_ms, max(take_off_signed_ms, ?3)), \
               relist_signed_ms = iif(?4, max(relist_signed_ms, ?3), relist_signed_ms) \
             WHERE id = ?1 AND seller_address = ?2",
            id,
            seller,
            signed_at,
            state == SaleState::ForSale
        )
    });
    let after: Read<Option<AfterChange>> = sql::read!(
        "SELECT seller_address, taken_off FROM listings WHERE id = ?1 AND (hidden_at_ms IS NULL OR taken_off = 1)",
        id
    );
    let ((), _, after) = db.batch((update, used, after)).await?;
    Ok(match after {
        None => Err(NotChanged::Unknown),
        Some(after) if after.seller_address != *seller => Err(NotChanged::NotYours),
        Some(after) if after.taken_off != (state == SaleState::OffSale) => Err(NotChanged::ProofUsed),
        Some(_) => Ok(()),
    })
}

/// A listing's seller and state after a change.
#[derive(Deserialize)]
struct AfterChange {
    seller_address: Address,
    #[serde(deserialize_with = "sql::flag")]
    taken_off: bool,
}

/// A listing as shown to its buyers, who can see it even after its seller took it off sale.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Bought {
    /// The listing as JSON.
    pub json: String,
    #[serde(deserialize_with = "sql::flag")]
    pub for_sale: bool,
}

/// Builds the query that reads a listing for its buyers. Returns `None` if the listing does not exist or an operator
/// has hidden it.
pub fn bought(id: &ListingId) -> Read<Option<Bought>> {
    sql::read!(
        "SELECT {LISTING_JSON} AS json, hidden_at_ms IS NULL AS for_sale FROM {LISTINGS} \
         WHERE id = ?1 AND (hidden_at_ms IS NULL OR taken_off = 1)",
        id
    )
}

/// Builds the query that reads, as JSON, the listings that a seller has taken off sale, newest first.
pub fn taken_off(seller: &str) -> Read<Vec<String>> {
    sql::read!(
        "SELECT {LISTING_JSON} FROM {LISTINGS} WHERE seller_address = ?1 AND taken_off = 1 ORDER BY seq DESC LIMIT {MAX_LISTED}",
        seller
    )
}
