//! Queries with the types of their results, and batches of queries.

use std::{borrow::Cow, marker::PhantomData, panic::Location};

use serde::de::DeserializeOwned;

use crate::{DatabaseError, Param, Statement, row::Row};

/// A query that only reads and returns a `T`. It can be retried if the connection to the database is lost.
#[must_use = "a query does nothing until a database runs it"]
pub struct Read<T>(Statement, PhantomData<fn() -> T>);

/// A statement that writes. `T` is the type of the rows in its RETURNING clause, or `()` if it has no such clause.
#[must_use = "a statement does nothing until a database runs it"]
pub struct Write<T = ()>(Statement, PhantomData<fn() -> T>);

/// The rows that a query returns: none (`()`), exactly one ([`One`]), at most one (`Option`) or any number (`Vec`).
pub trait Answer: Sized {
    /// Parses rows, given as a JSON array of objects.
    ///
    /// # Errors
    /// Returns an error if the number of rows or the type of a row is not the expected one.
    fn read(rows: &str) -> serde_json::Result<Self>;

    /// The columns that the rows must have.
    #[cfg(feature = "sqlite")]
    fn columns() -> crate::row::Columns;
}

impl<R: DeserializeOwned> Answer for Vec<R> {
    fn read(rows: &str) -> serde_json::Result<Self> {
        let rows: Vec<Row<R>> = serde_json::from_str(rows)?;
        Ok(rows.into_iter().map(|Row(row)| row).collect())
    }

    #[cfg(feature = "sqlite")]
    fn columns() -> crate::row::Columns {
        crate::row::columns_of::<R>()
    }
}

impl<R: DeserializeOwned> Answer for Option<R> {
    fn read(rows: &str) -> serde_json::Result<Self> {
        let mut rows = Vec::read(rows)?;
        let row = rows.pop();
        if rows.is_empty() { Ok(row) } else { Err(serde::de::Error::custom("more than one row")) }
    }

    #[cfg(feature = "sqlite")]
    fn columns() -> crate::row::Columns {
        crate::row::columns_of::<R>()
    }
}

/// The row of a query that always returns exactly one row, as `SELECT count(*)` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct One<R>(pub R);

impl<R: DeserializeOwned> Answer for One<R> {
    fn read(rows: &str) -> serde_json::Result<Self> {
        Option::read(rows)?.map(Self).ok_or_else(|| serde::de::Error::custom("no row"))
    }

    #[cfg(feature = "sqlite")]
    fn columns() -> crate::row::Columns {
        crate::row::columns_of::<R>()
    }
}

impl Answer for () {
    fn read(_: &str) -> serde_json::Result<Self> {
        Ok(())
    }

    #[cfg(feature = "sqlite")]
    fn columns() -> crate::row::Columns {
        crate::row::Columns::None
    }
}

/// A batch of one or more queries, which run in one transaction: either all of them take effect, or none.
pub trait Batch {
    /// Type of the results, in the shape of the batch. For a tuple of queries, for example, a tuple of their results.
    type Answer;

    /// Appends the batch's statements to `into`, in the order in which they run.
    fn statements<'a>(&'a self, into: &mut Vec<&'a Statement>);

    /// Parses the results. `rows` yields one JSON array for each statement, in the order of [`Batch::statements`].
    ///
    /// # Errors
    /// Returns [`DatabaseError`] if the rows of a statement are missing or do not have the type of their query.
    fn answer(&self, rows: &mut dyn Iterator<Item = String>) -> Result<Self::Answer, DatabaseError>;
}

macro_rules! query {
    ($name:ident, $writes:literal) => {
        impl<T: Answer> $name<T> {
            /// Creates the query from SQL and the values of `?1`, `?2`, ....
            #[track_caller]
            pub fn new(sql: impl Into<Cow<'static, str>>, params: Vec<Param>) -> Self {
                Self(Statement::typed::<T>(sql.into(), params, $writes), PhantomData)
            }
        }

        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                Self(self.0.clone(), PhantomData)
            }
        }

        impl<T> std::fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl<T: Answer> Batch for $name<T> {
            type Answer = T;

            fn statements<'a>(&'a self, into: &mut Vec<&'a Statement>) {
                into.push(&self.0);
            }

            fn answer(&self, rows: &mut dyn Iterator<Item = String>) -> Result<T, DatabaseError> {
                let rows = rows.next().ok_or_else(|| failed(self.0.site, &"the database did not answer it"))?;
                T::read(&rows).map_err(|error| failed(self.0.site, &error))
            }
        }
    };
}
query!(Read, false);
query!(Write, true);

fn failed(site: &Location<'_>, error: &dyn std::fmt::Display) -> DatabaseError {
    DatabaseError(format!("the query at {}:{}: {error}", site.file(), site.line()))
}

impl<B: Batch> Batch for Vec<B> {
    type Answer = Vec<B::Answer>;

    fn statements<'a>(&'a self, into: &mut Vec<&'a Statement>) {
        self.iter().for_each(|batch| batch.statements(into));
    }

    fn answer(&self, rows: &mut dyn Iterator<Item = String>) -> Result<Self::Answer, DatabaseError> {
        self.iter().map(|batch| batch.answer(rows)).collect()
    }
}

impl<B: Batch> Batch for Option<B> {
    type Answer = Option<B::Answer>;

    fn statements<'a>(&'a self, into: &mut Vec<&'a Statement>) {
        self.iter().for_each(|batch| batch.statements(into));
    }

    fn answer(&self, rows: &mut dyn Iterator<Item = String>) -> Result<Self::Answer, DatabaseError> {
        self.as_ref().map(|batch| batch.answer(rows)).transpose()
    }
}

macro_rules! tuples {
    ($($($batch:ident $field:tt),+;)+) => {$(
        impl<$($batch: Batch),+> Batch for ($($batch,)+) {
            type Answer = ($($batch::Answer,)+);

            fn statements<'a>(&'a self, into: &mut Vec<&'a Statement>) {
                $(self.$field.statements(into);)+
            }

            fn answer(&self, rows: &mut dyn Iterator<Item = String>) -> Result<Self::Answer, DatabaseError> {
                Ok(($(self.$field.answer(rows)?,)+))
            }
        }
    )+};
}
tuples! {
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
    A 0, B 1, C 2, D 3, E 4;
    A 0, B 1, C 2, D 3, E 4, F 5;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7;
}
