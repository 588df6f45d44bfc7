//! The database port on D1, with a timeout for every batch and one retry of reads whose connection was lost.

use std::{
    cell::{Cell, RefCell},
    pin::pin,
    time::Duration,
};

use futures_util::future::{Either, select};

use js_sys::{Array, JSON, Promise};
use sql::{Database, DatabaseError, Param, ReadDatabase, Statement};
use wasm_bindgen::{JsCast, JsValue, prelude::wasm_bindgen};
use wasm_bindgen_futures::JsFuture;
use worker::{D1Database, D1PreparedStatement, Env};

use crate::usage::Usage;

thread_local! {
    static WRITES: Cell<u64> = const { Cell::new(0) };
    static SIZE: Cell<u64> = const { Cell::new(0) };
    /// D1 bookmark of this isolate's newest write: a position in the database's history. `None` before the first write.
    /// A replica that has reached the bookmark shows everything that this isolate wrote.
    static BOOKMARK: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// D1's constraint for a session whose first batch runs at the primary.
const AT_PRIMARY: &str = "first-primary";
/// D1's constraint for a session whose first batch may run at any replica.
const ANYWHERE: &str = "first-unconstrained";

/// Returns a number that changes whenever this isolate writes to a database. A value that was read while this number
/// was different may be stale.
#[must_use]
pub fn writes() -> u64 {
    WRITES.get()
}

/// Returns the database's size in bytes according to the last answer in this isolate; 0 before the first.
#[must_use]
pub fn size() -> u64 {
    SIZE.get()
}

/// Timeout of a batch. D1 usually answers in well under a second, and a waiting request needs time left to report the
/// timeout.
const TIME: Duration = Duration::from_secs(8);
/// Pause before the retry of a read.
const PAUSE: Duration = Duration::from_millis(100);
/// D1's messages for temporary errors (<https://developers.cloudflare.com/d1/observability/debug-d1/#error-list>).
const LOST: [&str; 5] = [
    "Network connection lost",
    "storage caused object to be reset",
    "D1 DB reset because its code was updated",
    "Cannot resolve D1 DB due to transient issue",
    "storage operation exceeded timeout which caused object to be reset",
];

/// Runs `ask` with a timeout. If the connection is lost and the batch only `reads`, retries once. A batch that writes
/// and gets no answer may or may not have been applied.
async fn in_time<T>(
    reads: bool,
    ask: impl AsyncFn() -> Result<T, String>,
    sleep: impl AsyncFn(Duration),
) -> Result<T, String> {
    let once = async || match select(pin!(ask()), pin!(sleep(TIME))).await {
        Either::Left((answer, _)) => answer,
        Either::Right(_) => Err(format!("no answer within {} seconds", TIME.as_secs())),
    };
    match once().await {
        Err(error) if reads && LOST.iter().any(|lost| error.contains(lost)) => {
            sleep(PAUSE).await;
            once().await
        }
        answer => answer,
    }
}

/// A guard that changes the number returned by [`writes`] when a writing batch begins, and again when the batch ends or
/// is cancelled.
struct Writing;

impl Writing {
    fn count() {
        WRITES.set(WRITES.get().wrapping_add(1));
    }

    /// Returns whether one of these statements may write.
    fn is_among(statements: &[&Statement]) -> bool {
        statements.iter().any(|statement| statement.writes)
    }

    fn of(statements: &[&Statement]) -> Option<Self> {
        Self::is_among(statements).then(|| {
            Self::count();
            Self
        })
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        Self::count();
    }
}

// Cloudflare's D1 worker API: https://developers.cloudflare.com/d1/worker-api/. The `worker` crate parses counts as
// `usize`, which has 32 bits on wasm, so it fails for databases of 4 GiB and more.
#[wasm_bindgen]
extern "C" {
    /// A `D1Database` of the runtime, or a session on one (`D1DatabaseSession`).
    type Binding;
    #[wasm_bindgen(method, catch)]
    fn batch(this: &Binding, statements: Vec<JsValue>) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, catch, js_name = withSession)]
    fn with_session(this: &Binding, constraint_or_bookmark: &str) -> Result<Binding, JsValue>;
    #[wasm_bindgen(method, catch, js_name = getBookmark)]
    fn bookmark(this: &Binding) -> Result<Option<String>, JsValue>;

    /// The runtime's `D1Result`: the answer to one statement.
    type Answer;
    #[wasm_bindgen(method, getter)]
    fn results(this: &Answer) -> JsValue;
    #[wasm_bindgen(method, getter)]
    fn error(this: &Answer) -> Option<String>;
    #[wasm_bindgen(method, getter)]
    fn meta(this: &Answer) -> Option<Meta>;

    /// The runtime's metrics of one statement: the rows that it read and wrote, and the database's size.
    type Meta;
    #[wasm_bindgen(method, getter)]
    fn rows_read(this: &Meta) -> Option<f64>;
    #[wasm_bindgen(method, getter)]
    fn rows_written(this: &Meta) -> Option<f64>;
    #[wasm_bindgen(method, getter)]
    fn size_after(this: &Meta) -> Option<f64>;
}

