//! Reads the newest listings, of all sellers or of one: at most 1,000, and at most 2 MB of JSON.

use std::rc::Rc;

use api_types::Listing;
use serde::Deserialize;
use sql::{Both, DatabaseError, One, Param, Read, ReadDatabase};

use super::{FIGURES_BYTES, LISTING_JSON, LISTINGS, MAX_UNFILTERED, MAX_UNFILTERED_BYTES, Page};

/// Maximum number of changed listings that are read individually.
const MAX_CHANGED: u32 = 200;

/// The newest listings of the catalogue, as last read from the database. [`Newest::update`] reads only the listings of
/// sellers with a change since then: a new, edited or hidden listing, a sale, or a new name or reputation.
#[derive(Clone, Debug, Default)]
pub struct Newest {
    version: CatalogueVersion,
    /// The listings' sequence numbers and JSON, newest first.
    listings: Vec<(i64, Rc<str>)>,
    /// Whether the catalogue has older listings than these.
    has_older: bool,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct CatalogueVersion {
    /// Time at which the database was restored from a backup, POSIX ms. The versions before and after a restore are not
    /// of the same history.
    restored_ms: Option<i64>,
    version: i64,
}

/// SQL list of the columns of [`CatalogueVersion`].
const VERSION: &str = "version, (SELECT max(at_ms) FROM restored) AS restored_ms";

/// A listing of a seller with a change.
#[derive(Deserialize)]
struct Changed {
    /// The listing's sequence number; `None` if nothing has changed.
    seq: Option<i64>,
    /// The listing's JSON; `None` if it is hidden.
    json: Option<String>,
}

impl Newest {
    /// Reads the newest listings.
    ///
    /// # Errors
    /// Returns an error if the database query failed.
    pub async fn read(db: &impl ReadDatabase) -> Result<Self, DatabaseError> {
        let version: Read<One<CatalogueVersion>> = sql::read!("SELECT {VERSION} FROM catalogue_version");
        let (One(version), rows) = db.read((version, matching("TRUE", vec![]))).await?;
        let (rows, has_older) = fitting(rows);
        let listings = rows.into_iter().map(|Listed { seq, json, .. }| (seq, Rc::from(json))).collect();
        Ok(Self { version, listings, has_older })
    }

    /// Returns the newest listings of the current version of the catalogue. Reads only what has changed, or else all
    /// listings: on the first call, if too much has changed, if older listings may have come onto the page, or if the
    /// database is a replica that has not yet reached the version of `self`.
    ///
    /// # Errors
    /// Returns an error if the database query failed.
    pub async fn update(&self, db: &impl ReadDatabase) -> Result<Self, DatabaseError> {
        let before = self.version;
        if before.version == 0 {
            return Self::read(db).await;
        }
        let oldest = self.listings.last().filter(|_| self.has_older).map(|(seq, _)| *seq).unwrap_or_default();
        let changed: Read<Vec<Both<CatalogueVersion, Changed>>> = sql::read!(
            "SELECT {VERSION}, seq, json FROM catalogue_version LEFT JOIN ( \
               SELECT seq, iif(hidden_at_ms IS NULL, {LISTING_JSON}, NULL) AS json \
               FROM sellers CROSS JOIN listings ON listings.seller_address = sellers.address \
               WHERE changed > ?1 AND seq >= ?2 LIMIT {MAX_CHANGED} + 1)",
            before.version,
            oldest
        );
        let changed = db.read(changed).await?;
        let version = changed.first().map(|row| row.0).unwrap_or_default();
        let is_later = version.restored_ms == before.restored_ms && version.version >= before.version;
        if !is_later || changed.len() > MAX_CHANGED as usize {
            return Self::read(db).await;
        }
        let mut now = Self { version, ..self.clone() };
        for Both(_, Changed { seq, json }) in changed {
            let Some(seq) = seq else { continue };
            let place = now.listings.partition_point(|(known, _)| *known > seq);
            let known = now.listings.get(place).is_some_and(|(known, _)| *known == seq);
            now.listings.splice(place..place.saturating_add(known.into()), json.map(|json| (seq, json.into())));
        }
        let has_room = now.listings.len() < self.listings.len() || now.bytes() < self.bytes();
        if self.has_older && has_room {
            return Self::read(db).await;
        }
        while now.listings.len() > MAX_UNFILTERED as usize || now.bytes() > MAX_UNFILTERED_BYTES as usize {
            now.listings.pop();
            now.has_older = true;
        }
        Ok(now)
    }

    /// Returns the total length of the listings' JSON in bytes, with commas.
    fn bytes(&self) -> usize {
        self.listings.iter().fold(0, |sum, (_, json)| sum.saturating_add(json.len()).saturating_add(1))
    }

    /// Renders the listings as a page.
    #[must_use]
    pub fn page(&self) -> Page {
        let listings = self.listings.iter().map(|(seq, json)| (*seq, &**json)).collect();
        render(listings, self.has_older)
    }
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

/// Returns the listings within the maximum number and size of a page, and whether there are older ones.
fn fitting(mut listings: Vec<Listed>) -> (Vec<Listed>, bool) {
    let read = listings.len();
    let fitting = listings.iter().take_while(|listed| listed.fits).count();
    listings.truncate(fitting);
    (listings, fitting < read)
}

/// Renders the listings that [`matching`] read as a page.
pub(crate) fn page(listings: Vec<Listed>) -> Page {
    let (listings, has_older) = fitting(listings);
    render(listings.iter().map(|listed| (listed.seq, listed.json.as_str())).collect(), has_older)
}

/// Renders listings as a page, from their sequence numbers and JSON, newest first.
fn render(listings: Vec<(i64, &str)>, has_older: bool) -> Page {
    let last = listings.last().filter(|_| has_older);
    let next = last.map(|(seq, _)| format!("{seq}.{seq}"));
    let json: Vec<&str> = listings.into_iter().map(|(_, json)| json).collect();
    Page { json: format!("[{}]", json.join(",")), next, some_words: false }
}

/// Parses the listings that [`matching`] read, without the one beyond the maximum. Each row's text is freed once it is
/// parsed, because all of them together are long.
///
/// # Errors
/// Returns an error if a row's text is not a listing.
pub(crate) fn parse(listings: Vec<Listed>) -> serde_json::Result<Vec<Listing>> {
    let (listings, _) = fitting(listings);
    listings.into_iter().map(|listed| serde_json::from_str(&listed.json)).collect()
}
