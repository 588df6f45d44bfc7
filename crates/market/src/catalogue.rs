//! The catalogue of listings.
//!
//! SQLite assembles the JSON of a listing from its sales figures and its stored `card`, which contains everything else.
//! The JSON is sent to the client without being parsed.

use sql::{DatabaseError, Param, Read, ReadDatabase};
use std::{borrow::Cow, fmt, str::FromStr};

pub use api_types::Sort;
use api_types::{ContentStats, Disputes, Error, ErrorCode, SellerFigures, SellerReputation};
use cardano::{Address, ContentHash, Lovelace, TxHash};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use x402_cardano::method::Sale;

use crate::listing::{CATEGORIES, DeliveryMode, ListingId};

pub mod discovery;
pub mod edit;
pub(crate) mod newest;
mod page;
mod parameters;
mod store;
pub mod take_off;
mod terms;

pub use newest::Newest;
pub use page::{count, page};
pub use store::{Quota, QuotaExceeded, Source, Stored, store};

/// Maximum number of listings in an unfiltered response or on a creator's page, newest first.
const MAX_UNFILTERED: u32 = 1_000;
/// Maximum size of an unfiltered response or a creator's page in bytes of JSON.
const MAX_UNFILTERED_BYTES: u32 = 2_000_000;
/// Maximum number of listings on a page of filtered results, which is also the default.
const MAX_PAGE: u32 = 200;
/// Maximum size in bytes of JSON of the parts that are added to a listing's stored `card`: sales, the seller's name,
/// the seller's reputation, and a comma.
const FIGURES_BYTES: u32 = 310;
/// Maximum length of a search text in characters.
const MAX_QUERY: usize = 200;
/// Maximum number of words in a search. Each additional word makes the search read more of the full-text index.
const MAX_WORDS: usize = 12;
/// Maximum number of listings that one request may read.
const MAX_SCANNED: u32 = 10_000;

/// SQL join of listings with their sellers' names and figures, for [`LISTING_JSON`]. A left join preserves the order of
/// the listings' index.
const LISTINGS: &str = "listings LEFT JOIN sellers ON sellers.address = listings.seller_address";

/// SQL expression for a listing as JSON: the stored `card`, with `sales`, with `sellerName` if the seller has a name,
/// and with `sellerReputation` if at least one of the seller's escrows has ended.
const LISTING_JSON: &str = "substr(card, 1, length(card) - 1) || ',\"sales\":' || listings.sales || \
    iif(name IS NULL, '', ',\"sellerName\":' || json_quote(name)) || \
    CASE WHEN coalesce(reputation, -1) < 0 THEN '' ELSE ',\"sellerReputation\":{\"score\":' || reputation || \
    ',\"basis\":' || (withdrawn + refunded) || '}' END || '}'";

/// Returns a listing as JSON.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn one(db: &impl ReadDatabase, id: &ListingId) -> Result<Option<String>, DatabaseError> {
    let query: Read<Option<String>> =
        sql::read!("SELECT {LISTING_JSON} FROM {LISTINGS} WHERE id = ?1 AND hidden_at_ms IS NULL", id);
    db.read(query).await
}

/// An [`api_types::Creator`] whose listings are already JSON text.
#[derive(Serialize)]
struct CreatorJson<'a> {
    address: &'a Address,
    listings: &'a RawValue,
    #[serde(flatten)]
    figures: SellerFigures,
}

/// Returns a creator's page as the JSON of [`api_types::Creator`]. The page has the listings after the cursor, or the
/// newest listings if `after` is `None`.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn creator(db: &impl ReadDatabase, address: &Address, after: Option<Cursor>) -> Result<Page, DatabaseError> {
    let listings = newest::matching(
        "seller_address = ?1 AND (?2 IS NULL OR seq < ?2)",
        vec![address.into(), after.map(|cursor| cursor.seq).into()],
    );
    let (listings, figures) = db.read((listings, seller_figures("?1", vec![address.into()]))).await?;
    let Page { json, next, .. } = newest::page(listings);
    let listings = RawValue::from_string(json).map_err(malformed)?;
    let figures = figures.map(SellerFigures::from).unwrap_or_default();
    let json = serde_json::to_string(&CreatorJson { address, listings: &listings, figures }).map_err(malformed)?;
    Ok(Page { json, next, some_words: false })
}

fn malformed(error: serde_json::Error) -> DatabaseError {
    DatabaseError(format!("a listing cannot be shown: {error}"))
}

/// Returns a seller's name, sales and reputation.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn seller(db: &impl ReadDatabase, address: &Address) -> Result<SellerFigures, DatabaseError> {
    let figures = db.read(seller_figures("?1", vec![address.into()])).await?;
    Ok(figures.map(SellerFigures::from).unwrap_or_default())
}

