//! Detects that the database was restored to an earlier state.
//!
//! Each run of the watcher has a number, one higher than that of the run before. The database keeps the highest one,
//! and so does a store outside the database (KV). A run writes its number to the database first and to the store
//! afterwards, so the store's number never exceeds the database's. A stale read of the store only yields a lower
//! number. If the store's number is higher, the database lacks runs that took place, so it was restored, by whatever
//! means.
//!
//! ```text
//! database 41 ─> 42        store 40 ─> 42        the usual case
//! database 17 ─> 18        store 42              restored: freeze every service wallet, go on with number 43
//! ```

use cardano::slots::Millis;
use sql::{Database, DatabaseError, One, Write};

/// A store outside the database for the number of the watcher's newest run.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait NumberStore {
    /// Returns the stored number; `None` if none was ever written.
    ///
    /// # Errors
    /// Returns the reason in words for the log.
    async fn read(&self) -> Result<Option<u64>, String>;

    /// Stores the number of a run of the watcher.
    ///
    /// # Errors
    /// Returns the reason in words for the log.
    async fn write(&self, number: u64) -> Result<(), String>;
}

/// Number assigned to a run of the watcher, with notes about how it was determined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TickNumber {
    pub number: u64,
    /// Notes for the report: a restored database, or a store that did not answer.
    pub notes: Vec<String>,
}

/// Number of runs of the watcher per write to the store. KV's free plan allows 1,000 writes a day, and the watcher runs
/// 1,440 times a day.
const WRITE_EVERY: u64 = 2;

/// Assigns a number to the run of the watcher that begins now (POSIX ms). If the store outside the database has a
/// higher number, marks the database as restored from a backup.
///
/// If the store cannot be read, the report says so and the run continues, because the watcher also acts for buyers.
///
/// # Errors
/// Returns [`DatabaseError`] if the database is unavailable; the run must not continue then.
pub async fn begin<D: Database, N: NumberStore>(
    database: &D,
    store: &N,
    now: Millis,
) -> Result<TickNumber, DatabaseError> {
    // The store is read first, because a run that begins meanwhile may write a higher number.
    let stored = store.read().await;
    let One(number) = database.execute(next_number(now)).await?;
    let mut begun = TickNumber { number, notes: vec![] };
    match stored {
        Err(error) => begun.notes.push(format!("whether the database was restored is unknown: {error}")),
        Ok(Some(highest)) if highest >= number => {
            begun.number = highest.saturating_add(1);
            let mut statements: Vec<Write> = mark_restored().collect();
            statements.push(sql::write!("UPDATE last_tick SET number = max(number, ?1) WHERE id = 1", begun.number));
            database.batch(statements).await?;
            let lost = begun.number.saturating_sub(number);
            begun.notes.push(format!("the database was restored: it had forgotten {lost} ticks"));
        }
        Ok(_) => {}
    }
    if begun.number.is_multiple_of(WRITE_EVERY)
        && let Err(error) = store.write(begun.number).await
    {
        begun.notes.push(format!("the number of the tick is not stored: {error}"));
    }
    Ok(begun)
}

fn next_number(now: Millis) -> Write<One<u64>> {
    sql::write!(
        "INSERT INTO last_tick (id, number, at_ms) VALUES (1, 1, ?1) \
         ON CONFLICT (id) DO UPDATE SET number = number + 1 RETURNING number",
        now
    )
}

/// Builds the statements that mark the database as restored. Afterwards a service wallet cannot pay until its
/// transactions since the backup have been read from the chain.
fn mark_restored() -> impl Iterator<Item = Write> {
    let statements = include_str!("restored.sql").split(";\n").filter(|sql| !sql.trim().is_empty());
    statements.map(|sql| sql::write!(sql))
}
