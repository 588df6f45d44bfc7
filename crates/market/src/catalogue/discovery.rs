//! Listings for directories and crawlers: pages by offset, search, and a sitemap.

use cardano::Address;
use serde::Deserialize;
use sql::{Both, DatabaseError, One, Read, ReadDatabase};

use super::{ListingTerms, MAX_QUERY, TERMS, parameters::Parameters, terms, words};

/// Maximum number of listings in the sitemap, newest first. The format allows 50,000.
pub const MAX_ADDRESSES: u32 = 5_000;
/// Maximum number of listings, newest first, that a search reads and ranks for each of its words.
const MAX_RANKED: u32 = 2_000;
/// Number of listings that are counted together in one row of `listings_counted`.
const BLOCK: u32 = 256;
/// Ranking weight of a word that only a single listing contains. A word that n listings contain has 1/n of this weight.
const WORD_WEIGHT: u32 = 1_000_000;

/// A filter on listings by how they can be paid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PaymentFilter {
    /// All listings.
    #[default]
    Any,
    /// Listings that are paid directly to this seller.
    To(Address),
    /// Listings that can be paid into an escrow.
    IntoEscrow,
}

/// A listing for sale.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Both<ListingTerms, Since>")]
pub struct ForSale {
    pub terms: ListingTerms,
    /// Time at which the listing was last edited, or created if it was never edited, in ISO 8601, UTC.
    pub changed_at: String,
}

#[derive(Deserialize)]
struct Since {
    since: String,
}

impl From<Both<ListingTerms, Since>> for ForSale {
    fn from(Both(terms, Since { since }): Both<ListingTerms, Since>) -> Self {
        Self { terms, changed_at: since }
    }
}

/// A page of listings for sale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SalesPage {
    /// Listings, newest first.
    pub listings: Vec<ForSale>,
    /// Total number of matching listings.
    pub total: u64,
}

/// Returns the SQL list of the columns of [`ForSale`].
fn for_sale_columns() -> String {
    format!(
        "{TERMS}, strftime('%Y-%m-%dT%H:%M:%SZ', coalesce(edited_at_ms, created_at_ms) / 1000, 'unixepoch') AS since"
    )
}

/// SQL parts that select listings by how they can be paid.
struct PaymentSelection<'a> {
    /// SQL condition that uses only indexed columns.
    condition: &'static str,
    /// Value of the condition's parameter `?1`, if it has one.
    seller: Option<&'a Address>,
    /// Column of the table `listings_counted` with the number of matching listings in each block of [`BLOCK`] listings;
    /// `None` for a single seller, whose listings are few.
    count_column: Option<&'static str>,
}

impl PaymentFilter {
    const fn chosen(&self, with_escrow: bool) -> PaymentSelection<'_> {
        let (condition, seller, count_column) = match self {
            Self::Any if with_escrow => ("hidden_at_ms IS NULL AND ?1 IS NULL", None, Some("visible_listings")),
            Self::Any => ("hidden_at_ms IS NULL AND ?1 IS NULL AND instant = 1", None, Some("instant")),
            Self::To(seller) => ("hidden_at_ms IS NULL AND seller_address = ?1 AND instant = 1", Some(seller), None),
            Self::IntoEscrow => ("hidden_at_ms IS NULL AND ?1 IS NULL AND protected = 1", None, Some("protected")),
        };
        PaymentSelection { condition, seller, count_column }
    }
}

impl PaymentSelection<'_> {
    /// Returns two SQL queries: one for the sequence numbers of a page of listings (limit `?2`, offset `?3`), newest
    /// first, and one for the total number of listings.
    fn selection(&self) -> (String, String) {
        let condition = self.condition;
        let Some(own) = self.count_column else {
            let shown = format!("FROM listings INDEXED BY listings_by_seller WHERE {condition}");
            let picked = format!("SELECT seq AS which {shown} ORDER BY seq DESC LIMIT ?2 OFFSET ?3");
            return (picked, format!("SELECT count(*) {shown}"));
        };
        let picked = format!(include_str!("counted_page.sql"), own = own, block = BLOCK, condition = condition);
        (picked, format!("SELECT CAST(total({own}) AS INTEGER) FROM listings_counted WHERE ?1 IS NULL"))
    }
}