/// The primary of a D1 database, with the request's usage counters. The binding is looked up at the first statement,
/// because many requests need no database.
pub struct D1 {
    env: Env,
    binding: &'static str,
    usage: Usage,
}

impl D1 {
    /// Creates the database of this binding.
    #[must_use]
    pub fn new(env: &Env, binding: &'static str, usage: Usage) -> Self {
        Self { env: env.clone(), binding, usage }
    }

    /// Runs a batch and returns each statement's rows as JSON text. `session` is D1's constraint or bookmark for the
    /// batch; with `None`, the batch runs at the primary.
    async fn run_batch(&self, statements: &[&Statement], session: Option<&str>) -> worker::Result<Vec<String>> {
        let texts: Vec<_> = match self.usage.wants_reads() {
            true => statements.iter().map(|statement| statement.sql.clone()).collect(),
            false => vec![],
        };
        let database = self.env.d1(self.binding)?;
        let prepared = statements.iter().map(|statement| Ok(prepare(&database, statement)?.inner().into()));
        let prepared: Vec<JsValue> = prepared.collect::<worker::Result<_>>()?;
        let binding = database.unchecked_ref::<Binding>();
        let session = session.map(|session| binding.with_session(session)).transpose()?;
        let answers = JsFuture::from(session.as_ref().unwrap_or(binding).batch(prepared)?).await?;
        let mut rows = vec![];
        for (index, answer) in answers.dyn_into::<Array>()?.iter().enumerate() {
            let answer = answer.unchecked_into::<Answer>();
            if let Some(error) = answer.error() {
                return Err(worker::Error::RustError(error));
            }
            if let Some(meta) = answer.meta() {
                self.count(&meta, texts.get(index).map(AsRef::as_ref));
            }
            rows.push(JSON::stringify(&answer.results())?.into());
        }
        let written = session.filter(|_| Writing::is_among(statements));
        if let Some(bookmark) = written.and_then(|session| session.bookmark().ok().flatten()) {
            // Two batches may end in either order. Bookmarks sort by time, so the maximum is the newest.
            BOOKMARK.with_borrow_mut(|newest| *newest = newest.take().max(Some(bookmark)));
        }
        Ok(rows)
    }

    /// Counts a statement's rows and records the database's size.
    fn count(&self, meta: &Meta, sql: Option<&str>) {
        let read = whole(meta.rows_read()).unwrap_or_default();
        self.usage.rows(read, whole(meta.rows_written()).unwrap_or_default());
        if let Some(sql) = sql {
            self.usage.read(sql, read);
        }
        if let Some(size) = whole(meta.size_after()) {
            SIZE.set(size);
        }
    }
}

