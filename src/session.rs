//! Sessions of requests. Holding a [`Session`] proves that the request is authenticated.

use edge::bearer::Bearer;
use market::account::{self, Account, Token};

use crate::{
    app::App,
    error::{ApiError, not_signed_in},
    limits::Counted,
};

/// A valid session. The holder of its token is the account's owner.
pub struct Session {
    pub account: Account,
    /// The bearer token.
    pub token: Token,
}

impl Session {
    /// Returns the request's session, or fails if there is none. The request counts against the client's rate limit.
    pub async fn of(app: &App) -> Result<Self, ApiError> {
        app.limit_client(Counted::SESSION).await?;
        Ok(Self::shown(app).await?.ok_or_else(not_signed_in)?)
    }

    /// Returns the request's session, or `None` if the request has no token, for routes that accept other proofs too.
    /// An invalid token is an error.
    pub async fn shown(app: &App) -> Result<Option<Self>, ApiError> {
        let Some(token) = shown_token(app)? else { return Ok(None) };
        let account = account::of_session(&app.database(), &token, app.now_ms).await?.ok_or_else(not_signed_in)?;
        app.line.note("wallet", &account.wallet_address.to_string());
        Ok(Some(Self { account, token }))
    }
}

/// Returns the request's token without checking that its session is valid, or `None` if the request has no token.
pub fn shown_token(app: &App) -> Result<Option<Token>, ApiError> {
    let token = match Bearer::of(&app.request)? {
        Bearer::Absent => return Ok(None),
        Bearer::Malformed => None,
        Bearer::Token(token) => Token::presented(&token),
    };
    Ok(Some(token.ok_or_else(not_signed_in)?))
}

/// Returns the request's token, or fails if there is none. The SQL statements that use the token check its session.
pub fn required_token(app: &App) -> Result<Token, ApiError> {
    Ok(shown_token(app)?.ok_or_else(not_signed_in)?)
}
