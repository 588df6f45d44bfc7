//! What this isolate knows of the shop without asking: its state for at most a second, and answers for as long as that
//! state stays the same.
//!
//! ```text
//! asked less than a second ago, nothing written here since ──> known      no statement
//! otherwise ──> asked, alone or in the batch that reads what is wanted
//! ```
//!
//! Another isolate's change is so seen within a second, one's own at once. Whatever moves money reads the database itself.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
};

use cardano::slots::Millis;
use edge::{
    answer::Fault,
    d1::{self, D1},
    serve::KeptText,
};
use market::{
    DeliveryMode, ListingId,
    catalogue::{self, ListingTerms, Newest, Page},
    chain_state::Lead,
    state::{self, ShopState},
};
use sql::{Database, DatabaseError, Rows, Statement};

use crate::{
    app::App,
    error::ApiError,
    limits::{Counted, Weight},
};

/// How long a state is believed, in ms.
const FRESH_MS: Millis = 1_000;
/// Answers and terms that are kept at most, of each.
const MAX_KEPT: usize = 2_000;
/// Characters of all kept answers and their names together, and of one of them.
const MAX_CHARS: usize = 16 << 20;
const MAX_ONE: usize = 4 << 20;
/// Bytes of a kept answer's name: a query may have sixteen thousand, and says little in most of them. A question has 200
/// characters, of nine bytes each at most.
const MAX_NAME: usize = 2 << 10;

/// A state as it was read.
#[derive(Clone, Copy)]
struct CachedState {
    state: ShopState,
    at: Millis,
    /// How much this isolate had written until then.
    writes: u64,
}

/// An answer's text, and where its next page begins.
#[derive(Clone)]
pub struct KeptPage {
    /// Of the catalogue, when it was read.
    pub version: i64,
    pub json: KeptText,
    pub next: Option<Rc<str>>,
}

/// What is kept by its name, each with its characters, and how many characters that is together.
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

    /// Keeps what has so many characters. What has a name that is longer than any question is not kept: it is not asked
    /// for again.
    pub fn keep(&mut self, name: &str, chars: usize, it: &T) {
        if chars > MAX_ONE || name.len() > MAX_NAME {
            return;
        }
        let chars = chars.saturating_add(name.len());
        // What it replaces counts no more.
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
    static ANSWERS: RefCell<Answers<KeptPage>> = RefCell::default();
    /// The newest listings, in the state that was last asked for.
    static NEWEST: RefCell<Option<Rc<Newest>>> = const { RefCell::new(None) };
    static TERMS: RefCell<Answers<(i64, Rc<ListingTerms>)>> = RefCell::default();
}

/// The state, where it was read less than a second ago and nothing was written here since.
fn fresh_state(now: Millis) -> Option<ShopState> {
    let cached = STATE.get()?;
    let believed = cached.writes == d1::writes() && now.saturating_sub(cached.at) < FRESH_MS;
    believed.then_some(cached.state)
}

/// A database that reads the shop's state with the first batch, in the same transaction.
pub struct VersionedDatabase {
    database: D1,
    now: Millis,
    last: Cell<Option<ShopState>>,
}

impl VersionedDatabase {
    /// For a request.
    pub fn new(app: &App) -> Self {
        Self { database: app.database(), now: app.now_ms, last: Cell::new(None) }
    }

    /// The state that the last batch read.
    pub fn state(&self) -> Result<ShopState, ApiError> {
        Ok(self.last.get().ok_or_else(|| DatabaseError("nothing was asked".into()))?)
    }
}

impl Database for VersionedDatabase {
    async fn batch(&self, mut statements: Vec<Statement>) -> Result<Vec<Rows>, DatabaseError> {
        // As it was before: what is written meanwhile is not in what is read.
        let writes = d1::writes();
        statements.push(state::read());
        let mut answers = self.database.batch(statements).await?;
        let state = state::of(&answers.pop().unwrap_or_default())?;
        STATE.set(Some(CachedState { state, at: self.now, writes }));
        self.last.set(Some(state));
        Ok(answers)
    }
}

/// The state of the shop: known, or asked now.
async fn state(app: &App) -> Result<ShopState, ApiError> {
    if let Some(state) = fresh_state(app.now_ms) {
        return Ok(state);
    }
    let database = VersionedDatabase::new(app);
    database.batch(vec![]).await?;
    database.state()
}

