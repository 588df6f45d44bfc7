//! Caches answers in an isolate's memory for as long as the shop's state is unchanged. The state itself is cached for
//! at most a second.
//!
//! ```text
//! read less than a second ago, nothing written here since ──> cached      no statement
//! otherwise ──> read, alone or in the batch that reads the missing answer
//! ```
//!
//! Changes by this isolate are seen at once. Changes by other isolates are seen once the cached state is older than a
//! second and the database replica has received them. Everything that moves money reads the primary database instead.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
};

use cardano::slots::Millis;
use edge::{
    answer::Fault,
    d1::{self, Nearest},
    serve::JsText,
};
use market::{
    DeliveryMode, ListingId,
    catalogue::{self, ListingTerms, Newest, Page},
    chain_state::ClockLead,
    state::{self, ShopState},
};
use sql::{Batch, Database, DatabaseError, One, ReadDatabase, Statement};

use crate::{
    app::App,
    error::ApiError,
    limits::{AnswerMemory, Counted},
    route::OnMiss,
};

/// Maximum age in ms at which the cached shop state is used.
const FRESH_MS: Millis = 1_000;
/// Maximum number of entries in each cache.
const MAX_KEPT: usize = 2_000;
/// Maximum total length of all cached answers and their keys in characters.
const MAX_CHARS: usize = 16 << 20;
const MAX_ONE: usize = 4 << 20;
/// Maximum length of a cache key in bytes. A search has at most 200 characters, each of which takes at most nine bytes
/// in a query. A longer query contains more than a search, so its answer is seldom requested again.
const MAX_NAME: usize = 2 << 10;

/// The shop's state, with the time at which it was read from the database.
#[derive(Clone, Copy)]
struct CachedState {
    state: ShopState,
    at: Millis,
    /// Value of [`writes`](edge::d1::writes) when the state was read. If it has changed since, the state is stale.
    writes: u64,
}

/// A cached page of the catalogue, and the cursor of the next page.
#[derive(Clone)]
pub struct CachedPage {
    /// Version of the catalogue that the page shows.
    pub version: i64,
    pub json: JsText,
    pub next: Option<Rc<str>>,
    /// Whether the page's listings match only some of the words of the search.
    pub some_words: bool,
}

/// A cache of values by key, bounded by the total length of the values.
pub struct Answers<T> {
    by_name: HashMap<String, (usize, T)>,
    chars: usize,
}

impl<T> Default for Answers<T> {
    fn default() -> Self {
        Self { by_name: HashMap::new(), chars: 0 }
    }
}

impl<T: Clone> Answers<T> {
    pub fn get(&self, name: &str) -> Option<T> {
        self.by_name.get(name).map(|(_, it)| it.clone())
    }

    /// Caches a value under the key `name`, with its length in characters. Values with long keys are not cached,
    /// because requests with such keys seldom repeat.
    pub fn keep(&mut self, name: &str, chars: usize, it: &T) {
        if chars > MAX_ONE || name.len() > MAX_NAME {
            return;
        }
        let chars = chars.saturating_add(name.len());
        // A replaced value no longer counts.
        let replaced = self.by_name.remove(name).map_or(0, |(chars, _)| chars);
        self.chars = self.chars.saturating_sub(replaced).saturating_add(chars);
        if self.chars > MAX_CHARS || self.by_name.len() >= MAX_KEPT {
            *self = Self { chars, ..Self::default() };
        }
        self.by_name.insert(name.to_owned(), (chars, it.clone()));
    }
}

thread_local! {
    static STATE: Cell<Option<CachedState>> = const { Cell::new(None) };
    static ANSWERS: RefCell<Answers<CachedPage>> = RefCell::default();
    static NEWEST: RefCell<Rc<Newest>> = RefCell::default();
    static TERMS: RefCell<Answers<(i64, Rc<ListingTerms>)>> = RefCell::default();
}

/// Returns the cached state, or `None` if it was read more than a second ago or this isolate has written since.
fn fresh_state(now: Millis) -> Option<ShopState> {
    let cached = STATE.get()?;
    let believed = cached.writes == d1::writes() && now.saturating_sub(cached.at) < FRESH_MS;
    believed.then_some(cached.state)
}

