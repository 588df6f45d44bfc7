//! The newest listings as an incremental cache: read in full once, then only what has changed.
//!
//! ```text
//! new listing            has a greater seq
//! sale, reputation       all listings of the seller are read again: its `changed` is the catalogue version of the change
//! hidden, shown again    increments `hidings`: everything is read again
//! ```

use std::{collections::VecDeque, rc::Rc};

use serde::Deserialize;
use sql::{DatabaseError, ReadDatabase, Rows, Statement, exactly, statement};

use super::{CHUNK, FIGURES_BYTES, LISTING_JSON, LISTINGS, MAX_WHOLE, MAX_WHOLE_BYTES, Page};

/// Character that separates the listings in a row of a result. JSON text cannot contain it.
const SEPARATOR: char = '\u{1e}';
/// Maximum number of changed listings that are read individually.
const MAX_CHANGED: u32 = 200;

/// The newest listings of one catalogue version: at most 1,000, and 2 MB of JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newest {
    state: State,
    /// Listings, newest first.
    listings: VecDeque<Kept>,
    bytes: u64,
    /// Whether the catalogue has older listings than these.
    more: bool,
}

/// Version numbers that show whether a cached list of listings is outdated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
struct State {
    version: i64,
    hidings: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    seq: i64,
    /// Number of bytes by which the listing counts towards the maximum size of the list; at most the length of `json`.
    bytes: u64,
    json: Rc<str>,
}

impl Newest {
    /// Reads the newest listings in full.
    ///
    /// # Errors
    /// Returns an error if the database query failed.
    pub async fn read(db: &impl ReadDatabase) -> Result<Self, DatabaseError> {
        let [state, chunks] = exactly(db.read(vec![state(), statement!(matching("TRUE"))]).await?)?;
        let (listings, more) = kept(&chunks)?;
        Ok(Self { state: state_of(&state)?, bytes: listings.iter().map(|kept| kept.bytes).sum(), listings, more })
    }

    /// Returns the current listings, reading only changed ones if possible.
    ///
    /// # Errors
    /// Returns an error if the database query failed.
    pub async fn update(&self, db: &impl ReadDatabase) -> Result<Self, DatabaseError> {
        let (Some(newest), Some(oldest)) = (self.listings.front(), self.listings.back()) else {
            return Self::read(db).await;
        };
        let statement = changed(self.state.version, newest.seq, oldest.seq);
        let [state, changed] = exactly(db.read(vec![state(), statement]).await?)?;
        let state = state_of(&state)?;
        if state.hidings != self.state.hidings || changed.rows.len() > MAX_CHANGED as usize {
            return Self::read(db).await;
        }
        let mut now = Self { state, ..self.clone() };
        for item in &changed.rows {
            now.put(Kept::read(item)?);
        }
        now.trim();
        Ok(now)
    }

    /// Replaces the listing with the same sequence number, or else inserts the listing as the newest one.
    fn put(&mut self, kept: Kept) {
        match self.listings.binary_search_by(|known| kept.seq.cmp(&known.seq)) {
            Ok(index) => {
                if let Some(known) = self.listings.get_mut(index) {
                    *known = kept;
                }
            }
            Err(_) => {
                self.bytes = self.bytes.saturating_add(kept.bytes);
                self.listings.push_front(kept);
            }
        }
    }

    /// Drops the oldest listings until neither the maximum number nor the maximum size is exceeded.
    fn trim(&mut self) {
        while self.listings.len() > MAX_WHOLE as usize || self.bytes > MAX_WHOLE_BYTES.into() {
            let Some(oldest) = self.listings.pop_back() else { return };
            self.bytes = self.bytes.saturating_sub(oldest.bytes);
            self.more = true;
        }
    }

    /// Returns the version of the catalogue, which grows with every visible change.
    #[must_use]
    pub const fn version(&self) -> i64 {
        self.state.version
    }

    /// Renders the listings as a page.
    #[must_use]
    pub fn page(&self) -> Page {
        page_of(&self.listings, self.more)
    }
}

impl Kept {
    /// Parses a listing from the text `seq bytes json`.
    fn read(item: &str) -> Result<Self, DatabaseError> {
        let mut parts = item.splitn(3, ' ');
        let mut next = || parts.next().ok_or_else(malformed);
        let (seq, bytes) = (next()?.parse().map_err(|_| malformed())?, next()?.parse().map_err(|_| malformed())?);
        Ok(Self { seq, bytes, json: next()?.into() })
    }
}

fn malformed() -> DatabaseError {
    DatabaseError("a listing without its number".into())
}

fn state() -> Statement {
    statement!("SELECT json_object('version', version, 'hidings', hidings) FROM catalogue_version")
}

fn state_of(rows: &Rows) -> Result<State, DatabaseError> {
    rows.first_json()?.ok_or_else(|| DatabaseError("no catalogue version".into()))
}

/// Returns the SQL for a listing as text, `seq bytes json`.
fn item() -> String {
    format!("listings.seq || ' ' || (octet_length(card) + {FIGURES_BYTES}) || ' ' || {LISTING_JSON}")
}

/// Returns the SQL for the newest listings that satisfy a condition, in chunks: `- items`, or `+ items` if older
/// listings are left.
///
/// The cut is found by the lengths of the cards, so that JSON is rendered only for listings within the maximum.
pub(crate) fn matching(condition: &str) -> String {
    let shown = format!("hidden_at_ms IS NULL AND {condition}");
    format!(
        include_str!("newest.sql"),
        figures = FIGURES_BYTES,
        shown = shown,
        most = MAX_WHOLE,
        most_bytes = MAX_WHOLE_BYTES,
        item = item(),
        listings = LISTINGS,
        chunk = CHUNK
    )
}

/// Parses the rows of [`matching`]. Returns the listings, and whether there are older ones.
fn kept(chunks: &Rows) -> Result<(VecDeque<Kept>, bool), DatabaseError> {
    let (mut listings, mut more) = (VecDeque::new(), false);
    for chunk in &chunks.rows {
        let (rest, chunk) = chunk.split_once(' ').ok_or_else(malformed)?;
        more = rest == "+";
        for item in chunk.split(SEPARATOR) {
            listings.push_back(Kept::read(item)?);
        }
    }
    Ok((listings, more))
}

/// Renders the rows of [`matching`] as a page.
pub(crate) fn page(chunks: &Rows) -> Result<Page, DatabaseError> {
    let (listings, more) = kept(chunks)?;
    Ok(page_of(&listings, more))
}

fn page_of(listings: &VecDeque<Kept>, more: bool) -> Page {
    let json: Vec<&str> = listings.iter().map(|kept| &*kept.json).collect();
    let last = listings.back().filter(|_| more);
    let next = last.map(|Kept { seq, .. }| format!("{seq}.{seq}"));
    Page { json: format!("[{}]", json.join(",")), next, some_words: false }
}

/// Builds the statement that reads the listings that were changed since a catalogue version, and new ones, oldest
/// first.
fn changed(version: i64, newest: i64, oldest: i64) -> Statement {
    statement!(format!(include_str!("changed.sql"), item = item(), most = MAX_CHANGED), version, newest, oldest)
}
