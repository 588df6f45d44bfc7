//! Listings as directories and crawlers read them: pages by offset, and addresses alone.

use cardano::Address;
use serde::Deserialize;
use sql::{Database, DatabaseError, Param, Statement, exactly, statement};

use super::{ListingTerms, MAX_QUERY, quoted, words};

/// Listings whose addresses are given at once: the newest. A sitemap may have 50,000.
pub const MAX_ADDRESSES: u32 = 5_000;
/// Listings that are looked at for each word of a question, and that are ranked, at most: the newest.
const MAX_RANKED: u32 = 2_000;
/// Listings in a row that are counted together.
const BLOCK: u32 = 256;
/// What a word counts for that one listing has; of more, each has its part.
const WORD_WEIGHT: u32 = 1_000_000;
/// The parameter that is a question's first word.
const FIRST_WORD: u32 = 4;

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

/// SQL of a listing as a [`ForSale`].
const FOR_SALE_JSON: &str = "json_object('terms', json_set(card, '$.hidden', json('false')), 'since', \
    strftime('%Y-%m-%dT%H:%M:%SZ', created_at_ms / 1000, 'unixepoch'))";

/// How listings are chosen.
struct Chosen<'a> {
    /// SQL of which these are, all of it columns of indexes.
    condition: &'static str,
    /// What stands at its `?1`.
    seller: Option<&'a Address>,
    /// Where it is counted how many these are of each [`BLOCK`]; a seller's are few.
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
    /// SQL of these listings' numbers, newest first, `?2` of them after `?3`; and of how many there are in all.
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

/// What of it answers a question, the best first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// A page of the listings.
    pub listings: Vec<ForSale>,
    /// Whether more follow.
    pub more: bool,
}

/// A question in people's words: full-text queries, of a word each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question(Vec<String>);

impl Question {
    /// Reads it; `None` where it is too long (200 characters). A question without a word finds nothing.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let short = text.chars().count() <= MAX_QUERY;
        short.then(|| Self(words(text).into_iter().map(quoted).collect()))
    }

    /// Looks through the full-text index that it takes: one for each word.
    #[must_use]
    pub const fn index_scans(&self) -> usize {
        self.0.len()
    }
}

/// The listings for sale that have words of a question, of the newest [`MAX_RANKED`] that have any: those first that
/// have the rarest ones, or many. How often a listing has a word does not matter. A seller may write it a thousand
/// times, and the index would go through all of them for each word.
///
/// # Errors
/// The database cannot be asked.
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
    let found = db.run(Statement { sql: sql.into(), params }).await?;
    let mut listings: Vec<ForSale> = found.all_json()?;
    let more = listings.len() > limit as usize;
    listings.truncate(limit as usize);
    Ok(Found { listings, more })
}

/// The ids of the newest listings, and the day on which each was made: `id YYYY-MM-DD`, one a line.
///
/// # Errors
/// The database cannot be asked.
pub async fn addresses(db: &impl Database) -> Result<String, DatabaseError> {
    let sql = format!(
        "SELECT coalesce(group_concat(id || ' ' || day, char(10)), '') FROM \
         (SELECT id, strftime('%Y-%m-%d', created_at_ms / 1000, 'unixepoch') AS day FROM listings \
          WHERE hidden_at_ms IS NULL ORDER BY seq DESC LIMIT {MAX_ADDRESSES})"
    );
    Ok(db.run(statement!(sql)).await?.rows.into_iter().next().unwrap_or_default())
}
