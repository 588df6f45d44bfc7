//! Injects an event at a chosen statement of a request or a tick.

use std::cell::RefCell;

use sql::{Database, DatabaseError, Statement, sqlite::Sqlite};

/// A database with an event before or after the first batch that has such a statement.
pub struct Interrupted<'a> {
    db: &'a Sqlite,
    at: &'a str,
    after: bool,
    what: RefCell<Option<Box<dyn FnOnce() + 'a>>>,
}

impl<'a> Interrupted<'a> {
    pub fn before(db: &'a Sqlite, at: &'a str, what: impl FnOnce() + 'a) -> Self {
        Self { db, at, after: false, what: RefCell::new(Some(Box::new(what))) }
    }

    pub fn after(db: &'a Sqlite, at: &'a str, what: impl FnOnce() + 'a) -> Self {
        Self { after: true, ..Self::before(db, at, what) }
    }

    fn interrupt(&self) {
        let what = self.what.borrow_mut().take();
        what.into_iter().for_each(|what| what());
    }
}

impl Database for Interrupted<'_> {
    async fn run_statements(&self, statements: &[&Statement]) -> Result<Vec<String>, DatabaseError> {
        let now = statements.iter().any(|statement| statement.sql.starts_with(self.at));
        if now && !self.after {
            self.interrupt();
        }
        let done = self.db.run_statements(statements).await;
        if now && self.after {
            self.interrupt();
        }
        done
    }
}