/// A database that also reads the shop's state in each batch, so that the state and the batch's results are consistent.
pub struct VersionedDatabase {
    database: Nearest,
    now: Millis,
    last: Cell<Option<ShopState>>,
}

impl VersionedDatabase {
    /// Creates a handle on the nearest replica for a request.
    pub fn new(app: &App) -> Self {
        Self { database: app.nearest(), now: app.now_ms, last: Cell::new(None) }
    }

    /// Returns the shop's state that the last batch read.
    pub fn state(&self) -> Result<ShopState, ApiError> {
        Ok(self.last.get().ok_or_else(|| DatabaseError("nothing was asked".into()))?)
    }
}

impl ReadDatabase for VersionedDatabase {
    async fn read_statements(&self, statements: &[&Statement]) -> Result<Vec<String>, DatabaseError> {
        // Read before the batch, so that concurrent writes make the cached state stale.
        let writes = d1::writes();
        let query = state::read();
        let mut with_state = statements.to_vec();
        query.statements(&mut with_state);
        let mut answers = self.database.read_statements(&with_state).await?;
        let One(state) = query.answer(&mut answers.split_off(statements.len()).into_iter())?;
        STATE.set(Some(CachedState { state, at: self.now, writes }));
        self.last.set(Some(state));
        Ok(answers)
    }
}

/// Returns the shop's state, cached or read now.
async fn state(app: &App) -> Result<ShopState, ApiError> {
    if let Some(state) = fresh_state(app.now_ms) {
        return Ok(state);
    }
    let database = VersionedDatabase::new(app);
    database.read_statements(&[]).await?;
    database.state()
}

/// Returns an answer from the cache if the catalogue has not changed, or else calls `read` and caches its result.
/// Returns `None` if the object does not exist; this is not cached.
///
/// Reads of the database count against the client's `limit`. `weight` is the memory to reserve for a list; `None` for a
/// single object.
pub async fn answer<R>(
    app: &App,
    OnMiss(limit): OnMiss,
    weight: Option<AnswerMemory>,
    name: &str,
    read: impl FnOnce(Rc<VersionedDatabase>) -> R,
) -> Result<Option<CachedPage>, ApiError>
where
    R: Future<Output = Result<Option<Page>, DatabaseError>>,
{
    let kept = ANSWERS.with_borrow(|answers| answers.get(name));
    let current =
        |kept: &CachedPage, state: Option<ShopState>| state.is_some_and(|state| state.version == kept.version);
    if kept.as_ref().is_some_and(|kept| current(kept, fresh_state(app.now_ms))) {
        return Ok(kept);
    }
    app.limit_client(limit).await?;
    if let Some(kept) = kept
        && current(&kept, Some(state(app).await?))
    {
        return Ok(Some(kept));
    }
    let permit = match weight {
        Some(weight) => Some(weight.hold(&app.request).await?),
        None => None,
    };
    // A concurrent request may have cached the answer while this one waited.
    if permit.is_some()
        && let Some(kept) = ANSWERS.with_borrow(|answers| answers.get(name))
        && current(&kept, fresh_state(app.now_ms))
    {
        return Ok(Some(kept));
    }
    let database = Rc::new(VersionedDatabase::new(app));
    let Some(page) = read(database.clone()).await? else { return Ok(None) };
    // Some answers need no query, so the state was not read with them.
    let state = match database.last.get() {
        Some(state) => state,
        None => state(app).await?,
    };
    Ok(Some(keep(name, state.version, page)))
}

/// Returns a list from the cache if the catalogue has not changed, or else calls `read` for it and reserves `weight` of
/// memory.
pub async fn list<R>(
    app: &App,
    limit: OnMiss,
    weight: AnswerMemory,
    name: &str,
    read: impl FnOnce(Rc<VersionedDatabase>) -> R,
) -> Result<CachedPage, ApiError>
where
    R: Future<Output = Result<Page, DatabaseError>>,
{
    let read = async move |database| read(database).await.map(Some);
    let page = answer(app, limit, Some(weight), name, read).await?;
    Ok(page.ok_or_else(|| Fault::Inconsistent(format!("{name} has no list")))?)
}

