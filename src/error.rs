//! Errors of requests.

use agents::oauth::{self, OAuthError};
use api_types::{Error, ErrorCode};
use cardano::chain::ChainError;
use edge::{
    answer::{ErrorAnswer, Fault},
    http::BodyError,
    settings::SettingError,
};
use market::{PortError, challenge::ChallengesError, contents::ContentsError};
use sql::DatabaseError;

/// Seconds after which a client may retry when storage is full. An operator has to make room first.
const NO_ROOM_RETRY: u64 = 3_600;

/// Reason why a request fails.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The client must change the request, or wait before it retries.
    #[error(transparent)]
    Refused(#[from] ErrorAnswer),
    /// The request failed with an error of OAuth, which has a format of its own.
    #[error(transparent)]
    OAuth(#[from] OAuthError),
    /// A part of the service failed.
    #[error(transparent)]
    Fault(Fault),
}

impl ApiError {
    /// Returns the answer to the client.
    pub fn answer(&self) -> ErrorAnswer {
        match self {
            Self::Refused(answer) => answer.clone(),
            Self::OAuth(error) => oauth_answer(error),
            Self::Fault(fault) => fault.answer(),
        }
    }
}

/// Formats an OAuth error by RFC 6749, section 5.2, with the header that its code requires.
fn oauth_answer(error: &OAuthError) -> ErrorAnswer {
    let answer = ErrorAnswer::oauth(error.code.status(), error.code, error);
    match error.code {
        oauth::ErrorCode::TemporarilyUnavailable => answer.with_header("retry-after", error.retry_after_s),
        oauth::ErrorCode::InvalidClient => {
            answer.with_header("www-authenticate", "Basic realm=\"no client here has a password\"")
        }
        _ => answer,
    }
}

/// 404: no endpoint has this path.
pub fn no_such_path() -> ErrorAnswer {
    ErrorAnswer::not_found(Error::new(ErrorCode::UnknownPath, "no such path"))
}

/// 401: the request has no valid session.
pub fn not_signed_in() -> ErrorAnswer {
    let text = "not signed in, or the session is over: sign in again (POST /auth/challenge)";
    ErrorAnswer::unauthorized(Error::new(ErrorCode::NotSignedIn, text))
}

/// 503: the database is almost full, so it accepts only rows that somebody paid for.
pub fn storage_full() -> ErrorAnswer {
    let text = "the service's storage is full: no new listings, accounts or agents for now; buying, and signing in to an \
                account, still work";
    ErrorAnswer::unavailable_for(NO_ROOM_RETRY, Error::new(ErrorCode::StorageFull, text))
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        Self::Refused(error.into())
    }
}

macro_rules! fault {
    ($($kind:ty),*) => {$(
        impl From<$kind> for ApiError {
            fn from(error: $kind) -> Self {
                Self::Fault(error.into())
            }
        }
    )*};
}
fault!(
    Fault,
    DatabaseError,
    ChainError,
    ChallengesError,
    ContentsError,
    PortError,
    SettingError,
    edge::RandomError,
    worker::Error
);
