//! Edits of listings by their sellers.
//!
//! An edit does not change a listing's links, sales, reputation and content. A buyer can pay an offered price for as
//! long as the offer is valid. To this end, the transaction that changes a price stores the former one, and a claim
//! accepts the listing's price or a former price that is still offered (`claim.sql`). So a payment of the offered price
//! is accepted whether the claim or the edit comes first.

use api_types::{Error, Listing};
use cardano::{Address, Lovelace, slots::Millis};
use serde_json::json;
use sql::{Database, DatabaseError, Read, Write};
use x402_cardano::wire::MAX_TIMEOUT_SECONDS;

use super::{ListingId, take_off, terms};
use crate::{contents::Contents, listing::changes::Changes, port_error::PortError};

/// Time in ms for which a former price can be paid: the validity of an offer, plus a minute for caches and differing
/// clocks.
const FORMER_PRICE_MS: Millis = (MAX_TIMEOUT_SECONDS as Millis + 60) * 1_000;
/// Maximum number of former prices at which a listing can still be bought.
const MAX_FORMER_PRICES: u32 = 10;
/// Maximum number of attempts to edit a listing if other edits of the listing are made at the same time.
const MAX_ROUNDS: u32 = 3;

/// Reason why a listing was not edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotEdited {
    /// The listing does not exist, or an operator hid it.
    Unknown,
    /// The listing has another seller.
    NotYours,
    /// The edited listing would break a rule.
    Invalid(Error),
    /// The price was changed too often within the validity period of an offer, or every attempt failed because of a
    /// concurrent edit.
    TooOften,
}

/// Number of seconds to wait before a retry after [`NotEdited::TooOften`].
pub const RETRY_SECONDS: u32 = MAX_TIMEOUT_SECONDS + 60;

/// Edits a listing, and returns it as JSON.
///
/// # Errors
/// Returns an error if the database or the content store is unavailable.
pub async fn edit(
    db: &impl Database,
    contents: &impl Contents,
    id: &ListingId,
    seller: &Address,
    changes: &Changes,
    now_ms: Millis,
) -> Result<Result<String, NotEdited>, PortError> {
    for _ in 0..MAX_ROUNDS {
        let Some(card) = db.fetch(card(id)).await? else { return Ok(Err(NotEdited::Unknown)) };
        let listing: Listing = serde_json::from_str(&card)
            .map_err(|error| DatabaseError(format!("the card of {id} cannot be read: {error}")))?;
        if listing.seller_address != *seller {
            return Ok(Err(NotEdited::NotYours));
        }
        let content = if changes.need_content() {
            let missing = || DatabaseError(format!("the content {} is not there", listing.content_hash));
            Some(contents.get(&listing.content_hash).await?.ok_or_else(missing)?)
        } else {
            None
        };
        let changed = match changes.apply(&listing, content.as_deref()) {
            Ok(changed) => changed,
            Err(error) => return Ok(Err(NotEdited::Invalid(error))),
        };
        let ((), (), edited) = db.batch(statements(id, &card, &changed, now_ms)).await?;
        if edited.is_some() {
            let bought = db.fetch(take_off::bought(id)).await?;
            return Ok(bought.map(|bought| bought.json).ok_or(NotEdited::Unknown));
        }
    }
    Ok(Err(NotEdited::TooOften))
}

/// Builds the statements that edit a listing. The edit is skipped if the listing's stored `card` is no longer the given
/// one, because of a concurrent edit. The last statement returns a row if the listing was edited.
fn statements(id: &ListingId, card: &str, changed: &Listing, now_ms: Millis) -> (Write, Write, Write<Option<String>>) {
    let until = now_ms.saturating_add(FORMER_PRICE_MS);
    (
        sql::write!("DELETE FROM former_prices WHERE listing_id = ?1 AND until_ms <= ?2", id.as_str(), now_ms),
        sql::write!(
            "INSERT INTO former_prices (listing_id, price_lovelace, until_ms) \
             SELECT id, price_lovelace, ?4 FROM listings WHERE id = ?1 AND card = ?2 \
               AND price_lovelace <> CAST(?3 AS INTEGER) \
               AND (SELECT count(*) FROM former_prices WHERE listing_id = ?1) < ?5 \
             ON CONFLICT (listing_id, price_lovelace) DO UPDATE SET until_ms = excluded.until_ms",
            id.as_str(),
            card,
            changed.price_lovelace,
            until,
            MAX_FORMER_PRICES
        ),
        sql::write!(
            "UPDATE listings SET card = ?3, title = ?4, description = ?5, category = ?6, search_terms = ?7, \
               price_lovelace = CAST(?8 AS INTEGER), edited_at_ms = ?9 \
             WHERE id = ?1 AND card = ?2 AND (price_lovelace = CAST(?8 AS INTEGER) OR EXISTS (SELECT 1 FROM former_prices f \
               WHERE f.listing_id = id AND f.price_lovelace = listings.price_lovelace AND f.until_ms = ?10)) \
             RETURNING id",
            id.as_str(),
            card,
            json!(changed).to_string(),
            changed.title.as_str(),
            changed.description.as_str(),
            changed.category.as_deref(),
            terms::of_listing(&changed.title, &changed.description, changed.category.as_deref()),
            changed.price_lovelace,
            now_ms,
            until
        ),
    )
}

/// Builds the query that reads a listing's stored JSON (`card`). Returns no row if an operator hid the listing.
fn card(id: &ListingId) -> Read<Option<String>> {
    sql::read!("SELECT card FROM listings WHERE id = ?1 AND (hidden_at_ms IS NULL OR taken_off = 1)", id.as_str())
}

/// Builds the query that reads the prices at which a listing can be paid: the present price, and former prices at which
/// an offer may still be valid.
pub fn payable_prices(id: &ListingId, now_ms: Millis) -> Read<Vec<Lovelace>> {
    sql::read!(
        "SELECT CAST(price AS TEXT) AS price FROM (SELECT price_lovelace AS price FROM listings WHERE id = ?1 \
         UNION SELECT price_lovelace FROM former_prices WHERE listing_id = ?1 AND until_ms > ?2)",
        id.as_str(),
        now_ms
    )
}
