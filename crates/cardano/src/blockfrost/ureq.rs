//! HTTP for native programs.

use std::time::Duration;

use super::client::{Http, Request, Response};

/// Timeout of one request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of an answer, in bytes.
const MAX_ANSWER: u64 = 8 << 20;

/// An HTTP client that uses `ureq`. A request blocks the calling thread until the answer has arrived, so an
/// asynchronous server must send it from a thread for blocking work.
#[derive(Clone, Debug)]
pub struct Ureq(ureq::Agent);

impl Default for Ureq {
    fn default() -> Self {
        let config = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).http_status_as_error(false);
        Self(config.build().into())
    }
}

impl Ureq {
    /// Sends a request and returns the answer, whatever its status.
    ///
    /// # Errors
    /// Returns the reason why there is no answer.
    pub fn call(&self, request: Request<'_>) -> Result<Response, String> {
        let Request { url, project_id, body } = request;
        let answer = match body {
            None => self.0.get(url).header("project_id", project_id).call(),
            Some((kind, body)) => {
                self.0.post(url).header("project_id", project_id).header("content-type", kind).send(body)
            }
        };
        let mut answer = answer.map_err(|error| error.to_string())?;
        let body = answer.body_mut().with_config().limit(MAX_ANSWER).read_to_vec();
        Ok(Response { status: answer.status().as_u16(), body: body.map_err(|error| error.to_string())? })
    }
}

impl Http for Ureq {
    async fn send(&self, request: Request<'_>) -> Result<Response, String> {
        self.call(request)
    }
}
