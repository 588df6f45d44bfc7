//! Grants: looking up the caller of an access token, and the owner's list and revocation of grants (`GET /me/agents`,
//! `DELETE /me/agents/{id}`).

use market::{
    account::{Account, Token},
    limits::day,
};
use serde::Deserialize;
use sql::{Database, DatabaseError, exactly, statement};

use super::{Scope, Server, TokenKind, token::Claims};

/// Minimum interval between updates of a grant's last use, in ms.
const USED_EVERY_MS: u64 = 60 * 1_000;
/// Maximum number of grants in an owner's list.
const MAX_SHOWN: u32 = 200;
/// SQL expression for the owner of a live session, over `?1` (the token's hash) and `?2` (now).
const SESSION_OWNER: &str = "(SELECT owner FROM sessions WHERE token_hash = ?1 AND expires_at_ms > ?2)";

/// An agent with its owner's account.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Caller {
    pub grant: String,
    pub client_id: String,
    /// Permissions of the agent.
    pub scope: Scope,
    /// Account from which the agent spends.
    pub account: Account,
}

impl<D: Database, W, J> Server<'_, D, W, J> {
    fn claims(&self, access_token: &str) -> Option<Claims> {
        let claims = Claims::read(access_token, TokenKind::Access, self.authority);
        claims.filter(|claims| claims.expires_at_ms > self.now_ms)
    }

    /// Returns the grant of an access token from the token alone, or `None` if it is not this server's or has expired.
    #[must_use]
    pub fn grant_named_by(&self, access_token: &str) -> Option<String> {
        Some(self.claims(access_token)?.grant.to_string())
    }

    /// Returns the agent that presents an access token, or `None` if the token is not this server's, expired, revoked,
    /// or for another resource.
    ///
    /// # Errors
    /// [`DatabaseError`] if the database is unavailable.
    pub async fn caller(&self, access_token: &str) -> Result<Option<Caller>, DatabaseError> {
        let Some(claims) = self.claims(access_token) else { return Ok(None) };
        let grant = claims.grant.to_string();
        let read = statement!(
            "SELECT json_object('grant', g.id, 'clientId', g.client_id, 'scope', g.scope, 'account', json_object('owner', a.owner, \
               'walletAddress', a.wallet_address, 'keyVersion', a.key_version, \
               'maxPerPayment', CAST(a.max_per_payment AS TEXT), 'dailyBudget', CAST(a.daily_budget AS TEXT), \
               'askAbove', CAST(a.ask_above AS TEXT), \
               'authorization', json_object('grant', g.id))) \
             FROM oauth_grants g JOIN accounts a ON a.owner = g.owner \
             WHERE g.id = ?1 AND g.generation >= ?2 AND ?2 > 0 AND g.revoked_at_ms IS NULL AND g.resource = ?3",
            grant.as_str(),
            claims.generation,
            self.authority.resource(),
        );
        let used = statement!(
            "UPDATE oauth_grants SET used_at_ms = ?2 WHERE id = ?1 AND used_at_ms <= ?3 AND revoked_at_ms IS NULL",
            grant.as_str(),
            self.now_ms,
            self.now_ms.saturating_sub(USED_EVERY_MS),
        );
        let [caller, _] = exactly(self.db.batch(vec![read, used]).await?)?;
        caller.first_json()
    }
}

/// Returns the unrevoked grants of a session's owner, newest first, as a JSON array of `{id, clientId, clientName,
/// redirectUri, scope, createdAt, lastUsedAt, spentTodayLovelace}` (times: strings, POSIX ms). `None` if there is no
/// such session.
///
/// # Errors
/// [`DatabaseError`] if the database is unavailable.
pub async fn list(db: &impl Database, session: &Token, now_ms: u64) -> Result<Option<String>, DatabaseError> {
    let grants = format!(
        "SELECT json_object('id', id, 'clientId', client_id, 'clientName', client_name, 'redirectUri', redirect_uri, \
           'scope', scope, \
           'createdAt', CAST(created_at_ms AS TEXT), 'lastUsedAt', CAST(used_at_ms AS TEXT), 'spentTodayLovelace', \
           (SELECT CAST(coalesce(sum(p.amount_lovelace), 0) AS TEXT) FROM agent_spends a \
            JOIN payments p ON p.tx_id = a.tx_id JOIN outbox o ON o.tx_id = a.tx_id \
            WHERE a.grant_id = g.id AND p.day = ?3 AND o.state IN ('claimed', 'submitted', 'included'))) \
         FROM oauth_grants g WHERE owner = {SESSION_OWNER} AND generation > 0 AND revoked_at_ms IS NULL \
         ORDER BY created_at_ms DESC LIMIT {MAX_SHOWN}"
    );
    let statements = vec![
        statement!(format!("SELECT {SESSION_OWNER} WHERE {SESSION_OWNER} IS NOT NULL"), session.hash(), now_ms),
        statement!(grants, session.hash(), now_ms, day(now_ms)),
    ];
    let [owner, grants] = exactly(db.batch(statements).await?)?;
    Ok(owner.first().map(|_| format!("[{}]", grants.rows.join(","))))
}

/// The outcome of a revocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revocation {
    /// The grant is revoked, now or before.
    Revoked,
    /// The session's owner has no such grant.
    NotFound,
    /// The session does not exist or has expired.
    SignedOut,
}

/// Revokes a grant of a session's owner. Its tokens stop working at once.
///
/// # Errors
/// [`DatabaseError`] if the database is unavailable.
pub async fn revoke(
    db: &impl Database,
    session: &Token,
    grant: &str,
    now_ms: u64,
) -> Result<Revocation, DatabaseError> {
    let owner = statement!(format!("SELECT {SESSION_OWNER} WHERE {SESSION_OWNER} IS NOT NULL"), session.hash(), now_ms);
    let revoke = statement!(
        format!(
            "UPDATE oauth_grants SET revoked_at_ms = coalesce(revoked_at_ms, ?2) WHERE id = ?3 AND owner = {SESSION_OWNER} \
             RETURNING id"
        ),
        session.hash(),
        now_ms,
        grant,
    );
    let [owner, revoked] = exactly(db.batch(vec![owner, revoke]).await?)?;
    Ok(match (owner.first(), revoked.first()) {
        (None, _) => Revocation::SignedOut,
        (Some(_), None) => Revocation::NotFound,
        (Some(_), Some(_)) => Revocation::Revoked,
    })
}
