//! Listings for directories and crawlers: pages by offset, search, and a sitemap.

use cardano::Address;
use serde::Deserialize;
use sql::{Database, DatabaseError, Param, Statement, exactly, statement};

use super::{ListingTerms, MAX_QUERY, quoted, words};

/// Maximum number of listings in the sitemap, newest first. The format allows 50,000.
pub const MAX_ADDRESSES: u32 = 5_000;
/// Maximum number of listings read per word of a question, and ranked, newest first.
const MAX_RANKED: u32 = 2_000;
/// Listings per row of the stored counts.
const BLOCK: u32 = 256;
/// Weight of a word that occurs in one listing. A word in n listings has an nth of it.
const WORD_WEIGHT: u32 = 1_000_000;
/// SQL parameter of a question's first word.
const FIRST_WORD: u32 = 4;

/// Selection of listings by payment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paid {
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
pub struct ForSale {
    pub terms: ListingTerms,
    /// Creation time, ISO 8601, UTC.
    pub since: String,
}

/// A page of listings for sale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SalesPage {
    /// Listings, newest first.
    pub listings: Vec<ForSale>,
    /// Total number of matching listings.
    pub total: u64,
}

/// SQL for a listing as [`ForSale`].
const FOR_SALE_JSON: &str = "json_object('terms', json_set(card, '$.hidden', json('false')), 'since', \
    strftime('%Y-%m-%dT%H:%M:%SZ', created_at_ms / 1000, 'unixepoch'))";

/// SQL of a selection.
struct Chosen<'a> {
    /// Condition over indexed columns.
    condition: &'static str,
    /// Value of its `?1`.
    seller: Option<&'a Address>,
    /// Table with the number of matching listings per [`BLOCK`]; `None` for one seller, whose listings are few.
    counted: Option<&'static str>,
}

impl Paid {
    const fn chosen(&self, with_escrow: bool) -> Chosen<'_> {
        let (condition, seller, counted) = match self {
            Self::Any if with_escrow => ("hidden_at_ms IS NULL AND ?1 IS NULL", None, Some("visible_listings")),
            Self::Any => ("hidden_at_ms IS NULL AND ?1 IS NULL AND instant = 1", None, Some("instant")),
            Self::To(seller) => ("hidden_at_ms IS NULL AND seller_address = ?1 AND instant = 1", Some(seller), None),
            Self::IntoEscrow => ("hidden_at_ms IS NULL AND ?1 IS NULL AND protected = 1", None, Some("protected")),
        };
        Chosen { condition, seller, counted }
    }
}

impl Chosen<'_> {
    /// SQL for the sequence numbers of `?2` listings after `?3`, newest first, and for their total number.
    fn selection(&self) -> (String, String) {
        let condition = self.condition;
        let Some(own) = self.counted else {
            let shown = format!("FROM listings INDEXED BY listings_by_seller WHERE {condition}");
            let picked = format!("SELECT seq AS which {shown} ORDER BY seq DESC LIMIT ?2 OFFSET ?3");
            return (picked, format!("SELECT CAST(count(*) AS TEXT) {shown}"));
        };
        let picked = format!(include_str!("counted_page.sql"), own = own, block = BLOCK, condition = condition);
        (picked, format!("SELECT CAST(total({own}) AS INTEGER) || '' FROM listings_counted WHERE ?1 IS NULL"))
    }
}

/// Returns a page of listings for sale: not hidden, and payable by a configured method.
///
/// # Errors
/// The database query failed.
pub async fn for_sale(
    db: &impl Database,
    paid: Paid,
    with_escrow: bool,
    (limit, offset): (u32, u32),
) -> Result<SalesPage, DatabaseError> {
    let chosen = paid.chosen(with_escrow);
    let (seller, (picked, total)) = (chosen.seller, chosen.selection());
    let page = format!(
        "WITH picked AS MATERIALIZED ({picked}) SELECT {FOR_SALE_JSON} FROM picked CROSS JOIN listings ON seq = which ORDER BY seq DESC"
    );
    let answers = db
        .batch(vec![statement!(page, seller, i64::from(limit), i64::from(offset)), statement!(total, seller)])
        .await?;
    let [page, total] = exactly(answers)?;
    Ok(SalesPage { listings: page.all_json()?, total: total.first_json()?.unwrap_or_default() })
}

/// Result of a search, best match first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// A page of the listings.
    pub listings: Vec<ForSale>,
    /// Whether more follow.
    pub more: bool,
}

/// A search in natural language, as one full-text query per word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question(Vec<String>);

impl Question {
    /// Parses a question, `None` if it is longer than 200 characters. A question without words finds nothing.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let short = text.chars().count() <= MAX_QUERY;
        short.then(|| Self(words(text).into_iter().map(quoted).collect()))
    }

    /// Number of scans of the full-text index that the question takes.
    #[must_use]
    pub const fn index_scans(&self) -> usize {
        self.0.len()
    }
}

/// Searches the newest [`MAX_RANKED`] listings with any word of the question, and ranks them by the rarity and number
/// of the words they contain.
///
/// Repetitions of a word in a listing do not count: sellers could repeat it a thousand times, and the index would read
/// each.
///
/// # Errors
/// The database query failed.
pub async fn search(
    db: &impl Database,
    Question(question): &Question,
    paid: Paid,
    with_escrow: bool,
    (limit, offset): (u32, u32),
) -> Result<Found, DatabaseError> {
    if question.is_empty() {
        return Ok(Found { listings: vec![], more: false });
    }
    let having = (FIRST_WORD..).zip(question).map(|(word, _)| {
        format!(
            "(SELECT json_group_array(which) FROM (SELECT rowid AS which FROM listings_text \
             WHERE listings_text MATCH ?{word} ORDER BY rowid DESC LIMIT {MAX_RANKED}))"
        )
    });
    let having = having.collect::<Vec<_>>().join(", ");
    let Chosen { condition, seller, .. } = paid.chosen(with_escrow);
    let sql = format!(
        include_str!("search.sql"),
        weight = WORD_WEIGHT,
        having = having,
        most = MAX_RANKED,
        condition = condition,
        listing = FOR_SALE_JSON
    );
    let bounds = [seller.into(), i64::from(limit).into(), i64::from(offset).into()];
    let params: Vec<Param> = bounds.into_iter().chain(question.iter().map(|word| word.as_str().into())).collect();
    let found = db.run(Statement::new(sql, params)).await?;
    let mut listings: Vec<ForSale> = found.all_json()?;
    let more = listings.len() > limit as usize;
    listings.truncate(limit as usize);
    Ok(Found { listings, more })
}

/// Lists the ids of the newest listings with their creation date, one `id YYYY-MM-DD` per line.
///
/// # Errors
/// The database query failed.
pub async fn addresses(db: &impl Database) -> Result<String, DatabaseError> {
    let sql = format!(
        "SELECT coalesce(group_concat(id || ' ' || day, char(10)), '') FROM \
         (SELECT id, strftime('%Y-%m-%d', created_at_ms / 1000, 'unixepoch') AS day FROM listings \
          WHERE hidden_at_ms IS NULL ORDER BY seq DESC LIMIT {MAX_ADDRESSES})"
    );
    Ok(db.run(statement!(sql)).await?.rows.into_iter().next().unwrap_or_default())
}
