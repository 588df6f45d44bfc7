//! Listings as directories and crawlers read them: pages by offset, and addresses alone.

use cardano::Address;
use serde::Deserialize;
use sql::{Database, DatabaseError, exactly, statement};

use super::ListingTerms;

/// Listings whose addresses are given at once: the newest. A sitemap may have 50,000.
pub const MAX_ADDRESSES: u32 = 5_000;

/// Which listings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paid {
    /// All that can be bought.
    #[default]
    Any,
    /// Those whose buyers may pay this seller directly.
    To(Address),
    /// Those whose buyers may pay into the escrow.
    IntoEscrow,
}

/// A listing for sale.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ForSale {
    /// What a paywall knows of it.
    pub terms: ListingTerms,
    /// When it was made; it never changed since. ISO 8601, UTC.
    pub since: String,
}

/// A page of what is for sale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SalesPage {
    /// Newest first.
    pub listings: Vec<ForSale>,
    /// How many there are in all.
    pub total: u64,
}

/// SQL of when a listing was made.
const SINCE: &str = "strftime('%Y-%m-%dT%H:%M:%SZ', created_at_ms / 1000, 'unixepoch')";

/// A page of the listings for sale: those that are not hidden, and that the configured ways can pay for.
///
/// # Errors
/// The database cannot be asked.
pub async fn for_sale(
    db: &impl Database,
    paid: Paid,
    with_escrow: bool,
    (limit, offset): (u32, u32),
) -> Result<SalesPage, DatabaseError> {
    let seller = match paid {
        Paid::To(address) => Some(address),
        Paid::Any | Paid::IntoEscrow => None,
    };
    let condition = match paid {
        Paid::Any if with_escrow => "?1 IS NULL",
        Paid::Any => "?1 IS NULL AND instant = 1",
        Paid::To(_) => "seller_address = ?1 AND instant = 1",
        Paid::IntoEscrow => "?1 IS NULL AND protected = 1",
    };
    let shown = format!("FROM listings WHERE hidden_at_ms IS NULL AND {condition}");
    let page = format!(
        "SELECT json_object('terms', json_set(card, '$.hidden', json('false')), 'since', {SINCE}) {shown} \
         ORDER BY seq DESC LIMIT ?2 OFFSET ?3"
    );
    let seller = seller.as_ref();
    let answers = db
        .batch(vec![
            statement!(page, seller, i64::from(limit), i64::from(offset)),
            statement!(format!("SELECT CAST(count(*) AS TEXT) {shown}"), seller),
        ])
        .await?;
    let [page, total] = exactly(answers)?;
    Ok(SalesPage { listings: page.all_json()?, total: total.first_json()?.unwrap_or_default() })
}

/// The ids of the newest listings, and the day on which each was made: `id YYYY-MM-DD`, one a line.
///
/// # Errors
/// The database cannot be asked.
pub async fn addresses(db: &impl Database) -> Result<String, DatabaseError> {
    let sql = format!(
        "SELECT coalesce(group_concat(id || ' ' || substr(since, 1, 10), char(10)), '') FROM \
         (SELECT id, {SINCE} AS since FROM listings WHERE hidden_at_ms IS NULL ORDER BY seq DESC LIMIT {MAX_ADDRESSES})"
    );
    Ok(db.run(statement!(sql)).await?.rows.into_iter().next().unwrap_or_default())
}