/// A seller's name, sales and reputation, as the query [`seller_figures`] returns them.
#[derive(Deserialize)]
pub(crate) struct FiguresRow {
    name: Option<String>,
    sales: u64,
    score: i64,
    basis: u64,
    decided: u64,
    lost: u64,
}

impl From<FiguresRow> for SellerFigures {
    fn from(FiguresRow { name, sales, score, basis, decided, lost }: FiguresRow) -> Self {
        // The stored score is negative until the seller's first escrow has ended.
        let score = u8::try_from(score).ok();
        Self {
            seller_name: name,
            sales,
            seller_reputation: score.map(|score| SellerReputation { score, basis }),
            disputes: (decided > 0).then_some(Disputes { decided, lost }),
        }
    }
}

/// Builds the query that reads a seller's name, sales and reputation. `address` is an SQL expression for the seller's
/// address, with the parameters `params`.
pub(crate) fn seller_figures(address: &str, params: Vec<Param>) -> Read<Option<FiguresRow>> {
    let of_decisions = format!("FROM decisions WHERE seller_address = {address}");
    let sql = format!(
        "SELECT name, sales, reputation AS score, withdrawn + refunded AS basis, \
           (SELECT count(*) {of_decisions}) AS decided, (SELECT count(*) {of_decisions} AND winner = 'buyer') AS lost \
         FROM sellers WHERE address = {address}"
    );
    Read::new(sql, params)
}

/// A listing's terms of sale, without the content.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "TermsRow")]
pub struct ListingTerms {
    pub id: ListingId,
    /// Title of the listing. It appears in the payment's description.
    pub title: String,
    pub price_lovelace: Lovelace,
    pub seller_address: Address,
    /// Hash of the content that is for sale.
    pub content_hash: ContentHash,
    pub modes: Vec<DeliveryMode>,
    /// Part of the content that everyone may read. It appears in the payment's description.
    pub excerpt: Option<String>,
    /// Length of the whole content; `None` if there is no excerpt.
    pub content_stats: Option<ContentStats>,
    /// Whether an operator has hidden the listing. Its buyers can still read the content.
    pub hidden: bool,
}

/// SQL list of the columns of [`ListingTerms`].
const TERMS: &str = "id, title, CAST(price_lovelace AS TEXT) AS price_lovelace, seller_address, content_hash, instant, \
    protected, card ->> '$.excerpt' AS excerpt, card ->> '$.contentStats.words' AS words, \
    card ->> '$.contentStats.characters' AS characters, hidden_at_ms IS NOT NULL AS hidden";

#[derive(Deserialize)]
struct TermsRow {
    id: ListingId,
    title: String,
    price_lovelace: Lovelace,
    seller_address: Address,
    content_hash: ContentHash,
    #[serde(deserialize_with = "sql::flag")]
    instant: bool,
    #[serde(deserialize_with = "sql::flag")]
    protected: bool,
    excerpt: Option<String>,
    words: Option<u64>,
    characters: Option<u64>,
    #[serde(deserialize_with = "sql::flag")]
    hidden: bool,
}

impl From<TermsRow> for ListingTerms {
    fn from(row: TermsRow) -> Self {
        let TermsRow { id, title, price_lovelace, seller_address, content_hash, instant, protected, .. } = row;
        let (excerpt, hidden) = (row.excerpt, row.hidden);
        let content_stats = row.words.zip(row.characters).map(|(words, characters)| ContentStats { words, characters });
        let modes = [(DeliveryMode::Instant, instant), (DeliveryMode::Protected, protected)];
        let modes = modes.into_iter().filter_map(|(mode, offered)| offered.then_some(mode)).collect();
        Self { id, title, price_lovelace, seller_address, content_hash, modes, excerpt, content_stats, hidden }
    }
}

impl ListingTerms {
    /// Returns the description of the content for its buyers: the title, and the excerpt if there is one.
    #[must_use]
    pub fn description(&self) -> String {
        match (&self.excerpt, self.content_stats) {
            (Some(excerpt), Some(ContentStats { words, characters })) => format!(
                "{}. From the text ({words} words, {characters} characters), checked by Surety: {excerpt}",
                self.title
            ),
            _ => self.title.clone(),
        }
    }

