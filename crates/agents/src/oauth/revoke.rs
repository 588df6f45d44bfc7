//! Revocation by clients, `POST /oauth/revoke` (RFC 7009).
//!
//! Possession of a token suffices to revoke its grant; clients need not authenticate. A token that is expired,
//! superseded or foreign changes nothing, and the answer is the same (section 2.2).

use sql::{Database, Write};

use super::{OAuthError, Server, TokenKind, form::Form, token::Claims};

impl<D: Database, W, J> Server<'_, D, W, J> {
    /// Revokes the grant of the token in this form: an access token that has not expired, or the newest refresh token.
    ///
    /// # Errors
    /// `invalid_request` if the form has no token; `temporarily_unavailable` if the database is unavailable.
    pub async fn revoke_token(&self, body: &str) -> Result<(), OAuthError> {
        let form = Form::parse(body)?;
        let token = form.required("token", super::exchange::MAX_TOKEN)?;
        let read = |kind| {
            let claims = Claims::read(token, kind, self.authority)?;
            (claims.expires_at_ms > self.now_ms).then_some((claims, kind == TokenKind::Refresh))
        };
        let Some((claims, newest)) = read(TokenKind::Refresh).or_else(|| read(TokenKind::Access)) else {
            return Ok(());
        };
        let end: Write = sql::write!(
            "UPDATE oauth_grants SET revoked_at_ms = ?2 WHERE id = ?1 AND generation > 0 AND revoked_at_ms IS NULL \
               AND (generation = ?3 OR NOT ?4) AND (?5 IS NULL OR client_id = ?5)",
            claims.grant.to_string(),
            self.now_ms,
            claims.generation,
            newest,
            form.get("client_id"),
        );
        Ok(self.db.execute(end).await?)
    }
}
