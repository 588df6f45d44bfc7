//! The database port on SQLite in memory: for tests.

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use rusqlite::{Connection, StatementStatus, backup::Backup, params_from_iter, types::Value};

use crate::{Database, DatabaseError, Param, Rows, Statement};

/// Pages that are copied at once.
const PAGES: i32 = 1_000;

/// An in-memory database.
pub struct Sqlite {
    connection: RefCell<Connection>,
    steps: Cell<u64>,
    statements: Cell<u64>,
}

impl Sqlite {
    /// A fresh database with these migrations.
    ///
    /// # Errors
    /// A migration is not valid SQL.
    pub fn of(migrations: &[&str]) -> Result<Self, DatabaseError> {
        let connection = Connection::open_in_memory().map_err(failed)?;
        connection.execute_batch("PRAGMA foreign_keys = ON").map_err(failed)?;
        for migration in migrations {
            connection.execute_batch(migration).map_err(failed)?;
        }
        Ok(Self { connection: RefCell::new(connection), steps: Cell::new(0), statements: Cell::new(0) })
    }

    /// A copy of it as it is now.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn copy(&self) -> Result<Self, DatabaseError> {
        let mut connection = Connection::open_in_memory().map_err(failed)?;
        Backup::new(&self.connection.borrow(), &mut connection)
            .and_then(|backup| backup.run_to_completion(PAGES, Duration::ZERO, None))
            .map_err(failed)?;
        connection.execute_batch("PRAGMA foreign_keys = ON").map_err(failed)?;
        Ok(Self { connection: RefCell::new(connection), steps: Cell::new(0), statements: Cell::new(0) })
    }

    /// Steps of SQLite's machine that all statements took until now: what they cost, on any computer.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// Statements that were run until now.
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