/// Converts a count that JavaScript holds as a floating-point number to `u64`. (`usize` has only 32 bits in
/// WebAssembly.)
fn whole(number: Option<f64>) -> Option<u64> {
    number.map(|number| number as u64)
}

fn prepare(database: &D1Database, statement: &Statement) -> worker::Result<D1PreparedStatement> {
    let params: Vec<JsValue> = statement.params.iter().map(js_value).collect();
    database.prepare(&*statement.sql).bind(&params)
}

fn js_value(param: &Param) -> JsValue {
    match param {
        Param::Null => JsValue::NULL,
        // Exact, because `Param` contains no integer beyond 2^53.
        Param::Integer(number) => JsValue::from_f64(*number as f64),
        Param::Text(text) => JsValue::from_str(text),
    }
}

impl Database for D1 {
    async fn run_statements(&self, statements: &[&Statement]) -> Result<Vec<String>, DatabaseError> {
        self.usage.batch(statements.len());
        let writing = Writing::of(statements);
        // Only a session reports a bookmark of its writes. Without a session, D1 asks the primary.
        let session = writing.is_some().then_some(AT_PRIMARY);
        let ask = async || self.run_batch(statements, session).await.map_err(|error| error.to_string());
        in_time(writing.is_none(), ask, crate::sleep).await.map_err(DatabaseError)
    }
}

/// The replica of a D1 database that is nearest to this isolate, or the primary if there is no replica. A replica may
/// be some seconds behind the primary, but shows everything that this isolate wrote.
pub struct Nearest(D1);

impl Nearest {
    /// Creates a handle on the nearest replica of the database with this binding.
    #[must_use]
    pub fn new(env: &Env, binding: &'static str, usage: Usage) -> Self {
        Self(D1::new(env, binding, usage))
    }
}

impl ReadDatabase for Nearest {
    async fn read_statements(&self, statements: &[&Statement]) -> Result<Vec<String>, DatabaseError> {
        self.0.usage.batch(statements.len());
        let bookmark = BOOKMARK.with_borrow(Clone::clone);
        let session = Some(bookmark.as_deref().unwrap_or(ANYWHERE));
        let ask = async || self.0.run_batch(statements, session).await.map_err(|error| error.to_string());
        in_time(true, ask, crate::sleep).await.map_err(DatabaseError)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future,
        task::{Context, Poll, Waker},
    };

    use super::*;

    /// Calls [`in_time`] with a database that gives these answers in turn, or never answers for `None`. Returns the
    /// result and the number of attempts. Sleeping takes no time.
    fn asked(reads: bool, answers: &[Option<Result<u32, &str>>]) -> (Result<u32, String>, usize) {
        let tries = Cell::new(0_usize);
        let ask = async || {
            let answer = answers[tries.replace(tries.get().saturating_add(1))];
            match answer {
                Some(answer) => answer.map_err(str::to_owned),
                None => future::pending().await,
            }
        };
        let outcome = pin!(in_time(reads, ask, async |_| ())).poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(outcome) = outcome else { panic!("it waits") };
        (outcome, tries.get())
    }

    #[test]
    fn a_read_whose_connection_was_lost_is_asked_once_more_and_a_write_is_not() {
        let lost = Some(Err("D1_ERROR: Network connection lost."));
        assert_eq!(asked(true, &[lost, Some(Ok(7))]), (Ok(7), 2));
        assert_eq!(asked(true, &[lost, lost]).1, 2);
        assert!(asked(true, &[lost, lost]).0.is_err());
        let (outcome, tries) = asked(false, &[lost]);
        assert!(outcome.is_err());
        assert_eq!(tries, 1);
    }

    #[test]
    fn a_failed_statement_is_not_sent_again() {
        assert_eq!(asked(true, &[Some(Err("no such table"))]).1, 1);
    }

    #[test]
    fn a_batch_that_stalls_ends_and_is_not_begun_again() {
        for reads in [true, false] {
            assert_eq!(asked(reads, &[None]), (Err("no answer within 8 seconds".into()), 1));
        }
    }
}
