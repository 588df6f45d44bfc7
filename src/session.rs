//! Who asks: extractors whose type is the guarantee.

use edge::serve::Request;
use edge::{bearer::Bearer, d1::D1};
use market::account::{self, Account, Token};

use crate::{app::App, error::ApiError, limits::Counted};

/// A live session. The holder of its token is its account's owner.
pub struct Session {
    /// Whose session it is.
    pub account: Account,
    /// What shows it.
    pub token: Token,
}

impl Session {
    /// The session that the request must show, counted for its client and read in one statement.
    pub async fn of(app: &App, request: &Request) -> Result<Self, ApiError> {
        app.limit_client(Counted::Session, request).await?;
        MaybeSession::of(app, request).await?.0.ok_or(ApiError::NotSignedIn)
    }
}

/// A live session; or a request that shows none, for routes that take other proofs. A token that is there and not live is
/// refused here, too.
pub struct MaybeSession(pub Option<Session>);

impl MaybeSession {
    /// The session that the request shows, if it shows one.
    pub async fn of(app: &App, request: &Request) -> Result<Self, ApiError> {
        match PresentedToken::of(request)? {
            None => Ok(Self(None)),
            Some(shown) => {
                let session = shown.session(&app.database(), app.now_ms()).await?;
                app.line().note("wallet", &session.account.wallet_address.to_string());
                Ok(Self(Some(session)))
            }
        }
    }
}

/// A token in the shape of one; whether its session is live was not checked.
pub struct PresentedToken(Token);

impl PresentedToken {
    /// The token that the request shows; `None` where it shows none.
    pub fn of(request: &Request) -> Result<Option<Self>, ApiError> {
        match Bearer::of(request)? {
            Bearer::Absent => Ok(None),
            Bearer::Malformed => Err(ApiError::NotSignedIn),
            Bearer::Token(token) => Token::presented(&token).map(Self).map(Some).ok_or(ApiError::NotSignedIn),
        }
    }

    /// The token that the request must show, for statements that look at its session themselves.
    pub fn required(request: &Request) -> Result<Token, ApiError> {
        Ok(Self::of(request)?.ok_or(ApiError::NotSignedIn)?.0)
    }

    async fn session(self, database: &D1, now_ms: u64) -> Result<Session, ApiError> {
        let account = account::of_session(database, &self.0, now_ms).await?.ok_or(ApiError::NotSignedIn)?;
        Ok(Session { account, token: self.0 })
    }
}
