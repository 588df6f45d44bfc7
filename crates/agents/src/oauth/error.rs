//! OAuth errors: a code for the client's program, a sentence for its developer.

use super::ErrorCode;
use sql::DatabaseError;

/// Default number of seconds before a retry after a temporary fault.
const WAIT_S: u64 = 10;

/// A refusal, answered as an [`api_types::OAuthError`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{description}")]
pub struct OAuthError {
    pub code: ErrorCode,
    /// Message for people. Never repeats any input.
    pub description: String,
    /// Cause, for the log only.
    #[source]
    pub cause: Option<DatabaseError>,
    /// Number of seconds before a retry of [`ErrorCode::TemporarilyUnavailable`] (`Retry-After`).
    pub wait_s: u64,
}

impl OAuthError {
    /// Creates a refusal.
    #[must_use]
    pub fn new(code: ErrorCode, description: impl Into<String>) -> Self {
        Self { code, description: description.into(), cause: None, wait_s: WAIT_S }
    }

    /// Creates a temporary refusal, with the number of seconds before a retry.
    pub(super) fn busy(description: impl Into<String>, wait_s: u64) -> Self {
        Self { wait_s, ..Self::new(ErrorCode::TemporarilyUnavailable, description) }
    }

    pub(super) fn invalid_request(description: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, description)
    }

    pub(super) fn invalid_client(description: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidClient, description)
    }

    /// Creates the refusal for every problem with a code or a refresh token. The text is the same for all, so that a
    /// thief learns nothing.
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