/// An answer by its name: as it is kept, if the catalogue has not changed since; otherwise as it is read now. What is not
/// there (`None`) is not kept. What asks the database counts for the client. A list has a weight, one thing has none.
pub async fn answer<R>(
    app: &App,
    weight: Option<Weight>,
    name: &str,
    read: impl FnOnce(Rc<VersionedDatabase>) -> R,
) -> Result<Option<KeptPage>, ApiError>
where
    R: Future<Output = Result<Option<Page>, DatabaseError>>,
{
    let kept = ANSWERS.with_borrow(|answers| answers.get(name));
    let current = |kept: &KeptPage, state: Option<ShopState>| state.is_some_and(|state| state.version == kept.version);
    if kept.as_ref().is_some_and(|kept| current(kept, fresh_state(app.now_ms))) {
        return Ok(kept);
    }
    app.limit_client(if weight.is_some() { Counted::SEARCH } else { Counted::READ }).await?;
    if let Some(kept) = kept
        && current(&kept, Some(state(app).await?))
    {
        return Ok(Some(kept));
    }
    let permit = match weight {
        Some(weight) => Some(weight.hold(&app.request).await?),
        None => None,
    };
    // Another may have read it while this one waited.
    if permit.is_some()
        && let Some(kept) = ANSWERS.with_borrow(|answers| answers.get(name))
        && current(&kept, fresh_state(app.now_ms))
    {
        return Ok(Some(kept));
    }
    let database = Rc::new(VersionedDatabase::new(app));
    let Some(page) = read(database.clone()).await? else { return Ok(None) };
    // A question that answers itself asks nothing.
    let state = match database.last.get() {
        Some(state) => state,
        None => state(app).await?,
    };
    Ok(Some(keep(name, state.version, page)))
}

/// [`answer`] where there always is one: a list of this weight.
pub async fn list<R>(
    app: &App,
    weight: Weight,
    name: &str,
    read: impl FnOnce(Rc<VersionedDatabase>) -> R,
) -> Result<KeptPage, ApiError>
where
    R: Future<Output = Result<Page, DatabaseError>>,
{
    let read = async move |database| read(database).await.map(Some);
    let page = answer(app, Some(weight), name, read).await?;
    Ok(page.ok_or_else(|| Fault::Inconsistent(format!("{name} has no list")))?)
}

/// The name of the whole catalogue.
const ALL_LISTINGS: &str = "/listings";

/// The newest listings as they are kept, where nothing changed within a second.
fn newest_kept(now: Millis) -> Option<KeptPage> {
    let kept = ANSWERS.with_borrow(|answers| answers.get(ALL_LISTINGS))?;
    fresh_state(now).is_some_and(|state| state.version == kept.version).then_some(kept)
}

/// The newest listings: kept for a second, and followed then in one batch, which reads what changed and no more.
pub async fn newest(app: &App) -> Result<KeptPage, ApiError> {
    if let Some(kept) = newest_kept(app.now_ms) {
        return Ok(kept);
    }
    app.limit_client(Counted::READ).await?;
    let _permit = Weight::LONG.hold(&app.request).await?;
    // Another may have read them while this one waited: all of them, where many changed.
    if let Some(kept) = newest_kept(app.now_ms) {
        return Ok(kept);
    }
    let database = VersionedDatabase::new(app);
    let known = NEWEST.with_borrow(Option::clone);
    let newest = match known {
        Some(known) => known.update(&database).await?,
        None => Newest::read(&database).await?,
    };
    let version = database.state()?.version;
    let kept = ANSWERS.with_borrow(|answers| answers.get(ALL_LISTINGS));
    if let Some(kept) = kept.filter(|kept| kept.version == version) {
        return Ok(kept);
    }
    let page = newest.page();
    NEWEST.set(Some(Rc::new(newest)));
    Ok(keep(ALL_LISTINGS, version, page))
}

fn keep(name: &str, version: i64, Page { json, next }: Page) -> KeptPage {
    let page = KeptPage { version, json: KeptText::new(&json), next: next.map(Rc::from) };
    ANSWERS.with_borrow_mut(|answers| answers.keep(name, json.len(), &page));
    page
}

/// A listing's terms with the state of the shop; those that are not known take one from what the client may ask for. On a
/// local ledger, time may have been moved since it was last asked.
pub async fn terms(app: &App, lead: Lead, id: &ListingId) -> Result<Option<(Rc<ListingTerms>, ShopState)>, ApiError> {
    let kept = TERMS.with_borrow(|terms| terms.get(id.as_str()));
    if let (Some((version, terms)), Some(state)) = (kept, fresh_state(app.now_ms))
        && version == state.version
        && (lead == Lead::Bounded || !terms.modes.contains(&DeliveryMode::Protected))
    {
        return Ok(Some((terms, state)));
    }
    app.limit_client(Counted::READ).await?;
    let database = VersionedDatabase::new(app);
    let Some(terms) = database.run(catalogue::terms(id)).await?.first_json::<ListingTerms>()? else { return Ok(None) };
    let (terms, state) = (Rc::new(terms), database.state()?);
    TERMS.with_borrow_mut(|kept| kept.keep(id.as_str(), terms.title.len(), &(state.version, terms.clone())));
    Ok(Some((terms, state)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_keys_take_no_more_memory_than_their_bound() {
        for length in [MAX_NAME / 2, MAX_NAME, 16_000] {
            let mut answers = Answers::<()>::default();
            for number in 0..2 * MAX_KEPT {
                // A question with a parameter that the API does not read.
                answers.keep(&format!("/listings?q=zzzz&unread={number:0length$}"), 10_000, &());
            }
            let held: usize = answers.by_name.values().map(|(chars, ())| chars).sum();
            assert!(held <= MAX_CHARS, "{held} of {MAX_CHARS}");
        }
    }
}
