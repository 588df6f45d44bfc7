//! Typed SQL queries, and the trait [`Database`] that runs them.
//!
//! A [`Read`] or a [`Write`] is SQL with its parameters and the type of its result: `Option<R>` for at most one row,
//! [`One`] for exactly one, `Vec<R>` for any number, `()` for none. The row type `R` is either a struct whose fields
//! have the names of the columns, [`Both`] of two such structs, or, for a single column, the type of its value. A
//! [`Batch`] is a query, or a tuple, `Vec` or `Option` of batches. It runs in one transaction, and its results have the
//! same shape as the batch.
//!
//! ```
//! # use sql::{Database, DatabaseError};
//! #[derive(serde::Deserialize)]
//! struct Account {
//!     owner: String,
//!     key_version: u32,
//! }
//!
//! fn by_owner(owner: &str) -> sql::Read<Option<Account>> {
//!     sql::read!("SELECT owner, key_version FROM accounts WHERE owner = ?1", owner)
//! }
//!
//! async fn rename(database: &impl Database, from: &str, to: &str) -> Result<Option<Account>, DatabaseError> {
//!     let rename = sql::write!("UPDATE accounts SET owner = ?2 WHERE owner = ?1", from, to);
//!     let ((), account) = database.batch((rename, by_owner(to))).await?;
//!     Ok(account)
//! }
//! ```
//!
//! Only batches without a [`Write`] are retried after a lost connection. Amounts of lovelace are bound and selected as
//! text and cast in SQL, because D1 passes numbers as doubles and would round those above 2^53.

use std::{borrow::Cow, panic::Location};

use cardano::{Address, ContentHash, KeyHash, Lovelace, TxHash, TxRef};

mod query;
mod row;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(test)]
#[cfg(feature = "sqlite")]
mod tests;

pub use query::{Answer, Batch, One, Read, Write};
pub use row::{Both, flag, json};

/// An SQL statement with its parameters, in the form in which a [`Database`] runs it.
#[derive(Clone, Debug)]
pub struct Statement {
    /// SQL text: a constant, or composed from constants. Users' values are passed in `params` only.
    pub sql: Cow<'static, str>,
    /// Values of the parameters (`?1`, `?2`, ...).
    pub params: Vec<Param>,
    /// `false` if the statement only reads, so that it can safely be run again after an error.
    pub writes: bool,
    /// Place in the Rust source that created the statement, for error messages and tests.
    site: &'static Location<'static>,
    /// Function that returns the columns that the row type expects.
    #[cfg(feature = "sqlite")]
    columns: fn() -> row::Columns,
}

impl Statement {
    #[track_caller]
    #[cfg_attr(
        not(feature = "sqlite"),
        allow(clippy::extra_unused_type_parameters, reason = "only tests read the columns")
    )]
    fn typed<T: Answer>(sql: Cow<'static, str>, params: Vec<Param>, writes: bool) -> Self {
        Self {
            sql,
            params,
            writes,
            site: Location::caller(),
            #[cfg(feature = "sqlite")]
            columns: T::columns,
        }
    }
}

/// Largest number up to which a double represents every integer exactly: 2^53.
const MAX_EXACT: u64 = 1 << 53;

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    /// The SQL value NULL.
    Null,
    /// An integer up to 2^53: a count, a slot, or a time in POSIX ms. D1 passes numbers as doubles, which represent
    /// such integers exactly.
    Integer(i64),
    Text(String),
}

