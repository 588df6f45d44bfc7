//! The port to the database: batches of statements, each batch one transaction, with rows as single strings.
//!
//! Every statement that returns rows returns one TEXT column (mostly JSON built by SQLite), because whole strings cross
//! into WebAssembly cheaply and rows of many columns do not. Amounts of lovelace are bound as text and cast in SQL,
//! because D1 passes numbers as doubles and would round those above 2^53.

use std::borrow::Cow;

use cardano::{Address, ContentHash, KeyHash, Lovelace, TxHash, TxRef};
use serde::de::DeserializeOwned;

#[cfg(feature = "sqlite")]
pub mod sqlite;

/// A statement with its parameters (`?1`, `?2`, ...).
#[derive(Clone, Debug)]
#[must_use = "a statement does nothing until a database runs it"]
pub struct Statement {
    /// SQL text, a constant or composed from constants.
    pub sql: Cow<'static, str>,
    /// Values of the parameters, in order.
    pub params: Vec<Param>,
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    /// SQL NULL.
    Null,
    /// An integer that a double represents exactly: counts, slots, POSIX ms.
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
    /// Converts an integer. Values beyond the exact range saturate to one that no stored time, slot or count reaches.
    fn from(number: u64) -> Self {
        const MAX_EXACT: u64 = 1 << 53;
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

/// Creates a statement with its parameters. A literal may contain constants in braces, as in `format!`.
#[macro_export]
macro_rules! statement {
    ($sql:literal $(, $param:expr)* $(,)?) => {
        $crate::Statement { sql: $crate::text(format_args!($sql)), params: vec![$($crate::Param::from($param)),*] }
    };
    ($sql:expr $(, $param:expr)* $(,)?) => {
        $crate::Statement { sql: $sql.into(), params: vec![$($crate::Param::from($param)),*] }
    };
}

/// Returns the SQL of a literal, borrowed unless it contains constants.
#[doc(hidden)]
#[must_use]
pub fn text(sql: std::fmt::Arguments<'_>) -> Cow<'static, str> {
    sql.as_str().map_or_else(|| sql.to_string().into(), Cow::Borrowed)
}

/// The rows that a statement returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Text of each row's only column.
    ///
    /// Statements that write report their effect with RETURNING, because a count of changes would include those of
    /// triggers.
    pub rows: Vec<String>,
}

impl Rows {
    /// Returns the first row's text.
    #[must_use]
    pub fn first(&self) -> Option<&str> {
        self.rows.first().map(String::as_str)
    }

    /// Parses the first row as JSON.
    ///
    /// # Errors
    /// [`DatabaseError`] if the row is not the expected JSON.
    pub fn first_json<T: DeserializeOwned>(&self) -> Result<Option<T>, DatabaseError> {
        self.first().map(parse).transpose()
    }

    /// Parses all rows as JSON.
    ///
    /// # Errors
    /// See [`Rows::first_json`].
    pub fn all_json<T: DeserializeOwned>(&self) -> Result<Vec<T>, DatabaseError> {
        self.rows.iter().map(|row| parse(row)).collect()
    }
}

fn parse<T: DeserializeOwned>(row: &str) -> Result<T, DatabaseError> {
    serde_json::from_str(row).map_err(|error| DatabaseError(format!("a row is not what it should be: {error}")))
}

/// The database is unavailable, or returned an unexpected answer. Never the user's fault; the text is for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("database: {0}")]
pub struct DatabaseError(pub String);

/// A database that runs each batch as one transaction (D1; SQLite in tests).
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait Database {
    /// Runs the statements in order in one transaction and returns the rows of each.
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Rows>, DatabaseError>;

    /// Runs one statement.
    async fn run(&self, statement: Statement) -> Result<Rows, DatabaseError> {
        let answers = self.batch(vec![statement]).await?;
        answers.into_iter().next().ok_or_else(|| DatabaseError("a batch answered nothing".into()))
    }
}

/// Converts the answers of a batch to an array.
///
/// # Errors
/// [`DatabaseError`] if the number of answers differs from that of the statements.
pub fn exactly<const N: usize>(answers: Vec<Rows>) -> Result<[Rows; N], DatabaseError> {
    answers.try_into().map_err(|_| DatabaseError(format!("a batch of {N} statements answered another number")))
}
