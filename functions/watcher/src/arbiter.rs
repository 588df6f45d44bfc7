//! Asks the arbiter to resolve disputes, through a service binding.

use std::time::Duration;

use api_types::arbiter::{ResolveRequest, ResolveResult};
use edge::{
    Usage,
    http::{self, CallError},
};
use market::watch::ArbiterClient;
use serde_json::json;
use worker::{Env, Headers, Method, Request, RequestInit};

/// Maximum size of the arbiter's answer in bytes.
const MAX_ANSWER: usize = 64 << 10;
/// Timeout of a request to the arbiter. Within this time, the arbiter traces the escrow back to its lock and submits
/// the award.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Reason why the arbiter gave no answer.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error("ARBITER_TOKEN is not set")]
    NoToken,
    #[error("no calls are left")]
    NoCallsLeft,
    #[error("the binding ARBITER: {0}")]
    Binding(#[from] worker::Error),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("status {0}")]
    Status(u16),
}

/// The arbiter worker that is bound to this worker, if configured.
pub struct Bound<'a> {
    pub env: &'a Env,
    pub token: Option<&'a str>,
    pub usage: &'a Usage,
    /// Time after which no more disputes are sent to the arbiter, POSIX ms.
    pub until: u64,
}

impl Bound<'_> {
    async fn ask(&self, dispute: &ResolveRequest) -> Result<ResolveResult, AskError> {
        let arbiter = self.env.service("ARBITER")?;
        let request = request(dispute, self.token.ok_or(AskError::NoToken)?)?;
        if !self.usage.call() {
            return Err(AskError::NoCallsLeft);
        }
        let answer = http::ask(&arbiter, request, TIMEOUT, MAX_ANSWER).await?;
        let said = serde_json::from_slice::<ResolveResult>(&answer.body).ok().filter(|_| answer.status == 200);
        said.ok_or(AskError::Status(answer.status))
    }
}

impl ArbiterClient for Bound<'_> {
    fn has_time(&self) -> bool {
        edge::now_ms() < self.until
    }

    async fn resolve(&self, dispute: &ResolveRequest) -> Result<ResolveResult, String> {
        self.ask(dispute).await.map_err(|error| error.to_string())
    }
}

fn request(dispute: &ResolveRequest, token: &str) -> worker::Result<Request> {
    let body = json!(dispute);
    let headers = Headers::new();
    headers.set("content-type", "application/json")?;
    headers.set("authorization", &format!("Bearer {token}"))?;
    let mut init = RequestInit::new();
    init.with_method(Method::Post).with_headers(headers).with_body(Some(body.to_string().into()));
    Request::new_with_init("https://arbiter/disputes/resolve", &init)
}
