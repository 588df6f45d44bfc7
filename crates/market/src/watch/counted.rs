//! How much a tick asks of the database.

use std::cell::Cell;

use sql::{Database, DatabaseError, Rows, Statement};

/// A database whose statements are counted.
pub(super) struct Counted<'a, D> {
    database: &'a D,
    statements: Cell<u32>,
}

impl<'a, D> Counted<'a, D> {
    pub const fn new(database: &'a D) -> Self {
        Self { database, statements: Cell::new(0) }
    }

    pub const fn statements(&self) -> u32 {
        self.statements.get()
    }
}

impl<D: Database> Database for Counted<'_, D> {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Rows>, DatabaseError> {
        let more = u32::try_from(statements.len()).unwrap_or(u32::MAX);
        self.statements.set(self.statements.get().saturating_add(more));
        self.database.batch(statements).await
    }
}
