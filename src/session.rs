//! Sessions of requests. Holding a [`Session`] proves that the request is authenticated.

use edge::bearer::Bearer;
use market::account::{self, Account, Token};

#[cfg(test)]
use crate::openapi::operations::Operation;
use crate::{
    app::App,
    error::{ApiError, not_signed_in},
    route::{Argument, Asked, Limit, Needs},
};

/// A valid session. The holder of its token is the account's owner.
pub struct Session {
    pub account: Account,
    /// The bearer token.
    pub token: Token,
}

impl Session {
    /// Returns the request's session, for routes that accept other proofs too. Returns `None` if the request has no
    /// token, and an error if the token is invalid.
    pub async fn shown(app: &App) -> Result<Option<Self>, ApiError> {
        let Some(token) = shown_token(app)? else { return Ok(None) };
        let account = account::of_session(&app.database(), &token, app.now_ms).await?.ok_or_else(not_signed_in)?;
        app.line.note("wallet", &account.wallet_address.to_string());
        Ok(Some(Self { account, token }))
    }
}

/// The request's session, or `None` if the request has no token. A request with a session counts against the limit of
/// the session's account.
impl Argument for Option<Session> {
    const NEEDS: Needs = Needs::Session;

    async fn of(asked: Asked<'_>) -> Result<Self, ApiError> {
        let session = Session::shown(asked.app).await?;
        if let (Some(session), Limit::Account(counted)) = (&session, asked.limit) {
            asked.app.limit(counted, &session.account.owner).await?;
        }
        Ok(session)
    }
}

impl Argument for Session {
    const NEEDS: Needs = Needs::Session;

    async fn of(asked: Asked<'_>) -> Result<Self, ApiError> {
        Ok(Option::<Self>::of(asked).await?.ok_or_else(not_signed_in)?)
    }

    #[cfg(test)]
    fn describe(operation: Operation<'_>) -> Operation<'_> {
        operation.security(&["session"]).fails(&[401])
    }
}

/// The request's session token, not yet checked. The SQL statements that use the token check that its session is valid.
pub struct Unchecked(pub Token);

impl Argument for Unchecked {
    const NEEDS: Needs = Needs::Session;

    async fn of(asked: Asked<'_>) -> Result<Self, ApiError> {
        Ok(Self(shown_token(asked.app)?.ok_or_else(not_signed_in)?))
    }

    #[cfg(test)]
    fn describe(operation: Operation<'_>) -> Operation<'_> {
        operation.security(&["session"]).fails(&[401])
    }
}

/// Returns the request's token without checking that its session is valid, or `None` if the request has no token.
fn shown_token(app: &App) -> Result<Option<Token>, ApiError> {
    let token = match Bearer::of(&app.request)? {
        Bearer::Absent => return Ok(None),
        Bearer::Malformed => None,
        Bearer::Token(token) => Token::presented(&token),
    };
    Ok(Some(token.ok_or_else(not_signed_in)?))
}
