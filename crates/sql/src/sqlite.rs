//! An implementation of [`Database`] on SQLite in memory, for tests. Whenever a statement runs, it checks that
//! the statement's columns match its row type.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, StatementStatus, backup::Backup, params_from_iter, types::Value};

use crate::{Batch, Database, DatabaseError, MAX_EXACT, Param, Statement, row::Columns};

/// The texts with which a query begins in Rust source code.
const QUERIES: [&str; 4] = ["sql::read!(", "sql::write!(", "Read::new(", "Write::new("];
/// Number of database pages that one step of a backup copies.
const PAGES: i32 = 1_000;

/// An in-memory database.
pub struct Sqlite {
    connection: RefCell<Connection>,
    steps: Cell<u64>,
    statements: Cell<u64>,
}

thread_local! {
    /// Source locations of all queries that this thread has run or checked, on any [`Sqlite`] database.
    static SITES: RefCell<BTreeSet<(&'static str, u32)>> = RefCell::default();
}

impl Sqlite {
    fn new(connection: Connection) -> Self {
        Self { connection: RefCell::new(connection), steps: Cell::default(), statements: Cell::default() }
    }

    /// Creates an in-memory database and runs the SQL of `migrations` in order.
    ///
    /// # Errors
    /// Returns [`DatabaseError`] if a migration is not valid SQL.
    pub fn of(migrations: &[&str]) -> Result<Self, DatabaseError> {
        let connection = Connection::open_in_memory().map_err(failed)?;
        connection.execute_batch("PRAGMA foreign_keys = ON").map_err(failed)?;
        for migration in migrations {
            connection.execute_batch(migration).map_err(failed)?;
        }
        Ok(Self::new(connection))
    }

    /// Copies the database in its current state to a new, independent one.
    ///
    /// # Errors
    /// Returns [`DatabaseError`] if the database cannot be read.
    pub fn copy(&self) -> Result<Self, DatabaseError> {
        let mut connection = Connection::open_in_memory().map_err(failed)?;
        Backup::new(&self.connection.borrow(), &mut connection)
            .and_then(|backup| backup.run_to_completion(PAGES, Duration::ZERO, None))
            .map_err(failed)?;
        connection.execute_batch("PRAGMA foreign_keys = ON").map_err(failed)?;
        Ok(Self::new(connection))
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

/// Returns the source locations (`file:line`) of a crate's queries that this thread has neither run nor checked.
/// `sources` is the directory of the crate's source files. Queries of test modules are left out.
#[must_use]
pub fn unchecked(sources: &Path) -> Vec<String> {
    let sites = SITES.with_borrow(Clone::clone);
    let checked = |path: &Path, line: u32| sites.iter().any(|(file, at)| *at == line && path.ends_with(file));
    let (mut files, mut paths) = (vec![], vec![sources.to_owned()]);
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).into_iter().flatten();
            paths.extend(entries.flatten().map(|entry| entry.path()));
        } else if let Ok(source) = std::fs::read_to_string(&path) {
            files.push((path, source));
        }
    }
    let tests: Vec<PathBuf> = files.iter().flat_map(|(path, source)| test_modules(path, source)).collect();
    let is_test = |path: &Path| tests.iter().any(|it| path.starts_with(it) || path == it.with_extension("rs"));
    let mut unchecked = vec![];
    for (path, source) in files.iter().filter(|(path, _)| !is_test(path)) {
        let code = source.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let queries = (1..).zip(code.lines()).filter(|(_, line)| QUERIES.iter().any(|query| line.contains(query)));
        unchecked.extend(
            queries.filter(|(line, _)| !checked(path, *line)).map(|(line, _)| format!("{}:{line}", path.display())),
        );
    }
    unchecked
}

/// Returns the paths, without an extension, of the test modules that a source file declares in files of their own.
fn test_modules(path: &Path, source: &str) -> Vec<PathBuf> {
    let is_root = ["lib.rs", "main.rs", "mod.rs"].iter().any(|root| path.ends_with(root));
    let folder = if is_root { path.parent().unwrap_or(path).to_owned() } else { path.with_extension("") };
    let after = source.split("#[cfg(test)]\nmod ").skip(1);
    after.filter_map(|after| after.lines().next()?.strip_suffix(';')).map(|name| folder.join(name)).collect()
}

