//! Reads the newest listings, of all sellers or of one: at most 1,000, and at most 2 MB of JSON.

use api_types::Listing;
use serde::Deserialize;
use sql::{DatabaseError, Param, Read, ReadDatabase};

use super::{FIGURES_BYTES, LISTING_JSON, LISTINGS, MAX_UNFILTERED, MAX_UNFILTERED_BYTES, Page};

/// Reads the newest listings of the catalogue.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn newest(db: &impl ReadDatabase) -> Result<Page, DatabaseError> {
    Ok(page(db.read(matching("TRUE", vec![])).await?))
}

/// A row of the query [`matching`]: one listing.
#[derive(Deserialize)]
pub(crate) struct Listed {
    seq: i64,
    json: String,
    /// Whether this listing is still within the maximum number and the maximum size of a page.
    #[serde(deserialize_with = "sql::flag")]
    fits: bool,
}

/// Builds the query that reads the newest listings that satisfy a condition, up to the maximum number and size of a
/// page, and one more, which shows that there is a next page. `params` are the condition's parameters.
///
/// The size is computed from the stored cards, so that no JSON is rendered for listings beyond the page.
pub(crate) fn matching(condition: &str, params: Vec<Param>) -> Read<Vec<Listed>> {
    let sql = format!(
        include_str!("newest.sql"),
        figures = FIGURES_BYTES,
        shown = format_args!("hidden_at_ms IS NULL AND {condition}"),
        most = MAX_UNFILTERED,
        most_bytes = MAX_UNFILTERED_BYTES,
        listing = LISTING_JSON,
        listings = LISTINGS,
    );
    Read::new(sql, params)
}

/// Renders the listings that [`matching`] read as a page.
pub(crate) fn page(listings: Vec<Listed>) -> Page {
    let fitting: Vec<&Listed> = listings.iter().take_while(|listed| listed.fits).collect();
    let last = fitting.last().filter(|_| fitting.len() < listings.len());
    let next = last.map(|Listed { seq, .. }| format!("{seq}.{seq}"));
    let json: Vec<&str> = fitting.iter().map(|listed| listed.json.as_str()).collect();
    Page { json: format!("[{}]", json.join(",")), next, some_words: false }
}

/// Parses the listings that [`matching`] read, without the one beyond the maximum. Each row's text is freed once it is
/// parsed, because all of them together are long.
///
/// # Errors
/// Returns an error if a row's text is not a listing.
pub(crate) fn parse(listings: Vec<Listed>) -> serde_json::Result<Vec<Listing>> {
    listings.into_iter().take_while(|listed| listed.fits).map(|listed| serde_json::from_str(&listed.json)).collect()
}
