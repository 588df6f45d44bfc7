//! Responses that the workers share: JSON, and errors as `{"error": "..."}`.

use std::fmt;

use cardano::chain::ChainError;
use market::challenge::ChallengesError;
use serde_json::json;
use sql::DatabaseError;

use crate::{
    http::{BodyError, RETRY_MEMORY_SECONDS},
    serve::Response,
    settings::SettingError,
};

/// Default of `Retry-After` when a part of the service did not answer, in seconds.
const RETRY_AFTER: u64 = 5;

/// Period over which calls to the chain provider are counted, in seconds.
pub const PROVIDER_SECONDS: u32 = 10;

/// Creates a JSON response that must not be cached.
#[must_use]
pub fn private_json(text: String) -> Response {
    Response::json(text).with_header("cache-control", "no-store")
}

/// Creates a plain text response that must not be cached.
#[must_use]
pub fn private_text(text: String) -> Response {
    Response::text(text).with_header("cache-control", "private, no-store")
}

/// An error response: a status, a stable message that says what to do, and the header that the status requires.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ErrorAnswer {
    status: u16,
    text: String,
    /// Error code for programs, in protocols that define some. The body then has OAuth's form (RFC 6749, section 5.2).
    code: Option<String>,
    header: Option<(&'static str, String)>,
}

impl ErrorAnswer {
    /// Creates a response with this status and message.
    pub fn new(status: u16, text: impl fmt::Display) -> Self {
        Self { status, text: text.to_string(), code: None, header: None }
    }

    /// Replaces the header.
    #[must_use]
    pub fn with_header(self, name: &'static str, value: impl fmt::Display) -> Self {
        Self { header: Some((name, value.to_string())), ..self }
    }

    /// Adds an error code for programs.
    #[must_use]
    pub fn with_code(self, code: impl fmt::Display) -> Self {
        Self { code: Some(code.to_string()), ..self }
    }

    /// 400: the request is invalid.
    pub fn bad_request(text: impl fmt::Display) -> Self {
        Self::new(400, text)
    }

    /// 401 with `WWW-Authenticate`: the client is not authenticated.
    pub fn unauthorized(text: impl fmt::Display) -> Self {
        Self::new(401, text).with_header("www-authenticate", "Bearer")
    }

    /// 403: the client is authenticated, but not allowed.
    pub fn forbidden(text: impl fmt::Display) -> Self {
        Self::new(403, text)
    }

    /// 404.
    pub fn not_found(text: impl fmt::Display) -> Self {
        Self::new(404, text)
    }

    /// 405 with `Allow`.
    pub fn wrong_method(allowed: impl fmt::Display) -> Self {
        Self::new(405, format_args!("this path takes only {allowed}")).with_header("allow", allowed)
    }

    /// 409: another request has what this one needs.
    pub fn conflict(text: impl fmt::Display) -> Self {
        Self::new(409, text)
    }

    /// 429 with `Retry-After`. The message names the limit.
    pub fn too_many(seconds: u32, text: impl fmt::Display) -> Self {
        Self::new(429, text).with_header("retry-after", seconds)
    }

    /// 500: a fault of the service or its configuration.
    pub fn internal(text: impl fmt::Display) -> Self {
        Self::new(500, text)
    }

    /// 503 with `Retry-After`: a dependency does not answer. A retry is safe.
    pub fn unavailable(text: impl fmt::Display) -> Self {
        Self::unavailable_for(RETRY_AFTER, text)
    }

    /// 503 with this number of seconds before a retry.
    pub fn unavailable_for(seconds: u64, text: impl fmt::Display) -> Self {
        Self::new(503, text).with_header("retry-after", seconds)
    }

    /// Returns the HTTP status.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Returns the message, for callers that do not answer over HTTP.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Converts to an HTTP response.
    #[must_use]
    pub fn into_response(self) -> Response {
        let body = match self.code {
            None => json!({ "error": self.text }),
            Some(code) => json!({ "error": code, "error_description": self.text }),
        };
        let response = private_json(body.to_string()).with_status(self.status);
        match self.header {
            Some((name, value)) => response.with_header(name, value),
            None => response,
        }
    }
}

