//! Private feeds: an owner's events under an address whose token only the owner knows.

use cardano::slots::Millis;
use sql::{Read, Write};

use crate::account::Token;

/// Builds the statement that sets the token of an owner's feed, replacing any previous token. Only the token's hash is
/// stored.
pub fn renew(owner: &str, token: &Token, now: Millis) -> Write {
    sql::write!(
        "INSERT INTO event_feeds (owner, token_hash, created_at_ms) VALUES (?1, ?2, ?3) \
         ON CONFLICT (owner) DO UPDATE SET token_hash = excluded.token_hash, created_at_ms = excluded.created_at_ms",
        owner,
        token.hash(),
        now
    )
}

/// Builds the statement that revokes the token of an owner's feed. Returns the owner, or `None` if the feed had no
/// token.
pub fn revoke(owner: &str) -> Write<Option<String>> {
    sql::write!("DELETE FROM event_feeds WHERE owner = ?1 RETURNING owner", owner)
}

/// Builds the query that reads the time in POSIX ms at which the token of an owner's feed was created; `None` if the
/// feed has no token.
pub fn since(owner: &str) -> Read<Option<Millis>> {
    sql::read!("SELECT created_at_ms FROM event_feeds WHERE owner = ?1", owner)
}

/// Builds the query that reads the owner of the feed with this token. The query compares hashes, so its duration
/// reveals nothing about the token.
pub fn owner_of(token: &Token) -> Read<Option<String>> {
    sql::read!("SELECT owner FROM event_feeds WHERE token_hash = ?1", token.hash())
}