impl From<&str> for Param {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
impl From<String> for Param {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
impl From<i64> for Param {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}
impl From<u64> for Param {
    /// Converts an integer. Values above 2^53 are reduced to 2^53, because a double cannot represent all of them.
    fn from(number: u64) -> Self {
        Self::Integer(i64::try_from(number.min(MAX_EXACT)).unwrap_or(i64::MAX))
    }
}
impl From<bool> for Param {
    fn from(flag: bool) -> Self {
        Self::Integer(flag.into())
    }
}
macro_rules! as_text {
    ($($kind:ty),*) => {$(
        impl From<$kind> for Param {
            fn from(value: $kind) -> Self {
                Self::Text(value.to_string())
            }
        }
        impl From<&$kind> for Param {
            fn from(value: &$kind) -> Self {
                Self::Text(value.to_string())
            }
        }
    )*};
}
as_text!(Address, ContentHash, KeyHash, Lovelace, TxHash, TxRef);
impl From<u32> for Param {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}
impl<T: Into<Self>> From<Option<T>> for Param {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// Creates a [`Read`] from an SQL text and the values of `?1`, `?2`, .... If the text is a literal, it may contain
/// constants by their names in braces, as in `format!`.
#[macro_export]
macro_rules! read {
    ($($query:tt)+) => { $crate::query!(Read, $($query)+) };
}

/// Creates a [`Write`] from an SQL text and the values of `?1`, `?2`, .... If the text is a literal, it may contain
/// constants by their names in braces, as in `format!`.
#[macro_export]
macro_rules! write {
    ($($query:tt)+) => { $crate::query!(Write, $($query)+) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! query {
    ($kind:ident, $sql:literal $(, $param:expr)* $(,)?) => {
        $crate::$kind::new($crate::text(format_args!($sql)), vec![$($crate::Param::from($param)),*])
    };
    ($kind:ident, $sql:expr $(, $param:expr)* $(,)?) => {
        $crate::$kind::new($sql, vec![$($crate::Param::from($param)),*])
    };
}

/// Converts a formatted SQL literal to text. A literal without constants in braces is borrowed, not copied.
#[doc(hidden)]
#[must_use]
pub fn text(sql: std::fmt::Arguments<'_>) -> Cow<'static, str> {
    sql.as_str().map_or_else(|| sql.to_string().into(), Cow::Borrowed)
}

/// The database is unavailable, or returned something unexpected. A user's request cannot cause this error. The text is
/// meant for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("database: {0}")]
pub struct DatabaseError(pub String);

/// A connection to a database: Cloudflare D1, or SQLite in tests.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait Database {
    /// Runs the statements in order in one transaction. Returns one JSON array for each statement, with an object for
    /// each row. Implementations provide this method; callers use the typed methods below.
    ///
    /// # Errors
    /// Returns [`DatabaseError`] if the database is unavailable or a statement failed. Nothing was changed then, unless
    /// the connection was lost.
    async fn run_statements(&self, statements: &[&Statement]) -> Result<Vec<String>, DatabaseError>;

    /// Runs the queries of a batch in order in one transaction, and returns their results in the shape of the batch.
    ///
    /// # Errors
    /// Returns [`DatabaseError`] if the database is unavailable, a query failed, or rows do not have the type of their
    /// query.
    async fn batch<B: Batch>(&self, batch: B) -> Result<B::Answer, DatabaseError> {
        let mut statements = vec![];
        batch.statements(&mut statements);
        let rows = self.run_statements(&statements).await?;
        batch.answer(&mut rows.into_iter())
    }

    /// Runs one query that only reads.
    ///
    /// # Errors
    /// See [`Database::batch`].
    async fn fetch<T: Answer>(&self, query: Read<T>) -> Result<T, DatabaseError> {
        self.batch(query).await
    }

    /// Runs one statement that writes, and returns the rows of its RETURNING clause.
    ///
    /// # Errors
    /// See [`Database::batch`].
    async fn execute<T: Answer>(&self, statement: Write<T>) -> Result<T, DatabaseError> {
        self.batch(statement).await
    }
}

/// A database that can only be read, such as a replica whose data may be some seconds old.
///
/// Every [`Database`] implements this trait. The reverse is not true: a replica cannot be passed to a function that
/// takes a `Database`. All code that decides about money, limits, sessions or claims therefore takes a `Database`.
///
/// ```
/// # use sql::{Database, DatabaseError, ReadDatabase, Statement};
/// # struct Copy;
/// # impl ReadDatabase for Copy {
/// #     async fn read_statements(&self, _: &[&Statement]) -> Result<Vec<String>, DatabaseError> {
/// #         Ok(vec![])
/// #     }
/// # }
/// async fn show(database: &impl ReadDatabase) -> Result<Vec<String>, DatabaseError> {
///     database.read(sql::read!("SELECT title FROM listings")).await
/// }
///
/// let shown = show(&Copy);
/// ```
///
/// ```compile_fail,E0277
/// # use sql::{Database, DatabaseError, ReadDatabase, Statement};
/// # struct Copy;
/// # impl ReadDatabase for Copy {
/// #     async fn read_statements(&self, _: &[&Statement]) -> Result<Vec<String>, DatabaseError> {
/// #         Ok(vec![])
/// #     }
/// # }
/// async fn claim(database: &impl Database) -> Result<(), DatabaseError> {
///     database.execute(sql::write!("DELETE FROM sessions")).await
/// }
///
/// let claimed = claim(&Copy);
/// ```
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait ReadDatabase {
    /// Runs statements that only read, in order and on the same state of the database. Returns one JSON array for each
    /// statement, with an object for each row. Implementations provide this method; callers use [`ReadDatabase::read`].
    ///
    /// # Errors
    /// Returns [`DatabaseError`] if the database is unavailable or a statement failed.
    async fn read_statements(&self, statements: &[&Statement]) -> Result<Vec<String>, DatabaseError>;

    /// Runs a query, or a batch of queries on the same state of the database.
    ///
    /// # Errors
    /// Returns [`DatabaseError`] if a statement in the batch may write (nothing runs then), the database is
    /// unavailable, or rows do not have the type of their query.
    async fn read<B: Batch>(&self, batch: B) -> Result<B::Answer, DatabaseError> {
        let mut statements = vec![];
        batch.statements(&mut statements);
        if statements.iter().any(|statement| statement.writes) {
            return Err(DatabaseError("a statement that may write where only reading is allowed".into()));
        }
        let rows = self.read_statements(&statements).await?;
        batch.answer(&mut rows.into_iter())
    }
}

impl<D: Database> ReadDatabase for D {
    async fn read_statements(&self, statements: &[&Statement]) -> Result<Vec<String>, DatabaseError> {
        self.run_statements(statements).await
    }
}
