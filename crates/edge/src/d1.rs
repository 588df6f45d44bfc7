//! The database port on D1.

use std::{cell::Cell, collections::HashMap};

use sql::{Database, DatabaseError, Param, Rows, Statement};
use wasm_bindgen::JsValue;
use worker::{D1Database, D1PreparedStatement, Env};

use crate::usage::Usage;

thread_local! {
    static WRITES: Cell<u64> = const { Cell::new(0) };
    static SIZE: Cell<u64> = const { Cell::new(0) };
}

/// A number that changes whenever this isolate writes to a database: what was read at another one may be old.
#[must_use]
pub fn writes() -> u64 {
    WRITES.get()
}

/// Bytes that the database takes up, by the last answer that this isolate had of it; 0 before the first.
#[must_use]
pub fn size() -> u64 {
    SIZE.get()
}

/// A batch that writes, from its beginning to its end, whichever that is.
struct Writing;

impl Writing {
    fn count() {
        WRITES.set(WRITES.get().wrapping_add(1));
    }

    fn of(statements: &[Statement]) -> Option<Self> {
        let reads = |sql: &str| sql.starts_with("SELECT") || (sql.starts_with("WITH") && !sql.contains("RETURNING"));
        let writes = !statements.iter().all(|statement| reads(statement.sql.trim_start()));
        writes.then(|| {
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

/// A D1 database, with the request's counts. The binding is looked up when something is asked: many a request asks nothing.
pub struct D1 {
    env: Env,
    binding: &'static str,
    usage: Usage,
}

impl D1 {
    /// The database of this binding.
    #[must_use]
    pub fn new(env: &Env, binding: &'static str, usage: Usage) -> Self {
        Self { env: env.clone(), binding, usage }
    }

    async fn run_batch(&self, statements: Vec<Statement>) -> worker::Result<Vec<Rows>> {
        let texts: Vec<_> = match self.usage.wants_reads() {
            true => statements.iter().map(|statement| statement.sql.clone()).collect(),
            false => vec![],
        };
        let database = self.env.d1(self.binding)?;
        let prepared = statements.into_iter().map(|statement| prepare(&database, statement));
        let results = database.batch(prepared.collect::<Result<_, _>>()?).await?;
        for (place, result) in results.iter().enumerate() {
            let meta = result.meta()?;
            let count = |rows: Option<usize>| u64::try_from(rows.unwrap_or_default()).unwrap_or(u64::MAX);
            let read = count(meta.as_ref().and_then(|meta| meta.rows_read));
            if let Some(size) = meta.as_ref().and_then(|meta| meta.size_after) {
                SIZE.set(count(Some(size)));
            }
            self.usage.rows(read, count(meta.and_then(|meta| meta.rows_written)));
            if let Some(sql) = texts.get(place) {
                self.usage.read(sql, read);
            }
        }
        let outcome = |result: worker::D1Result| {
            if let Some(error) = result.error() {
                return Err(worker::Error::RustError(error));
            }
            let rows: Vec<HashMap<String, Option<String>>> = result.results()?;
            Ok(Rows { rows: rows.into_iter().filter_map(|row| row.into_values().next().flatten()).collect() })
        };
        results.into_iter().map(outcome).collect()
    }
}

fn prepare(database: &D1Database, statement: Statement) -> worker::Result<D1PreparedStatement> {
    let params: Vec<JsValue> = statement.params.into_iter().map(js_value).collect();
    database.prepare(statement.sql).bind(&params)
}

fn js_value(param: Param) -> JsValue {
    match param {
        Param::Null => JsValue::NULL,
        // Exact: `Param` holds no integer beyond 2^53.
        Param::Integer(number) => JsValue::from_f64(number as f64),
        Param::Text(text) => JsValue::from_str(&text),
    }
}

impl Database for D1 {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Rows>, DatabaseError> {
        self.usage.batch(statements.len());
        let _writing = Writing::of(&statements);
        self.run_batch(statements).await.map_err(|error| DatabaseError(error.to_string()))
    }
}