/// A fault of a part of the service, never of the client. The text is for the log and contains no secret.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The database does not answer.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The chain provider does not answer.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The content store does not answer.
    #[error(transparent)]
    Contents(#[from] market::contents::ContentsError),
    /// The challenge store does not answer.
    #[error(transparent)]
    Challenges(#[from] ChallengesError),
    /// A setting is missing or invalid.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The runtime provides no randomness.
    #[error("no randomness: {0}")]
    Random(#[from] getrandom::Error),
    /// The runtime returned an error.
    #[error("runtime: {0}")]
    Runtime(#[from] worker::Error),
    /// Stored or computed data are inconsistent.
    #[error("{0}")]
    Inconsistent(String),
}

impl From<market::PortError> for Fault {
    fn from(error: market::PortError) -> Self {
        match error {
            market::PortError::Database(error) => error.into(),
            market::PortError::Chain(error) => error.into(),
            market::PortError::Contents(error) => error.into(),
        }
    }
}

impl Fault {
    /// Returns a function that wraps an error in [`Fault::Inconsistent`], with the name of what was being made.
    pub fn in_making<E: fmt::Display>(what: &str) -> impl FnOnce(E) -> Self {
        move |error| Self::Inconsistent(format!("{what}: {error}"))
    }

    /// Returns the response to the client. The reason itself goes to the request's log line.
    #[must_use]
    pub fn answer(&self) -> ErrorAnswer {
        match self {
            Self::Database(_) => ErrorAnswer::unavailable("the database does not answer; try again in a few seconds"),
            Self::Chain(ChainError::BudgetExhausted) => {
                ErrorAnswer::bad_request("this request needs too many look-ups on the chain: use fewer inputs")
            }
            Self::Chain(ChainError::TooMany) => ErrorAnswer::too_many(
                PROVIDER_SECONDS,
                format!("too many questions to the chain's provider: try again in {PROVIDER_SECONDS} seconds"),
            ),
            Self::Chain(
                ChainError::Unavailable(_)
                | ChainError::TimeOver
                | ChainError::RateLimited
                | ChainError::Malformed(_)
                | ChainError::TooLong
                | ChainError::FutureBlock { .. },
            ) => ErrorAnswer::unavailable("the chain provider does not answer; try again in a few seconds"),
            Self::Contents(_) => {
                ErrorAnswer::unavailable("the store of contents does not answer; try again in a few seconds")
            }
            Self::Challenges(_) => ErrorAnswer::unavailable("sign-in is not available now: try again in a few seconds"),
            // Names the setting, never its value.
            Self::Setting(error) => ErrorAnswer::internal(format!("the service is not configured: {error}")),
            Self::Random(_) | Self::Runtime(_) | Self::Inconsistent(_) => {
                ErrorAnswer::internal("something went wrong on our side; try again later")
            }
        }
    }
}

impl From<BodyError> for ErrorAnswer {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge(_) => Self::new(413, error),
            BodyError::Broken => Self::bad_request(error),
            BodyError::Slow => Self::new(408, error),
            BodyError::OutOfMemory => Self::too_many(RETRY_MEMORY_SECONDS, error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_401_says_how_to_authenticate_and_a_429_when_to_retry() {
        assert_eq!(ErrorAnswer::unauthorized("x").header, Some(("www-authenticate", "Bearer".to_owned())));
        assert_eq!(ErrorAnswer::too_many(60, "x").header, Some(("retry-after", "60".into())));
        assert_eq!(ErrorAnswer::unavailable("x").header, Some(("retry-after", "5".into())));
        assert_eq!(ErrorAnswer::wrong_method("GET").header, Some(("allow", "GET".into())));
    }
}
