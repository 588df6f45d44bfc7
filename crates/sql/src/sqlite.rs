//! The database port on in-memory SQLite, for tests.

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use rusqlite::{Connection, StatementStatus, backup::Backup, params_from_iter, types::Value};

use crate::{Database, DatabaseError, Param, Rows, Statement};

/// Number of pages copied at once.
const PAGES: i32 = 1_000;

/// An in-memory database.
pub struct Sqlite {
    connection: RefCell<Connection>,
    steps: Cell<u64>,
    statements: Cell<u64>,
}

impl Sqlite {
    /// Creates a database with these migrations.
    ///
    /// # Errors
    /// [`DatabaseError`] if a migration is not valid SQL.
    pub fn of(migrations: &[&str]) -> Result<Self, DatabaseError> {
        let connection = Connection::open_in_memory().map_err(failed)?;
        connection.execute_batch("PRAGMA foreign_keys = ON").map_err(failed)?;
        for migration in migrations {
            connection.execute_batch(migration).map_err(failed)?;
        }
        Ok(Self { connection: RefCell::new(connection), steps: Cell::new(0), statements: Cell::new(0) })
    }

    /// Copies the database in its current state.
    ///
    /// # Errors
    /// [`DatabaseError`] if it cannot be read.
    pub fn copy(&self) -> Result<Self, DatabaseError> {
        let mut connection = Connection::open_in_memory().map_err(failed)?;
        Backup::new(&self.connection.borrow(), &mut connection)
            .and_then(|backup| backup.run_to_completion(PAGES, Duration::ZERO, None))
            .map_err(failed)?;
        connection.execute_batch("PRAGMA foreign_keys = ON").map_err(failed)?;
        Ok(Self { connection: RefCell::new(connection), steps: Cell::new(0), statements: Cell::new(0) })
    }

    /// Returns the number of SQLite VM steps of all statements so far, a measure of cost that does not depend on the
    /// machine.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// Returns the number of statements run so far.
    #[must_use]
    pub const fn statements(&self) -> u64 {
        self.statements.get()
    }
}

fn failed(error: rusqlite::Error) -> DatabaseError {
    DatabaseError(error.to_string())
}

impl Database for Sqlite {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Rows>, DatabaseError> {
        let mut connection = self.connection.borrow_mut();
        let transaction = connection.transaction().map_err(failed)?;
        let mut answers = Vec::with_capacity(statements.len());
        for statement in statements {
            let mut prepared = transaction.prepare(&statement.sql).map_err(failed)?;
            let params = statement.params.into_iter().map(|param| match param {
                Param::Null => Value::Null,
                Param::Integer(number) => Value::Integer(number),
                Param::Text(text) => Value::Text(text),
            });
            let mut rows = Vec::new();
            let mut cursor = prepared.query(params_from_iter(params)).map_err(failed)?;
            while let Some(row) = cursor.next().map_err(failed)? {
                rows.push(row.get(0).map_err(failed)?);
            }
            drop(cursor);
            self.statements.set(self.statements.get().saturating_add(1));
            let steps = u64::try_from(prepared.get_status(StatementStatus::VmStep)).unwrap_or_default();
            self.steps.set(self.steps.get().saturating_add(steps));
            answers.push(Rows { rows });
        }
        transaction.commit().map_err(failed)?;
        Ok(answers)
    }
}
