//! Events that an account's owner is notified of: sales, steps of purchases, payouts, and requests of agents.
//!
//! Triggers append to the log of events when a record changes (`d1-migrations/0010_events.sql`), in the same transaction,
//! so no event is lost and none reports a change that was not stored. If a rollback removes the block on which an event
//! is based, the event is marked, and a new event reports that it is no longer true.

use api_types::Event;
use cardano::slots::Millis;
use serde::Deserialize;
use sql::{Both, Database, DatabaseError, Read, Write};

use crate::limits::DAY_MS;

/// Maximum number of events on one page.
pub const PAGE: u32 = 50;
/// Time in ms for which events are stored.
pub const KEPT_MS: Millis = 90 * DAY_MS;
/// Maximum number of old events deleted per run of the watcher. Each purchase adds only a few events.
const MAX_DELETED: u32 = 100;

/// Position of an event in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Position {
    pub seq: u64,
}

/// A page of events, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventsPage {
    pub events: Vec<Event>,
    /// Cursor of the next page; `None` on the last page.
    pub next: Option<u64>,
}

/// Returns the SQL that reads [`Event`]s with their positions. `which` is the part of the statement after `WHERE`.
fn events(which: &str) -> String {
    format!(include_str!("events.sql"), which = which)
}

/// Builds the query that reads at most `most` of an owner's events, newest first, that precede the position `before` in
/// the log.
pub fn newest(owner: &str, before: Option<u64>, most: u32) -> Read<Vec<Both<Position, Event>>> {
    let which = "e.owner = ?1 AND e.seq < coalesce(?2, 9007199254740992) ORDER BY e.seq DESC LIMIT ?3";
    sql::read!(events(which), owner, before, most)
}

/// Builds the query that reads at most `most` of an owner's events, oldest first, that follow the position `after` in
/// the log.
pub fn after(owner: &str, after: u64, most: u32) -> Read<Vec<Both<Position, Event>>> {
    sql::read!(events("e.owner = ?1 AND e.seq > ?2 ORDER BY e.seq LIMIT ?3"), owner, after, most)
}

/// Reads a page of an owner's events.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn page(db: &impl Database, owner: &str, before: Option<u64>) -> Result<EventsPage, DatabaseError> {
    let mut rows = db.fetch(newest(owner, before, PAGE.saturating_add(1))).await?;
    let most = usize::try_from(PAGE).unwrap_or(usize::MAX);
    let is_last = rows.len() <= most;
    rows.truncate(most);
    let next = rows.last().filter(|_| !is_last).map(|Both(position, _)| position.seq);
    Ok(EventsPage { events: rows.into_iter().map(|Both(_, event)| event).collect(), next })
}

/// Builds the statement that deletes old events. The newest event is kept, so that its position is not used again.
pub(crate) fn remove_old(now: Millis) -> Write {
    sql::write!(
        "DELETE FROM events WHERE at_ms < ?1 AND seq < (SELECT max(seq) FROM events) \
           AND seq < (SELECT min(seq) FROM events) + {MAX_DELETED}",
        now.saturating_sub(KEPT_MS)
    )
}
