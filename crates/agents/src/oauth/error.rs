//! OAuth's error answers: a code for the client's program, a sentence for its developer.

use api_types::ErrorCode;
use sql::DatabaseError;

/// Seconds that a passing fault is given.
const WAIT_S: u64 = 10;

/// A refusal: its answer is [`api_types::OAuthError`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{description}")]
pub struct OAuthError {
    pub code: ErrorCode,
    /// For people. Never repeats what was sent.
    pub description: String,
    /// What only our log may say.
    #[source]
    pub cause: Option<DatabaseError>,
    /// Seconds after which [`ErrorCode::TemporarilyUnavailable`] may be over (`Retry-After`).
    pub wait_s: u64,
}

impl OAuthError {
    /// A refusal with this code and text.
    #[must_use]
    pub fn new(code: ErrorCode, description: impl Into<String>) -> Self {
        Self { code, description: description.into(), cause: None, wait_s: WAIT_S }
    }

    /// A fault that passes, and in how many seconds it may have.
    pub(super) fn busy(description: impl Into<String>, wait_s: u64) -> Self {
        Self { wait_s, ..Self::new(ErrorCode::TemporarilyUnavailable, description) }
    }

    pub(super) fn invalid_request(description: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, description)
    }

    pub(super) fn invalid_client(description: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidClient, description)
    }

    /// One text for everything that can be wrong with a code or a refresh token: a thief learns nothing from it.
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