/// Returns a page of the visible listings that can be paid with a configured payment method. `with_escrow` is `true` if
/// payments into an escrow are configured.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn for_sale(
    db: &impl ReadDatabase,
    paid: PaymentFilter,
    with_escrow: bool,
    (limit, offset): (u32, u32),
) -> Result<SalesPage, DatabaseError> {
    let chosen = paid.chosen(with_escrow);
    let (seller, (picked, total)) = (chosen.seller, chosen.selection());
    let page = format!(
        "WITH picked AS MATERIALIZED ({picked}) SELECT {} FROM picked CROSS JOIN listings ON seq = which ORDER BY seq DESC",
        for_sale_columns()
    );
    let page: Read<Vec<ForSale>> = sql::read!(page, seller, limit, offset);
    let total: Read<One<u64>> = sql::read!(total, seller);
    let (listings, One(total)) = db.read((page, total)).await?;
    Ok(SalesPage { listings, total })
}

/// Result of a search, best match first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchResult {
    /// The matching listings on this page.
    pub listings: Vec<ForSale>,
    /// Whether more listings follow this page.
    pub more: bool,
}

/// A search in natural language, as one full-text query per word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question(Vec<String>);

impl Question {
    /// Parses a question. Returns `None` if it is longer than 200 characters. A question without words finds nothing.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let short = text.chars().count() <= MAX_QUERY;
        short.then(|| Self::of(text))
    }

    /// Parses a question whose length was already checked.
    pub(super) fn of(text: &str) -> Self {
        Self(words(text).into_iter().filter_map(terms::loose_query).collect())
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the SQL that reads the listings with words of this question, best match first.
    pub(super) fn ranked(&self, bound: &mut Parameters, ranked: &Ranked<'_>) -> String {
        let having = self.0.iter().map(|word| {
            format!(
                "(SELECT json_group_array(which) FROM (SELECT rowid AS which FROM listings_text \
                 WHERE listings_text MATCH {} ORDER BY rowid DESC LIMIT {MAX_RANKED}))",
                bound.name(word.as_str())
            )
        });
        format!(
            include_str!("search.sql"),
            weight = WORD_WEIGHT,
            having = having.collect::<Vec<_>>().join(", "),
            most = MAX_RANKED,
            condition = ranked.condition,
            sellers = if ranked.with_sellers { "CROSS JOIN sellers ON address = seller_address" } else { "" },
            listing = ranked.listing,
            limit = ranked.limit,
            offset = ranked.offset,
        )
    }
}

/// Arguments of [`Question::ranked`]: the listings to search, and the part of the result to read.
pub(super) struct Ranked<'a> {
    /// SQL condition for the listings to search, which uses only indexed columns.
    pub condition: &'a str,
    /// Whether `condition` also uses columns of the table of sellers.
    pub with_sellers: bool,
    /// SQL list of the columns of a listing in the result.
    pub listing: &'a str,
    pub limit: u32,
    /// Number of listings on the previous pages.
    pub offset: u32,
}

/// Returns a page of the listings for sale that contain words of a question, among the newest [`MAX_RANKED`] such
/// listings.
///
/// Listings with rare words, or with many of the words, come first. The number of times that a word occurs in a listing
/// does not count. Otherwise a seller could repeat a word a thousand times to rank higher, which would also slow down
/// each search.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn search(
    db: &impl ReadDatabase,
    question: &Question,
    paid: PaymentFilter,
    with_escrow: bool,
    (limit, offset): (u32, u32),
) -> Result<SearchResult, DatabaseError> {
    if question.is_empty() {
        return Ok(SearchResult { listings: vec![], more: false });
    }
    let PaymentSelection { condition, seller, .. } = paid.chosen(with_escrow);
    // The condition's `?1`.
    let mut bound = Parameters(vec![seller.into()]);
    let following = limit.saturating_add(1);
    let columns = for_sale_columns();
    let ranked = Ranked { condition, with_sellers: false, listing: &columns, limit: following, offset };
    let sql = question.ranked(&mut bound, &ranked);
    let mut listings: Vec<ForSale> = db.read(Read::new(sql, bound.0)).await?;
    let more = listings.len() > limit as usize;
    listings.truncate(limit as usize);
    Ok(SearchResult { listings, more })
}

/// Returns the ids and dates of the newest listings, one `id YYYY-MM-DD` per line. The date is that of the last edit,
/// or of the creation if there was none.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn addresses(db: &impl ReadDatabase) -> Result<String, DatabaseError> {
    let addresses: Read<One<String>> = sql::read!(
        "SELECT coalesce(group_concat(id || ' ' || day, char(10)), '') FROM \
         (SELECT id, strftime('%Y-%m-%d', coalesce(edited_at_ms, created_at_ms) / 1000, 'unixepoch') AS day FROM listings \
          WHERE hidden_at_ms IS NULL ORDER BY seq DESC LIMIT {MAX_ADDRESSES})"
    );
    let One(addresses) = db.read(addresses).await?;
    Ok(addresses)
}
