//! The boundary's one map from rich errors to a status and a stable text that says what to do.

use std::fmt::Display;

use cardano::chain::ChainError;
use edge::{http::BodyError, settings::SettingError};
use market::{checkout::Unavailable, contents::ContentsError};
use sql::DatabaseError;
use worker::{Response, Result, console_error};

/// What a client is told when something goes wrong: `{"error": "..."}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    status: u16,
    message: String,
    header: Option<(&'static str, String)>,
}

/// Seconds after which a client may try again when something of ours did not answer.
const RETRY_AFTER: u32 = 5;

impl ApiError {
    fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), header: None }
    }

    /// 400: the request is not what it should be; the text says how.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    /// 401: who asks is not known; the text says how to show it.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(401, message)
    }

    /// 403: known who asks, but not allowed.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, message)
    }

    /// 404.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(404, message)
    }

    /// 405 with `Allow`.
    pub fn wrong_method(allowed: &'static str) -> Self {
        Self {
            header: Some(("allow", allowed.to_owned())),
            ..Self::new(405, format!("this path takes only {allowed}"))
        }
    }

    /// 503: something that we need does not answer; it is not the client's fault and trying again is safe.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self { header: Some(("retry-after", RETRY_AFTER.to_string())), ..Self::new(503, message) }
    }

    /// 409: another request has what this one would take.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(409, message)
    }

    /// 410: it was there, and is not to be had any more.
    pub fn gone(message: impl Into<String>) -> Self {
        Self::new(410, message)
    }

    /// 429: asked for too often.
    pub fn too_many(seconds: u32) -> Self {
        Self {
            header: Some(("retry-after", seconds.to_string())),
            ..Self::new(429, format!("too many requests: try again in {seconds} seconds"))
        }
    }

    /// 503, with the reason in our log.
    pub fn unavailable_because(what: &str, error: impl Display) -> Self {
        console_error!("{what}: {error}");
        Self::unavailable(format!("{what} cannot be reached; try again in a few seconds"))
    }

    /// 500: the operator has to set something. Names it, never its value.
    pub fn misconfigured(setting: &SettingError, error: impl Display) -> Self {
        console_error!("{setting}: {error}");
        Self::new(500, format!("the service is not configured: {setting}"))
    }

    /// 500: our own mistake. The details go to the log; they never hold secrets.
    pub fn internal(what: &str, error: impl Display) -> Self {
        console_error!("{what}: {error}");
        Self::new(500, "something went wrong on our side; try again later")
    }

    /// The answer.
    pub fn into_response(self) -> Result<Response> {
        let mut response = Response::from_json(&serde_json::json!({ "error": self.message }))?.with_status(self.status);
        response.headers_mut().set("cache-control", "no-store")?;
        if let Some((name, value)) = self.header {
            response.headers_mut().set(name, &value)?;
        }
        Ok(response)
    }
}

impl From<DatabaseError> for ApiError {
    fn from(error: DatabaseError) -> Self {
        console_error!("{error}");
        Self::unavailable("the database does not answer; try again in a few seconds")
    }
}

impl From<ChainError> for ApiError {
    fn from(error: ChainError) -> Self {
        console_error!("{error}");
        match error {
            ChainError::BudgetExhausted => Self::bad_request("this request needs too many look-ups on the chain"),
            ChainError::Unavailable(_) | ChainError::RateLimited | ChainError::Malformed(_) => {
                Self::unavailable("the chain provider does not answer; try again in a few seconds")
            }
        }
    }
}

impl From<Unavailable> for ApiError {
    fn from(error: Unavailable) -> Self {
        match error {
            Unavailable::Database(error) | Unavailable::Contents(ContentsError::Database(error)) => error.into(),
            Unavailable::Chain(error) => error.into(),
            Unavailable::Contents(ContentsError::Store(error)) => {
                Self::unavailable_because("the store of contents", error)
            }
        }
    }
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge(limit) => Self::new(413, format!("the body has more than {limit} bytes")),
            BodyError::Broken => Self::bad_request("the body could not be read"),
        }
    }
}

impl From<worker::Error> for ApiError {
    fn from(error: worker::Error) -> Self {
        Self::internal("runtime", error)
    }
}
