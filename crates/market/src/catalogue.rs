//! The catalogue: SQL that answers with finished JSON.
//!
//! A listing's JSON is its stored `card` (everything that never changes) with the figures of its sales put in. SQLite
//! joins up to [`CHUNK`] of them into one text, so that the catalogue crosses into the worker in few strings.

use sql::{Database, DatabaseError, Statement, exactly, statement};
use std::{borrow::Cow, fmt, str::FromStr};

use api_types::SellerFigures;
pub use api_types::Sort;
use cardano::{Address, TxHash};
use serde::Deserialize;
use x402_cardano::method::Sale;

use crate::listing::{CATEGORIES, DeliveryMode, ListingId};

pub mod discovery;
pub(crate) mod newest;
mod page;
mod store;
pub mod take_off;

pub use newest::Newest;
pub use page::{count, page};
pub use store::{Quota, QuotaExceeded, Source, Stored, store};

/// Listings in one row of the whole catalogue: at most about 1 MB of JSON, under D1's 2 MB a row.
const CHUNK: u32 = 100;
/// Listings that the whole catalogue, or a creator's page, shows at once: the newest.
const MAX_WHOLE: u32 = 1_000;
/// Bytes of JSON that they may take: what a client loads without thinking.
const MAX_WHOLE_BYTES: u32 = 2_000_000;
/// Listings on a page when `limit` is not given together with a filter.
const MAX_PAGE: u32 = 200;
/// Bytes of a listing's figures in its JSON, at most, with the comma after it.
const FIGURES_BYTES: u32 = 130;
/// Characters of a search text.
const MAX_QUERY: usize = 200;
/// Words of it that are looked for: each costs a look through all that have it.
const MAX_WORDS: usize = 12;
/// Listings that one answer looks at, at most, however many there are.
const MAX_SCANNED: u32 = 10_000;

/// Listings with their sellers' figures, for [`LISTING_JSON`]. A left join keeps the order in which listings are read.
const LISTINGS: &str = "listings LEFT JOIN sellers ON sellers.address = listings.seller_address";

/// A listing as JSON: the card, `sales`, and `sellerReputation` once the seller has a closed escrow.
/// The score is rounded half up.
const LISTING_JSON: &str = "substr(card, 1, length(card) - 1) || ',\"sales\":' || listings.sales || \
    CASE WHEN coalesce(withdrawn + refunded, 0) = 0 THEN '' ELSE ',\"sellerReputation\":{\"score\":' || \
    ((200 * withdrawn + withdrawn + refunded) / (2 * (withdrawn + refunded))) || \
    ',\"basis\":' || (withdrawn + refunded) || '}' END || '}'";

/// One listing as JSON.
///
/// # Errors
/// The database cannot be asked.
pub async fn one(db: &impl Database, id: &ListingId) -> Result<Option<String>, DatabaseError> {
    let sql = format!("SELECT {LISTING_JSON} FROM {LISTINGS} WHERE id = ?1 AND hidden_at_ms IS NULL");
    let outcome = db.run(statement!(sql, id.as_str())).await?;
    Ok(outcome.rows.into_iter().next())
}

/// A creator's page as JSON, `{address, listings, sales, sellerReputation?}`, with the newest listings, or those after a
/// cursor.
///
/// # Errors
/// The database cannot be asked.
pub async fn creator(db: &impl Database, address: &Address, after: Option<Cursor>) -> Result<Page, DatabaseError> {
    let address = address.to_string();
    let listings = newest::matching("seller_address = ?1 AND (?2 IS NULL OR seq < ?2)");
    let [listings, seller] = exactly(
        db.batch(vec![
            statement!(listings, address.as_str(), after.map(|cursor| cursor.seq)),
            statement!(seller_figures("?1"), address.as_str()),
        ])
        .await?,
    )?;
    let Page { json, next } = newest::page(&listings)?;
    let figures = seller.first().unwrap_or(NO_FIGURES);
    Ok(Page { json: format!("{{\"address\":\"{address}\",\"listings\":{json},{figures}}}"), next })
}

/// A seller's figures.
///
/// # Errors
/// The database cannot be asked.
pub async fn seller(db: &impl Database, address: &Address) -> Result<SellerFigures, DatabaseError> {
    let figures = db.run(statement!(seller_figures("?1"), address)).await?;
    figures_of(figures.first().unwrap_or(NO_FIGURES))
}

/// The figures of a seller who never listed anything.
pub(crate) const NO_FIGURES: &str = "\"sales\":0";

/// Figures as [`seller_figures`] reads them.
pub(crate) fn figures_of(members: &str) -> Result<SellerFigures, DatabaseError> {
    serde_json::from_str(&format!("{{{members}}}"))
        .map_err(|error| DatabaseError(format!("a seller's figures cannot be read: {error}")))
}

/// SQL that reads a seller's figures as members of a JSON object: `"sales":1,"sellerReputation":{...}`.
/// `address` is an SQL expression.
pub(crate) fn seller_figures(address: &str) -> String {
    format!(
        "SELECT '\"sales\":' || sales || CASE WHEN withdrawn + refunded = 0 THEN '' ELSE \
         ',\"sellerReputation\":{{\"score\":' || ((200 * withdrawn + withdrawn + refunded) / (2 * (withdrawn + refunded))) || \
         ',\"basis\":' || (withdrawn + refunded) || '}}' END FROM sellers WHERE address = {address}"
    )
}

