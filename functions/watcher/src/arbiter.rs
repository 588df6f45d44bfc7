//! The arbiter, over its service binding.

use edge::{Usage, settings};
use market::watch::{Arbiter, Dispute};
use serde_json::{Value, json};
use worker::{Env, Headers, Method, Request, RequestInit};

/// Bytes of an answer that are read.
const MAX_ANSWER: usize = 64 << 10;

/// The bound arbiter, if there is one.
pub struct Bound<'a> {
    env: &'a Env,
    usage: &'a Usage,
}

impl<'a> Bound<'a> {
    pub const fn configured(env: &'a Env, usage: &'a Usage) -> Self {
        Self { env, usage }
    }
}

impl Arbiter for Bound<'_> {
    async fn resolve(&self, dispute: &Dispute<'_>) -> Result<String, String> {
        let arbiter = self.env.service("ARBITER").map_err(|error| error.to_string())?;
        let token = settings::required(self.env, "ARBITER_TOKEN").map_err(|error| error.to_string())?;
        let body = json!({
            "ref": dispute.escrow.to_string(),
            "listing": { "id": dispute.listing_id, "contentHash": dispute.content_hash.to_string() },
            "output": dispute.output,
        });
        let request = request(&body, &token).map_err(|error| error.to_string())?;
        if !self.usage.call() {
            return Err("no calls are left".to_owned());
        }
        let mut response = arbiter.fetch_request(request).await.map_err(|error| error.to_string())?;
        let answer = response.bytes().await.map_err(|error| error.to_string())?;
        let answer = answer.get(..MAX_ANSWER.min(answer.len())).unwrap_or_default();
        let status = response.status_code();
        let json: Value = serde_json::from_slice(answer).unwrap_or_default();
        match json.get("status").and_then(Value::as_str) {
            Some(said) if status == 200 => Ok(said.to_owned()),
            _ => Err(format!("status {status}")),
        }
    }
}

fn request(body: &Value, token: &str) -> worker::Result<Request> {
    let headers = Headers::new();
    headers.set("content-type", "application/json")?;
    headers.set("authorization", &format!("Bearer {token}"))?;
    let mut init = RequestInit::new();
    init.with_method(Method::Post).with_headers(headers).with_body(Some(body.to_string().into()));
    Request::new_with_init("https://arbiter/disputes/resolve", &init)
}
