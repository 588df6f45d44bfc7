//! Responses that the workers share: JSON, and errors as `{"error": "..."}`.

use std::fmt;

use api_types::{Error, ErrorCode};
use cardano::chain::ChainError;
use market::challenge::ChallengesError;
use serde_json::json;
use sql::DatabaseError;

use crate::{
    http::{BodyError, RETRY_MEMORY_SECONDS},
    serve::Response,
    settings::SettingError,
};

/// Default `Retry-After` of a 503 response, in seconds.
const RETRY_AFTER: u64 = 5;

/// Period of the rate limit on calls to the chain provider, in seconds.
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
#[error("{}", self.text())]
pub struct ErrorAnswer {
    status: u16,
    body: ErrorBody,
    header: Option<(&'static str, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ErrorBody {
    Api(Error),
    /// An error in OAuth's format (RFC 6749, 5.2).
    OAuth {
        code: String,
        description: String,
    },
}

impl ErrorAnswer {
    /// Creates an error response with this status and message.
    pub fn new(status: u16, error: impl Into<Error>) -> Self {
        Self { status, body: ErrorBody::Api(error.into()), header: None }
    }

    /// Creates an error response with this status, one of OAuth's error codes, and a description.
    pub fn oauth(status: u16, code: impl fmt::Display, description: impl fmt::Display) -> Self {
        let body = ErrorBody::OAuth { code: code.to_string(), description: description.to_string() };
        Self { status, body, header: None }
    }

    /// Sets the response's additional header. Replaces the header that the status requires, such as `Retry-After`.
    #[must_use]
    pub fn with_header(self, name: &'static str, value: impl fmt::Display) -> Self {
        Self { header: Some((name, value.to_string())), ..self }
    }

    /// 400: the request is malformed or contains an invalid value.
    pub fn bad_request(error: impl Into<Error>) -> Self {
        Self::new(400, error)
    }

    /// 401 with `WWW-Authenticate`: the request lacks valid credentials.
    pub fn unauthorized(error: impl Into<Error>) -> Self {
        Self::new(401, error).with_header("www-authenticate", "Bearer")
    }

    /// 403: the client is authenticated but may not do this.
    pub fn forbidden(error: impl Into<Error>) -> Self {
        Self::new(403, error)
    }

    /// 404: the resource does not exist.
    pub fn not_found(error: impl Into<Error>) -> Self {
        Self::new(404, error)
    }

    /// 405 with `Allow`: the path exists, but only for the methods in `allowed`.
    pub fn wrong_method(allowed: impl fmt::Display) -> Self {
        let text = format_args!("this path takes only {allowed}");
        Self::new(405, Error::new(ErrorCode::MethodNotAllowed, text)).with_header("allow", allowed)
    }

    /// 409: the resource's current state does not allow the request, or a concurrent request came first.
    pub fn conflict(error: impl Into<Error>) -> Self {
        Self::new(409, error)
    }

    /// 429 with `Retry-After`: the client exceeded a rate limit and may retry after `seconds`.
    pub fn too_many(seconds: u32, error: impl Into<Error>) -> Self {
        Self::new(429, error).with_header("retry-after", seconds)
    }

    /// 500: a fault of the service or of its configuration.
    pub fn internal(error: impl Into<Error>) -> Self {
        Self::new(500, error)
    }

    /// 503 with `Retry-After`: a part of the service does not answer. A retry is safe.
    pub fn unavailable(error: impl Into<Error>) -> Self {
        Self::unavailable_for(RETRY_AFTER, error)
    }

    /// 503: a part of the service does not answer, and the client should retry after `seconds`.
    pub fn unavailable_for(seconds: u64, error: impl Into<Error>) -> Self {
        Self::new(503, error).with_header("retry-after", seconds)
    }

    /// Returns the HTTP status of the response.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Returns the message, for callers that report errors by other means than HTTP.
    #[must_use]
    pub fn text(&self) -> &str {
        match &self.body {
            ErrorBody::Api(error) => &error.error,
            ErrorBody::OAuth { description, .. } => description,
        }
    }

