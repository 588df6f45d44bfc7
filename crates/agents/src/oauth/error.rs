//! OAuth's error answers: a code for the client's program, a sentence for its developer.

use serde::Serialize;
use sql::DatabaseError;

/// Seconds that a passing fault is given.
const WAIT_S: u64 = 10;

/// The codes of RFC 6749 (sections 4.1.2.1, 5.2), RFC 7591 (section 3.2.2) and RFC 8707 (section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// A parameter is missing, repeated, too long or malformed.
    InvalidRequest,
    /// Unknown client, or one that did not prove who it is.
    InvalidClient,
    /// The code or refresh token is unknown, over, used, revoked, or another client's.
    InvalidGrant,
    /// Not a grant that we offer.
    UnsupportedGrantType,
    /// Not `code`.
    UnsupportedResponseType,
    /// A resource that is not ours.
    InvalidTarget,
    /// A redirect URI that may not be registered.
    InvalidRedirectUri,
    /// Something else that may not be registered.
    InvalidClientMetadata,
    /// Ours to repair; nothing was decided.
    TemporarilyUnavailable,
}

impl ErrorCode {
    /// The HTTP status of an answer with this code.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::InvalidClient => 401,
            Self::TemporarilyUnavailable => 503,
            _ => 400,
        }
    }
}

/// A refusal in OAuth's form: `{"error": code, "error_description": text}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{description}")]
pub struct OAuthError {
    /// For programs.
    #[serde(rename = "error")]
    pub code: ErrorCode,
    /// For people. Never repeats what was sent.
    #[serde(rename = "error_description")]
    pub description: String,
    /// What only our log may say.
    #[serde(skip)]
    pub cause: Option<DatabaseError>,
    /// Seconds after which [`ErrorCode::TemporarilyUnavailable`] may be over (`Retry-After`).
    #[serde(skip)]
    pub wait_s: u64,
}

impl OAuthError {
    /// A refusal.
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

    /// The body of the answer.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::json!(self).to_string()
    }
}

impl From<DatabaseError> for OAuthError {
    fn from(error: DatabaseError) -> Self {
        let text = "the service cannot answer just now: try again in some seconds";
        Self { cause: Some(error), ..Self::new(ErrorCode::TemporarilyUnavailable, text) }
    }
}
