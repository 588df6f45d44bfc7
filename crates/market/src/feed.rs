//! Private feeds: an owner's events under an address whose token only the owner knows.

use cardano::slots::Millis;
use sql::{Read, Write};

use crate::account::Token;

/// Builds the statement that gives an owner's feed a new token, which replaces the one before. Only its hash is stored.
pub fn renew(owner: &str, token: &Token, now: Millis) -> Write {
    sql::write!(
        "INSERT INTO event_feeds (owner, token_hash, created_at_ms) VALUES (?1, ?2, ?3) \
         ON CONFLICT (owner) DO UPDATE SET token_hash = excluded.token_hash, created_at_ms = excluded.created_at_ms",
        owner,
        token.hash(),
        now
    )
}

/// Builds the statement that revokes the token of an owner's feed, and returns its owner if there was one.
pub fn revoke(owner: &str) -> Write<Option<String>> {
    sql::write!("DELETE FROM event_feeds WHERE owner = ?1 RETURNING owner", owner)
}

/// Builds the query that reads when the token of an owner's feed was made, POSIX ms; `None` if there is none.
pub fn since(owner: &str) -> Read<Option<Millis>> {
    sql::read!("SELECT created_at_ms FROM event_feeds WHERE owner = ?1", owner)
}

/// Builds the query that reads the owner of the feed with this token. The token is compared by its hash, so the time
/// that a comparison takes says nothing about the token.
pub fn owner_of(token: &Token) -> Read<Option<String>> {
    sql::read!("SELECT owner FROM event_feeds WHERE token_hash = ?1", token.hash())
}