fn failed(error: rusqlite::Error) -> DatabaseError {
    DatabaseError(error.to_string())
}

impl Sqlite {
    /// Checks the statements of a batch against the schema and against their Rust types, without running them.
    ///
    /// # Errors
    /// Returns [`DatabaseError`] if a statement is not valid SQL or names a table or column that does not exist.
    ///
    /// # Panics
    /// Panics if a statement's columns differ from the fields of its row type, or if a statement declared as
    /// [`Read`](crate::Read) writes (or the reverse).
    pub fn check(&self, batch: &impl Batch) -> Result<(), DatabaseError> {
        let mut statements = vec![];
        batch.statements(&mut statements);
        for statement in statements {
            self.prepare(&self.connection.borrow(), statement)?;
        }
        Ok(())
    }

    fn prepare<'c>(
        &self,
        connection: &'c Connection,
        statement: &Statement,
    ) -> Result<rusqlite::Statement<'c>, DatabaseError> {
        let Statement { sql, site, writes, columns, .. } = statement;
        let prepared = connection.prepare(sql).map_err(|error| DatabaseError(format!("{site}: {error}")))?;
        SITES.with_borrow_mut(|sites| sites.insert((site.file(), site.line())));
        assert_eq!(prepared.readonly(), !writes, "{site}: `true` for a statement that only reads: {sql}");
        let mut names: Vec<String> = prepared.column_names().map(str::to_owned).collect();
        names.sort_unstable();
        match columns() {
            Columns::None => assert!(names.is_empty(), "{site}: nothing reads the columns {names:?}"),
            Columns::One => assert_eq!(names.len(), 1, "{site}: one column is read, of {names:?}"),
            Columns::Named(mut fields) => {
                fields.sort_unstable();
                assert_eq!(names, fields, "{site}: columns, and fields of the row type");
            }
        }
        Ok(prepared)
    }
}

/// Converts a column's value to JSON as D1 does: a floating-point number without a fraction becomes an integer. Fails
/// for blobs, and for numbers that D1 would round.
fn json_of(value: Value) -> Result<serde_json::Value, DatabaseError> {
    match value {
        Value::Null => Ok(serde_json::Value::Null),
        Value::Text(text) => Ok(text.into()),
        Value::Integer(number) if number.unsigned_abs() <= MAX_EXACT => Ok(number.into()),
        Value::Integer(number) => Err(DatabaseError(format!("D1 would round {number}: select it as text"))),
        Value::Real(number) if number.fract() == 0.0 && number.abs() <= MAX_EXACT as f64 => Ok((number as i64).into()),
        Value::Real(number) => Ok(number.into()),
        Value::Blob(_) => Err(DatabaseError("a column of bytes: select it as hexadecimal text".into())),
    }
}

impl Database for Sqlite {
    async fn run_statements(&self, statements: &[&Statement]) -> Result<Vec<String>, DatabaseError> {
        let mut connection = self.connection.borrow_mut();
        let transaction = connection.transaction().map_err(failed)?;
        let mut answers = Vec::with_capacity(statements.len());
        for statement in statements {
            let mut prepared = self.prepare(&transaction, statement)?;
            let names: Vec<String> = prepared.column_names().map(str::to_owned).collect();
            let params = statement.params.iter().map(|param| match param {
                Param::Null => Value::Null,
                Param::Integer(number) => Value::Integer(*number),
                Param::Text(text) => Value::Text(text.clone()),
            });
            let mut rows: Vec<serde_json::Value> = vec![];
            let mut cursor = prepared.query(params_from_iter(params)).map_err(failed)?;
            while let Some(row) = cursor.next().map_err(failed)? {
                let columns = names.iter().enumerate();
                let columns = columns.map(|(at, name)| Ok((name.clone(), json_of(row.get(at).map_err(failed)?)?)));
                rows.push(columns.collect::<Result<serde_json::Map<_, _>, DatabaseError>>()?.into());
            }
            drop(cursor);
            self.statements.set(self.statements.get().saturating_add(1));
            let steps = u64::try_from(prepared.get_status(StatementStatus::VmStep)).unwrap_or_default();
            self.steps.set(self.steps.get().saturating_add(steps));
            drop(prepared);
            answers.push(serde_json::Value::from(rows).to_string());
        }
        transaction.commit().map_err(failed)?;
        Ok(answers)
    }
}
