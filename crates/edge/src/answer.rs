//! Answers that the workers share: finished JSON texts, and errors as `{"error": "..."}`.

use std::borrow::Cow;

use sql::DatabaseError;

use cardano::chain::ChainError;
use market::challenge::ChallengesError;

use crate::{
    http::{BodyError, RETRY_MEMORY_SECONDS},
    serve::Response,
    settings::SettingError,
};

/// Seconds after which a client may try again when a part of the service did not answer.
const RETRY_AFTER: u64 = 5;

/// Seconds in which questions to the chain's provider are counted.
pub const PROVIDER_SECONDS: u32 = 10;

/// A JSON text that no cache may keep.
#[must_use]
pub fn private_json(text: String) -> Response {
    Response::json(text).with_header("cache-control", "no-store")
}

/// Plain text that no shared cache may keep.
#[must_use]
pub fn private_text(text: String) -> Response {
    Response::text(text).with_header("cache-control", "private, no-store")
}

/// The answer to a refused request: a status, a stable text that says what to do, and the header that the status calls
/// for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorAnswer {
    status: u16,
    text: Cow<'static, str>,
    header: Option<(&'static str, Cow<'static, str>)>,
}

impl ErrorAnswer {
    const fn new(status: u16, text: Cow<'static, str>) -> Self {
        Self { status, text, header: None }
    }

    fn with(status: u16, text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(status, text.into())
    }

    /// 400: the request is not what it should be.
    pub fn bad_request(text: impl Into<Cow<'static, str>>) -> Self {
        Self::with(400, text)
    }

    /// 401 with `WWW-Authenticate`: the client is not known.
    pub fn unauthorized(text: impl Into<Cow<'static, str>>) -> Self {
        Self { header: Some(("www-authenticate", "Bearer".into())), ..Self::with(401, text) }
    }

    /// 403: known who asks, but not allowed.
    pub fn forbidden(text: impl Into<Cow<'static, str>>) -> Self {
        Self::with(403, text)
    }

    /// 404.
    pub fn not_found(text: impl Into<Cow<'static, str>>) -> Self {
        Self::with(404, text)
    }

    /// 405 with `Allow`.
    #[must_use]
    pub fn wrong_method(allowed: &'static str) -> Self {
        Self { header: Some(("allow", allowed.into())), ..Self::with(405, format!("this path takes only {allowed}")) }
    }

    /// 409: another request has what this one would take.
    pub fn conflict(text: impl Into<Cow<'static, str>>) -> Self {
        Self::with(409, text)
    }

    /// 410: it was there, and is not to be had any more.
    pub fn gone(text: impl Into<Cow<'static, str>>) -> Self {
        Self::with(410, text)
    }

    /// 413: more bytes than are read.
    pub fn too_large(text: impl Into<Cow<'static, str>>) -> Self {
        Self::with(413, text)
    }

    /// 429 with `Retry-After`: the text says of what there was too much.
    pub fn too_many(seconds: u32, text: impl Into<Cow<'static, str>>) -> Self {
        Self { header: Some(("retry-after", seconds.to_string().into())), ..Self::with(429, text) }
    }

    /// 500: our own mistake, or the operator's.
    pub fn internal(text: impl Into<Cow<'static, str>>) -> Self {
        Self::with(500, text)
    }

    /// 503 with `Retry-After`: something that we need does not answer. Trying again is safe.
    pub fn unavailable(text: impl Into<Cow<'static, str>>) -> Self {
        Self::unavailable_for(RETRY_AFTER, text)
    }

    /// 503 with the seconds after which to try again.
    pub fn unavailable_for(seconds: u64, text: impl Into<Cow<'static, str>>) -> Self {
        Self { header: Some(("retry-after", seconds.to_string().into())), ..Self::with(503, text) }
    }

    /// The HTTP status.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// The text, for those who do not answer over HTTP.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The response.
    #[must_use]
    pub fn into_response(self) -> Response {
        let response = private_json(serde_json::json!({ "error": self.text }).to_string()).with_status(self.status);
        match self.header {
            Some((name, value)) => response.with_header(name, value),
            None => response,
        }
    }
}

/// A part of the service failed: never the client's fault. The text is for our log; it holds no secret.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The database does not answer.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The chain provider does not answer.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The store of contents does not answer.
    #[error(transparent)]
    Contents(#[from] market::contents::ContentsError),
    /// The store of challenges does not answer.
    #[error(transparent)]
    Challenges(#[from] ChallengesError),
    /// The operator has to set something.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// No randomness.
    #[error("no randomness: {0}")]
    Random(#[from] getrandom::Error),
    /// The runtime refused what it should not.
    #[error("runtime: {0}")]
    Runtime(#[from] worker::Error),
    /// What is stored or made is not what it should be.
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
    /// What the client is told; the reason is for the request's line in the log.
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

impl From<&BodyError> for ErrorAnswer {
    fn from(error: &BodyError) -> Self {
        match error {
            BodyError::TooLarge(_) => Self::too_large(error.to_string()),
            BodyError::Broken => Self::bad_request(error.to_string()),
            BodyError::Slow => Self::with(408, error.to_string()),
            BodyError::OutOfMemory => Self::too_many(RETRY_MEMORY_SECONDS, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_401_says_how_to_authenticate_and_a_429_when_to_retry() {
        assert_eq!(ErrorAnswer::unauthorized("x").header, Some(("www-authenticate", "Bearer".into())));
        assert_eq!(ErrorAnswer::too_many(60, "x").header, Some(("retry-after", "60".into())));
        assert_eq!(ErrorAnswer::unavailable("x").header, Some(("retry-after", "5".into())));
        assert_eq!(ErrorAnswer::wrong_method("GET").header, Some(("allow", "GET".into())));
    }
}
