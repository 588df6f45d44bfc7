//! Injects an event at a chosen statement of a request or a tick.

use std::cell::{Cell, RefCell};

use sql::{Database, DatabaseError, Statement, sqlite::Sqlite};

/// A database with an event before or after the first batch with a statement that begins with `at`. A test fails if
/// there is no such batch.
pub struct Interrupted<'a> {
    db: &'a Sqlite,
    at: &'a str,
    after: bool,
    may_miss: bool,
    what: RefCell<Option<Box<dyn FnOnce() + 'a>>>,
}

impl<'a> Interrupted<'a> {
    pub fn before(db: &'a Sqlite, at: &'a str, what: impl FnOnce() + 'a) -> Self {
        Self { db, at, after: false, may_miss: false, what: RefCell::new(Some(Box::new(what))) }
    }

    pub fn after(db: &'a Sqlite, at: &'a str, what: impl FnOnce() + 'a) -> Self {
        let mut interrupted = Self::before(db, at, what);
        interrupted.after = true;
        interrupted
    }

    /// Lets the test pass if there is no such batch, as in a random course of events.
    pub const fn may_miss(mut self) -> Self {
        self.may_miss = true;
        self
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

impl Drop for Interrupted<'_> {
    fn drop(&mut self) {
        let is_missed = self.what.borrow().is_some() && !self.may_miss && !std::thread::panicking();
        assert!(!is_missed, "no statement began with {:?}", self.at);
    }
}

/// A database that runs one batch and loses its answer.
pub struct Unanswered<'a> {
    db: &'a Sqlite,
    at: usize,
    batches: Cell<usize>,
}

impl<'a> Unanswered<'a> {
    /// Loses the answer of the batch with this number, from 0.
    pub const fn new(db: &'a Sqlite, at: usize) -> Self {
        Self { db, at, batches: Cell::new(0) }
    }

    /// Whether there was such a batch.
    pub const fn has_lost(&self) -> bool {
        self.batches.get() > self.at
    }
}

impl Database for Unanswered<'_> {
    async fn run_statements(&self, statements: &[&Statement]) -> Result<Vec<String>, DatabaseError> {
        let done = self.db.run_statements(statements).await;
        if self.batches.replace(self.batches.get() + 1) == self.at {
            return Err(DatabaseError("the connection is lost".into()));
        }
        done
    }
}