/// Returns the newest listings of the catalogue.
pub async fn newest(app: &App, limit: OnMiss) -> Result<CachedPage, ApiError> {
    let read = async |database: Rc<VersionedDatabase>| {
        let known = NEWEST.with_borrow(Rc::clone);
        let newest = known.update(&*database).await?;
        let page = newest.page();
        NEWEST.set(Rc::new(newest));
        Ok(page)
    };
    list(app, limit, AnswerMemory::LONG, "/listings", read).await
}

fn keep(name: &str, version: i64, Page { json, next, some_words }: Page) -> CachedPage {
    let page = CachedPage { version, json: JsText::new(&json), next: next.map(Rc::from), some_words };
    ANSWERS.with_borrow_mut(|answers| answers.keep(name, json.len(), &page));
    page
}

/// The time against which escrow deadlines are checked.
#[derive(Clone, Copy, Debug)]
pub struct ChainClock {
    /// The later of the wall clock and the newest block's time, POSIX ms.
    pub ms: Millis,
    /// Whether the newest known block is too old to offer protected sales.
    pub is_behind: bool,
}

impl ChainClock {
    fn of(app: &App, state: ShopState) -> Result<Self, ApiError> {
        let (lead, now) = (app.settings()?.lead, app.now_ms);
        Ok(Self { ms: lead.clock(state.block_ms, now), is_behind: lead.is_behind(state.block_ms, now) })
    }

    /// Reads the time. On a local ledger, the chain's time may be ahead of the worker's clock.
    pub async fn read(app: &App) -> Result<Self, ApiError> {
        let One(state) = app.database().fetch(state::read()).await?;
        Self::of(app, state)
    }
}

/// A listing's terms, with the time against which escrow deadlines are checked.
#[derive(Clone, Debug)]
pub struct Priced {
    pub terms: Rc<ListingTerms>,
    pub clock: ChainClock,
}

/// Returns a listing's terms with the time for escrow deadlines, or `None` if there is no such listing. The terms may
/// be some seconds old, because they are cached and a replica of the database may lag. If the listing was taken off
/// sale meanwhile, a payment for it is still rejected.
///
/// Reading terms that are not cached counts against the client's rate limit. On a local ledger, the terms of protected
/// listings are always read again, because tests move the time.
pub async fn priced(app: &App, id: &ListingId) -> Result<Option<Priced>, ApiError> {
    app.line.note("listing", id.as_str());
    let is_bounded = app.settings()?.lead == ClockLead::Bounded;
    let kept = TERMS.with_borrow(|terms| terms.get(id.as_str()));
    if let (Some((version, terms)), Some(state)) = (kept, fresh_state(app.now_ms))
        && version == state.version
        && (is_bounded || !terms.modes.contains(&DeliveryMode::Protected))
    {
        return Ok(Some(Priced { terms, clock: ChainClock::of(app, state)? }));
    }
    app.limit_client(Counted::READ).await?;
    let database = VersionedDatabase::new(app);
    let Some(terms) = database.read(catalogue::terms(id)).await? else { return Ok(None) };
    let (terms, state) = (Rc::new(terms), database.state()?);
    TERMS.with_borrow_mut(|kept| kept.keep(id.as_str(), terms.title.len(), &(state.version, terms.clone())));
    Ok(Some(Priced { terms, clock: ChainClock::of(app, state)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_keys_take_no_more_memory_than_their_bound() {
        for length in [MAX_NAME / 2, MAX_NAME, 16_000] {
            let mut answers = Answers::<()>::default();
            for number in 0..2 * MAX_KEPT {
                // A query with an unknown parameter.
                answers.keep(&format!("/listings?q=zzzz&unread={number:0length$}"), 10_000, &());
            }
            let held: usize = answers.by_name.values().map(|(chars, ())| chars).sum();
            assert!(held <= MAX_CHARS, "{held} of {MAX_CHARS}");
        }
    }
}
