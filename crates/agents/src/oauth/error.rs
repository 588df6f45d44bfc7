//! OAuth errors, each with a code for the client's program and a sentence for its developer.

use super::ErrorCode;
use sql::DatabaseError;

/// Default number of seconds after which a client may retry after a temporary failure.
const WAIT_S: u64 = 10;

/// An OAuth error, returned to the client as [`api_types::OAuthError`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{description}")]
pub struct OAuthError {
    pub code: ErrorCode,
    /// Message for people. Never repeats any part of the request.
    pub description: String,
    /// Database error that caused this error, for the log only; `None` if there was another cause.
    #[source]
    pub cause: Option<DatabaseError>,
    /// Number of seconds after which the client may retry (`Retry-After`), for [`ErrorCode::TemporarilyUnavailable`].
    pub retry_after_s: u64,
}

impl OAuthError {
    /// Creates an error with this code and message.
    #[must_use]
    pub fn new(code: ErrorCode, description: impl Into<String>) -> Self {
        Self { code, description: description.into(), cause: None, retry_after_s: WAIT_S }
    }

    /// Creates a `temporarily_unavailable` error, with the number of seconds after which the client may retry.
    pub(super) fn busy(description: impl Into<String>, retry_after_s: u64) -> Self {
        Self { retry_after_s, ..Self::new(ErrorCode::TemporarilyUnavailable, description) }
    }

    pub(super) fn invalid_request(description: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, description)
    }

    pub(super) fn invalid_client(description: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidClient, description)
    }

    /// Creates the error for an invalid code or refresh token. Its text is the same for every reason, so that a thief
    /// of a token learns nothing.
    pub(super) fn invalid_grant() -> Self {
        let text = "the code or refresh token is not valid (any more) for this client: sign in again";
        Self::new(ErrorCode::InvalidGrant, text)
    }
}

impl From<DatabaseError> for OAuthError {
    fn from(error: DatabaseError) -> Self {
        let text = "the service cannot answer just now: try again in some seconds";
        Self { cause: Some(error), ..Self::new(ErrorCode::TemporarilyUnavailable, text) }
    }
}
