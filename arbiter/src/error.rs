//! The boundary's map from errors to a status and a text.

use std::fmt::Display;

use edge::settings::SettingError;
use worker::{Response, Result, console_error};

/// Seconds after which the watcher may ask again.
const RETRY_AFTER: u32 = 5;

/// What a caller is told: `{"error": "..."}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    status: u16,
    message: String,
    header: Option<(&'static str, String)>,
}

impl Refusal {
    fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), header: None }
    }

    /// 400: the request is not what it should be.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    /// 401.
    pub fn unauthorized() -> Self {
        let header = Some(("www-authenticate", "Bearer".to_owned()));
        Self { header, ..Self::new(401, "a bearer token is needed: Authorization: Bearer ARBITER_TOKEN") }
    }

    /// 404.
    pub fn not_found() -> Self {
        Self::new(404, "no such path")
    }

    /// 405 with `Allow`.
    pub fn wrong_method(allowed: &'static str) -> Self {
        let header = Some(("allow", allowed.to_owned()));
        Self { header, ..Self::new(405, format!("this path takes only {allowed}")) }
    }

    /// 503: asking again is safe.
    pub fn later(message: impl Into<String>) -> Self {
        Self { header: Some(("retry-after", RETRY_AFTER.to_string())), ..Self::new(503, message) }
    }

    /// 503, with the reason in the log.
    pub fn unavailable(what: &str, error: impl Display) -> Self {
        console_error!("{what}: {error}");
        Self::later(format!("{what} is not there; try again in a few seconds"))
    }

    /// 500: the operator has to set something. Names it, never its value.
    pub fn misconfigured(setting: &SettingError) -> Self {
        console_error!("{setting}");
        Self::new(500, format!("the arbiter is not configured: {setting}"))
    }

    /// The answer.
    pub fn into_response(self) -> Result<Response> {
        let mut response = Response::from_json(&serde_json::json!({ "error": self.message }))?.with_status(self.status);
        if let Some((name, value)) = self.header {
            response.headers_mut().set(name, &value)?;
        }
        Ok(response)
    }
}

impl From<worker::Error> for Refusal {
    fn from(error: worker::Error) -> Self {
        Self::unavailable("the runtime", error)
    }
}