    /// Returns the listing's sale: its id, content hash, price and seller.
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

/// Builds the query that reads a listing's terms. Hidden listings are included.
pub fn terms(id: &ListingId) -> Read<Option<ListingTerms>> {
    sql::read!("SELECT {TERMS} FROM listings WHERE id = ?1", id)
}

/// Builds the query that reads the content hash of the listing that a payment paid for.
pub fn content_paid_by(payment: &TxHash) -> Read<Option<ContentHash>> {
    sql::read!(
        "SELECT content_hash FROM listings WHERE id = (SELECT listing_id FROM payments WHERE tx_id = ?1)",
        payment
    )
}

/// Title of a listing, with the listing's id.
#[derive(Clone, Debug, Deserialize)]
pub struct Title {
    pub id: String,
    pub title: String,
}

/// Builds the query that reads the titles of these listings. Hidden listings are included.
pub fn titles(ids: &[&str]) -> Read<Vec<Title>> {
    sql::read!(
        "SELECT id, title FROM listings WHERE id IN (SELECT value FROM json_each(?1))",
        serde_json::json!(ids).to_string()
    )
}

/// Filter and order of a page of listings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub category: Option<&'static str>,
    pub mode: Option<DeliveryMode>,
    pub seller: Option<Address>,
    /// Words to find in the title, the description or the category, in any grammatical form. The last word may be a
    /// prefix, of which only the first eight letters count. If no listing has all words, listings with some of them, or
    /// with similar words, match.
    pub words: Option<String>,
    pub max_price: Option<Lovelace>,
    /// Minimum reputation of the seller. Sellers without a reputation are excluded.
    pub min_reputation: Option<u8>,
    pub sort: Sort,
    pub limit: Option<u32>,
    /// Cursor from the previous page, after which this page starts; `None` for the first page.
    pub cursor: Option<Cursor>,
}

/// Position in the catalogue after the last listing of a page. Written as `key.seq`, the sort key and the sequence
/// number of that listing.
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

impl Filter {
    /// Parses the query of `GET /listings`. Returns `None` if the query has none of the known parameters and thus
    /// requests the whole catalogue. Unknown parameters are ignored.
    ///
    /// # Errors
    /// Returns an error if a parameter is invalid.
    pub fn from_query<'a>(
        pairs: impl IntoIterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
    ) -> Result<Option<Self>, Error> {
        let mut filter = Self::default();
        let mut asked = false;
        for (name, value) in pairs {
            asked |= filter.set(&name, &value)?;
        }
        Ok(asked.then_some(filter))
    }

    fn set(&mut self, name: &str, value: &str) -> Result<bool, Error> {
        let invalid = |rule: &str| Error::of_field(ErrorCode::InvalidValue, name, rule);
        match name {
            "limit" => {
                let limit = value.parse().ok().filter(|limit| (1..=MAX_PAGE).contains(limit));
                self.limit = Some(limit.ok_or_else(|| invalid("must be a whole number from 1 to 200"))?);
            }
            "cursor" => {
                self.cursor = Some(value.parse().map_err(|()| invalid("must come from a Link header"))?);
            }
            "category" => {
                let category = CATEGORIES.into_iter().find(|category| *category == value);
                self.category = Some(category.ok_or_else(|| invalid("must be one of the categories"))?);
            }
            "mode" => {
                self.mode = Some(value.parse().map_err(|()| invalid("must be instant or protected"))?);
            }
            "q" if value.chars().count() > MAX_QUERY => {
                return Err(Error::of_field(ErrorCode::InvalidLength, name, "must have at most 200 characters"));
            }
            "q" => self.words = Some(value.to_owned()),
            "sort" => {
                let rule = "must be newest, popular, price_asc, price_desc or reputation";
                self.sort = value.parse().map_err(|()| invalid(rule))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Returns the words of a text for a full-text query, without duplicates.
///
/// Words are split as the full-text index splits them. A word that the index splits further would become a phrase
/// query, which is slow.
fn words(text: &str) -> Vec<&str> {
    let mut found = vec![];
    for word in split(text) {
        if found.len() == MAX_WORDS {
            break;
        }
        // The last word may be a prefix, so it must stay last. If it is a duplicate, the earlier occurrence is removed.
        found.retain(|known: &&str| !known.eq_ignore_ascii_case(word));
        found.push(word);
    }
    found
}

/// Returns all words of a text.
fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || is_mark(c)) || is_framed(c)).filter(|word| !word.is_empty())
}

/// Returns whether a character is a combining accent, as in decomposed Unicode texts, or a Thai vowel or tone sign.
const fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{e31}' | '\u{e34}'..='\u{e3a}' | '\u{e47}'..='\u{e4e}')
}

/// Returns whether a character is a letter in a circle or square, which the full-text index treats as a symbol.
const fn is_framed(c: char) -> bool {
    matches!(c, '\u{24b6}'..='\u{24e9}' | '\u{1f130}'..='\u{1f189}')
}

/// A page of listings, with the cursor of the next page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The listings as a JSON array. On a creator's page, the creator as a JSON object that contains this array.
    pub json: String,
    /// Cursor of the next page; `None` on the last page.
    pub next: Option<String>,
    /// `true` if no listing has all words of the search. The page then has listings with some of the words, or with
    /// similar ones, best match first.
    pub some_words: bool,
}
