//! Grants: finds the agent that presents an access token, and lists and revokes grants for their owner (`GET
//! /me/agents`, `DELETE /me/agents/{id}`).

use api_types::Agent;
use market::{
    account::{self, Account, Token},
    limits::day,
};
use serde::Deserialize;
use sql::{Database, DatabaseError, Read, Write};

use super::{Scope, Server, TokenKind, token::Claims};

/// Minimum time in ms between two updates of a grant's last use.
const USED_EVERY_MS: u64 = 60 * 1_000;
/// Maximum number of grants in an owner's list.
const MAX_SHOWN: u32 = 200;
/// SQL expression for the owner of a session that has not expired. `?1` is the hash of its token, `?2` the current
/// time.
const SESSION_OWNER: &str = "(SELECT owner FROM sessions WHERE token_hash = ?1 AND expires_at_ms > ?2)";

/// An agent that presented a valid access token, with the account of its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub grant: String,
    pub client_id: String,
    /// Permissions of the agent.
    pub scope: Scope,
    /// Account from which the agent spends.
    pub account: Account,
}

/// The client and scope of a grant that is not revoked.
#[derive(Deserialize)]
struct GrantRow {
    client_id: String,
    scope: Scope,
}

impl<D: Database, W, J> Server<'_, D, W, J> {
    fn claims(&self, access_token: &str) -> Option<Claims> {
        let claims = Claims::read(access_token, TokenKind::Access, self.authority);
        claims.filter(|claims| claims.expires_at_ms > self.now_ms)
    }

    /// Returns the id of the grant that an access token belongs to. The id is decoded from the token, without a
    /// database query. `None` if the token has expired or another server issued it.
    #[must_use]
    pub fn grant_named_by(&self, access_token: &str) -> Option<String> {
        Some(self.claims(access_token)?.grant.to_string())
    }

    /// Returns the agent that presents an access token. `None` if the token has expired or was revoked, or if it is for
    /// another server or resource.
    ///
    /// # Errors
    /// [`DatabaseError`] if the database is unavailable.
    pub async fn caller(&self, access_token: &str) -> Result<Option<Caller>, DatabaseError> {
        let Some(claims) = self.claims(access_token) else { return Ok(None) };
        let grant = claims.grant.to_string();
        let read: Read<Option<GrantRow>> = sql::read!(
            "SELECT client_id, scope FROM oauth_grants \
             WHERE id = ?1 AND generation >= ?2 AND ?2 > 0 AND revoked_at_ms IS NULL AND resource = ?3",
            grant.as_str(),
            claims.generation,
            self.authority.resource(),
        );
        let used: Write = sql::write!(
            "UPDATE oauth_grants SET used_at_ms = ?2 WHERE id = ?1 AND used_at_ms <= ?3 AND revoked_at_ms IS NULL",
            grant.as_str(),
            self.now_ms,
            self.now_ms.saturating_sub(USED_EVERY_MS),
        );
        let (row, account, ()) = self.db.batch((read, account::by_grant(&grant), used)).await?;
        Ok(row.zip(account).map(|(GrantRow { client_id, scope }, account)| Caller { grant, client_id, scope, account }))
    }
}

/// Builds the query for the owner of a session; `None` if the session has expired.
fn session_owner(session: &Token, now_ms: u64) -> Read<Option<String>> {
    sql::read!("SELECT {SESSION_OWNER} WHERE {SESSION_OWNER} IS NOT NULL", session.hash(), now_ms)
}

/// Returns the agents to which a session's owner has granted access, newest first, except revoked ones. `None` if the
/// session does not exist or has expired.
///
/// # Errors
/// [`DatabaseError`] if the database is unavailable.
pub async fn list(db: &impl Database, session: &Token, now_ms: u64) -> Result<Option<Vec<Agent>>, DatabaseError> {
    let agents: Read<Vec<Agent>> = sql::read!(
        "SELECT id, client_id AS clientId, client_name AS clientName, redirect_uri AS redirectUri, scope, \
           CAST(old_token_at_ms AS TEXT) AS oldTokenAt, old_token_from AS oldTokenFrom, \
           CAST(created_at_ms AS TEXT) AS createdAt, CAST(used_at_ms AS TEXT) AS lastUsedAt, \
           (SELECT CAST(coalesce(sum(p.amount_lovelace), 0) AS TEXT) FROM agent_spends a \
            JOIN payments p ON p.tx_id = a.tx_id JOIN outbox o ON o.tx_id = a.tx_id \
            WHERE a.grant_id = g.id AND p.day = ?3 AND o.phase <> 'given_up') AS spentTodayLovelace \
         FROM oauth_grants g WHERE owner = {SESSION_OWNER} AND generation > 0 AND revoked_at_ms IS NULL \
         ORDER BY created_at_ms DESC LIMIT {MAX_SHOWN}",
        session.hash(),
        now_ms,
        day(now_ms)
    );
    let (owner, agents) = db.batch((session_owner(session, now_ms), agents)).await?;
    Ok(owner.map(|_| agents))
}

/// The outcome of an owner's revocation of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revocation {
    /// The grant is revoked, by this call or an earlier one.
    Revoked,
    /// The session's owner has no grant with this id.
    NotFound,
    /// The session does not exist or has expired.
    SignedOut,
}

/// Revokes a grant of a session's owner. The tokens of the grant stop working at once.
///
/// # Errors
/// [`DatabaseError`] if the database is unavailable.
pub async fn revoke(
    db: &impl Database,
    session: &Token,
    grant: &str,
    now_ms: u64,
) -> Result<Revocation, DatabaseError> {
    let revoke: Write<Option<String>> = sql::write!(
        "UPDATE oauth_grants SET revoked_at_ms = coalesce(revoked_at_ms, ?2) WHERE id = ?3 AND owner = {SESSION_OWNER} \
         RETURNING id",
        session.hash(),
        now_ms,
        grant,
    );
    let (owner, revoked) = db.batch((session_owner(session, now_ms), revoke)).await?;
    Ok(match (owner, revoked) {
        (None, _) => Revocation::SignedOut,
        (Some(_), None) => Revocation::NotFound,
        (Some(_), Some(_)) => Revocation::Revoked,
    })
}
