//! Keys of resource servers, each with a number of calls per day.

use cardano::{ContentHash, slots::Millis};
use serde::Deserialize;
use sql::{Database, DatabaseError};

const DAY_MS: Millis = 24 * 60 * 60 * 1000;

/// SHA-256 of a bearer token. Only the hash is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHash(ContentHash);

impl KeyHash {
    /// Hashes a bearer token.
    #[must_use]
    pub fn of(token: &str) -> Self {
        Self(ContentHash::of(token.as_bytes()))
    }
}

/// Outcome of counting a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spent {
    /// The call was counted. Contains the key's name, under which the caller's provider calls are queued.
    Counted(String),
    /// The key's calls of this day (UTC) are used up. Contains the number of calls per day.
    UsedUp(u64),
    /// No key has this hash.
    Unknown,
}

#[derive(Deserialize)]
struct KeyRow {
    calls_per_day: u64,
}

/// Counts a call against its key, in one statement, so that parallel calls cannot exceed the limit.
///
/// # Errors
/// Returns [`DatabaseError`] if the database is unavailable.
pub async fn spend(database: &impl Database, key: &KeyHash, now: Millis) -> Result<Spent, DatabaseError> {
    let counted: sql::Write<Option<String>> = sql::write!(
        "UPDATE facilitator_keys SET calls = iif(day = ?2, calls, 0) + 1, day = ?2 \
         WHERE key_hash = ?1 AND (day <> ?2 OR calls < calls_per_day) RETURNING name",
        key.0,
        now / DAY_MS,
    );
    let known: sql::Read<Option<KeyRow>> =
        sql::read!("SELECT calls_per_day FROM facilitator_keys WHERE key_hash = ?1", key.0);
    Ok(match database.batch((counted, known)).await? {
        (Some(name), _) => Spent::Counted(name),
        (None, Some(key)) => Spent::UsedUp(key.calls_per_day),
        (None, None) => Spent::Unknown,
    })
}