/// What a paywall needs to know of a listing; the content is not part of it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListingTerms {
    pub id: ListingId,
    /// For the payment's description.
    pub title: String,
    pub price_lovelace: cardano::Lovelace,
    pub seller_address: Address,
    /// What it commits to.
    pub content_hash: cardano::ContentHash,
    pub modes: Vec<DeliveryMode>,
    /// Whether the operator took it out of sale: its buyers keep it, others do not find it.
    pub hidden: bool,
}

impl ListingTerms {
    /// What is sold, as quotes commit to it.
    #[must_use]
    pub fn sale(&self) -> Sale<'_> {
        Sale {
            listing_id: self.id.as_str(),
            content_hash: self.content_hash,
            price: self.price_lovelace,
            seller: self.seller_address,
        }
    }
}

/// The statement that reads a listing's [`ListingTerms`]: the card, which holds them all, and whether it is hidden.
pub fn terms(id: &ListingId) -> Statement {
    statement!(
        "SELECT substr(card, 1, length(card) - 1) || iif(hidden_at_ms IS NULL, ',\"hidden\":false}}', ',\"hidden\":true}}') \
         FROM listings WHERE id = ?1",
        id.as_str()
    )
}

/// The statement that reads what the listing commits to that this transaction pays for: the key of its content, quoted.
pub fn content_paid_by(payment: &TxHash) -> Statement {
    statement!(
        "SELECT json_quote(content_hash) FROM listings WHERE id = (SELECT listing_id FROM payments WHERE tx_id = ?1)",
        payment
    )
}

/// The statement that reads what listings are called, `{id, title}` each, also of those that are no longer shown.
pub fn titles(ids: &[&str]) -> Statement {
    statement!(
        "SELECT json_object('id', id, 'title', title) FROM listings WHERE id IN (SELECT value FROM json_each(?1))",
        serde_json::json!(ids).to_string()
    )
}

/// Which listings a page shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub category: Option<&'static str>,
    pub mode: Option<DeliveryMode>,
    pub seller: Option<Address>,
    /// Words that title or description contain (the last may be a beginning, of which eight letters count).
    pub words: Option<String>,
    /// One of the words is enough.
    pub any_word: bool,
    pub max_price: Option<cardano::Lovelace>,
    /// At least this score, of sellers who have one.
    pub min_reputation: Option<u8>,
    pub sort: Sort,
    pub limit: Option<u32>,
    /// Continue after the page that gave this.
    pub cursor: Option<Cursor>,
}

/// Where a page ended: the sort key and sequence number of its last listing. Text: `key.seq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    key: i64,
    seq: i64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.key, self.seq)
    }
}

impl FromStr for Cursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (key, seq) = text.split_once('.').ok_or(())?;
        Ok(Self { key: key.parse().map_err(|_| ())?, seq: seq.parse().map_err(|_| ())? })
    }
}

/// A query parameter that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}: {1}")]
pub struct InvalidParameter(pub &'static str, pub &'static str);

impl Filter {
    /// Reads the query of `GET /listings`; `None` when it asks for the whole catalogue. Unknown names are ignored.
    ///
    /// # Errors
    /// The parameter that is not what it should be.
    pub fn from_query<'a>(
        pairs: impl IntoIterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
    ) -> Result<Option<Self>, InvalidParameter> {
        let mut filter = Self::default();
        let mut asked = false;
        for (name, value) in pairs {
            asked |= filter.set(&name, &value)?;
        }
        Ok(asked.then_some(filter))
    }

    fn set(&mut self, name: &str, value: &str) -> Result<bool, InvalidParameter> {
        match name {
            "limit" => {
                let limit = value.parse().ok().filter(|limit| (1..=MAX_PAGE).contains(limit));
                self.limit = Some(limit.ok_or(InvalidParameter("limit", "must be a whole number from 1 to 200"))?);
            }
            "cursor" => {
                let rule = InvalidParameter("cursor", "must come from a Link header");
                self.cursor = Some(value.parse().map_err(|()| rule)?);
            }
            "category" => {
                let category = CATEGORIES.into_iter().find(|category| *category == value);
                self.category = Some(category.ok_or(InvalidParameter("category", "must be one of the categories"))?);
            }
            "mode" => {
                let rule = InvalidParameter("mode", "must be instant or protected");
                self.mode = Some(value.parse().map_err(|()| rule)?);
            }
            "q" if value.chars().count() > MAX_QUERY => {
                return Err(InvalidParameter("q", "must have at most 200 characters"));
            }
            "q" => self.words = Some(value.to_owned()),
            "sort" => {
                let rule = "must be newest, popular, price_asc, price_desc or reputation";
                self.sort = value.parse().map_err(|()| InvalidParameter("sort", rule))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The first words of a text for a full-text query, each once. What is one here is one to the index, too: of several it would be a
/// phrase, looked for in all places that its words have.
fn words(text: &str) -> Vec<&str> {
    let mut found = vec![];
    for word in text.split(|c: char| !c.is_alphanumeric() || is_framed(c)).filter(|word| !word.is_empty()) {
        if found.len() == MAX_WORDS {
            break;
        }
        // Said again it means no more, and costs another look. The last may be a beginning: it stays last.
        found.retain(|known: &&str| !known.eq_ignore_ascii_case(word));
        found.push(word);
    }
    found
}

/// A word of which no character is an operator.
fn quoted(word: &str) -> String {
    format!("\"{word}\"")
}

/// Letters in circles and squares: symbols to the index.
const fn is_framed(c: char) -> bool {
    matches!(c, '\u{24b6}'..='\u{24e9}' | '\u{1f130}'..='\u{1f189}')
}

/// Some listings, and where to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// A JSON array; of a creator's page, the object around it.
    pub json: String,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}