    /// Converts to an HTTP response.
    #[must_use]
    pub fn into_response(self) -> Response {
        let body = match self.body {
            ErrorBody::Api(error) => json!(error),
            ErrorBody::OAuth { code, description } => json!({ "error": code, "error_description": description }),
        };
        let response = private_json(body.to_string()).with_status(self.status);
        match self.header {
            Some((name, value)) => response.with_header(name, value),
            None => response,
        }
    }
}

/// A failure of the service, not a mistake of the client. The error's text is for the log and contains no secret.
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
    /// Returns a function that wraps an error in [`Fault::Inconsistent`]. `what` names the value that could not be
    /// constructed.
    pub fn inconsistent<E: fmt::Display>(what: &str) -> impl FnOnce(E) -> Self {
        move |error| Self::Inconsistent(format!("{what}: {error}"))
    }

    /// Returns the response for the client. It does not reveal the cause, which goes to the request's log line.
    #[must_use]
    pub fn answer(&self) -> ErrorAnswer {
        let unavailable = |text: &str| ErrorAnswer::unavailable(Error::new(ErrorCode::Unavailable, text));
        match self {
            Self::Database(_) => unavailable("the database does not answer; try again in a few seconds"),
            Self::Chain(ChainError::BudgetExhausted) => {
                let text = "this request needs too many look-ups on the chain: use fewer inputs";
                ErrorAnswer::bad_request(Error::new(ErrorCode::TooManyLookups, text))
            }
            Self::Chain(ChainError::ClientRateLimited) => {
                let text =
                    format_args!("too many questions to the chain's provider: try again in {PROVIDER_SECONDS} seconds");
                ErrorAnswer::too_many(PROVIDER_SECONDS, Error::new(ErrorCode::RateLimited, text))
            }
            Self::Chain(
                ChainError::Unavailable(_)
                | ChainError::TimeOver
                | ChainError::RateLimited
                | ChainError::Forbidden(_)
                | ChainError::QuotaUsedUp
                | ChainError::Malformed(_)
                | ChainError::TooLong
                | ChainError::FutureBlock { .. },
            ) => unavailable("the chain provider does not answer; try again in a few seconds"),
            Self::Contents(_) => unavailable("the store of contents does not answer; try again in a few seconds"),
            Self::Challenges(_) => unavailable("sign-in is not available now: try again in a few seconds"),
            // Names the setting, never its value.
            Self::Setting(error) => {
                let text = format_args!("the service is not configured: {error}");
                ErrorAnswer::internal(Error::new(ErrorCode::Misconfigured, text))
            }
            Self::Random(_) | Self::Runtime(_) | Self::Inconsistent(_) => {
                let text = "something went wrong on our side; try again later";
                ErrorAnswer::internal(Error::new(ErrorCode::Internal, text))
            }
        }
    }
}

impl From<BodyError> for ErrorAnswer {
    fn from(error: BodyError) -> Self {
        let (status, code) = match error {
            BodyError::TooLarge(_) => (413, ErrorCode::BodyTooLarge),
            BodyError::Broken => (400, ErrorCode::BodyNotReceived),
            BodyError::Slow => (408, ErrorCode::BodyNotReceived),
            BodyError::OutOfMemory => {
                return Self::too_many(RETRY_MEMORY_SECONDS, Error::new(ErrorCode::Busy, error));
            }
        };
        Self::new(status, Error::new(code, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_401_says_how_to_authenticate_and_a_429_when_to_retry() {
        let error = |text| Error::new(ErrorCode::Internal, text);
        assert_eq!(ErrorAnswer::unauthorized(error("x")).header, Some(("www-authenticate", "Bearer".to_owned())));
        assert_eq!(ErrorAnswer::too_many(60, error("x")).header, Some(("retry-after", "60".into())));
        assert_eq!(ErrorAnswer::unavailable(error("x")).header, Some(("retry-after", "5".into())));
        assert_eq!(ErrorAnswer::wrong_method("GET").header, Some(("allow", "GET".into())));
    }
}
