//! Who asks: an extractor whose type is the guarantee.

use edge::bearer::Bearer;
use market::account::{self, Account, Token};

use crate::{
    app::App,
    error::{ApiError, not_signed_in},
    limits::Counted,
};

/// A live session. The holder of its token is its account's owner.
pub struct Session {
    pub account: Account,
    /// What shows it.
    pub token: Token,
}

impl Session {
    /// The session that the request must show, counted for its client and read in one statement.
    pub async fn of(app: &App) -> Result<Self, ApiError> {
        app.limit_client(Counted::SESSION).await?;
        Ok(Self::shown(app).await?.ok_or_else(not_signed_in)?)
    }

    /// The session that the request shows, for routes that take other proofs, too. A token that is there and not live is
    /// refused.
    pub async fn shown(app: &App) -> Result<Option<Self>, ApiError> {
        let Some(token) = shown_token(app)? else { return Ok(None) };
        let account = account::of_session(&app.database(), &token, app.now_ms).await?.ok_or_else(not_signed_in)?;
        app.line.note("wallet", &account.wallet_address.to_string());
        Ok(Some(Self { account, token }))
    }
}

/// The token that the request shows, in the shape of one; whether its session is live was not checked.
pub fn shown_token(app: &App) -> Result<Option<Token>, ApiError> {
    let token = match Bearer::of(&app.request)? {
        Bearer::Absent => return Ok(None),
        Bearer::Malformed => None,
        Bearer::Token(token) => Token::presented(&token),
    };
    Ok(Some(token.ok_or_else(not_signed_in)?))
}

/// The token that the request must show, for statements that look at its session themselves.
pub fn required_token(app: &App) -> Result<Token, ApiError> {
    Ok(shown_token(app)?.ok_or_else(not_signed_in)?)
}
