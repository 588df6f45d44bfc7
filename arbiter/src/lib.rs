//! The arbiter worker: `POST /disputes/resolve`, for whoever holds the token. The rules are in the crate `arbitration`.

mod error;
mod settings;

use arbitration::{Arbiter, MAX_OUTPUT_BYTES, ResolveError, ResolveRequest};
use cardano::slots::{Millis, SlotConfig};
use edge::{Usage, chain::Blockfrost, d1::D1, http::read_request};
use outbox::Sleep;
use worker::{Context, Env, Method, Request, Response, Result, console_error, console_log, event};

use crate::{error::Refusal, settings::Settings};

/// Bytes of a body: an output of which JSON escapes every character (6 bytes for 1), and the rest of a request.
const MAX_BODY: usize = 6 * MAX_OUTPUT_BYTES + 4_096;

/// Waiting by the runtime's timer.
struct Timer;

impl Sleep for Timer {
    async fn sleep(&self, ms: Millis) {
        edge::sleep(std::time::Duration::from_millis(ms)).await;
    }
}

#[event(fetch)]
async fn fetch(request: Request, env: Env, _context: Context) -> Result<Response> {
    let mut response = match answer(request, &env).await {
        Ok(response) => response,
        Err(refusal) => refusal.into_response()?,
    };
    response.headers_mut().set("cache-control", "no-store")?;
    Ok(response)
}

async fn answer(request: Request, env: &Env) -> Result<Response, Refusal> {
    // Unusable settings first: a misconfigured arbiter serves nothing at all.
    let settings = Settings::read(env).map_err(|error| Refusal::misconfigured(&error))?;
    match (request.path().as_str(), request.method()) {
        ("/disputes/resolve", Method::Post) => resolve(request, env, &settings).await,
        ("/disputes/resolve", Method::Options) => Ok(Response::empty()?.with_status(204)),
        ("/disputes/resolve", _) => Err(Refusal::wrong_method("POST, OPTIONS")),
        ("/health", Method::Get) => health(&settings),
        ("/health", _) => Err(Refusal::wrong_method("GET")),
        _ => Err(Refusal::not_found()),
    }
}

/// That it is ready, and the wallet that pays the fees: to be funded by the operator.
fn health(settings: &Settings) -> Result<Response, Refusal> {
    let wallet = settings.key.enterprise_address();
    Ok(Response::from_json(&serde_json::json!({ "ok": true, "network": "preprod", "wallet": wallet }))?)
}

async fn resolve(mut request: Request, env: &Env, settings: &Settings) -> Result<Response, Refusal> {
    let authorization = request.headers().get("authorization")?;
    if !settings.token.admits(authorization.as_deref()) {
        return Err(Refusal::unauthorized());
    }
    let body = read_request(&mut request, MAX_BODY).await.map_err(|error| Refusal::malformed(error.to_string()))?;
    let dispute = ResolveRequest::parse(&body).map_err(|error| Refusal::malformed(error.to_string()))?;
    drop(body);

    let usage = Usage::default();
    let database = env.d1("DB").map_err(|error| Refusal::unavailable("the database", error))?;
    let arbiter = Arbiter {
        database: &D1::new(database, usage.clone()),
        chain: &Blockfrost::new(&settings.blockfrost_url, settings.blockfrost_project.clone(), usage),
        sleep: &Timer,
        deployment: &settings.deployment,
        key: &settings.key,
        slots: &SlotConfig::PREPROD,
        now: edge::now_ms(),
    };
    let resolution = arbiter.resolve(&dispute).await.map_err(|error| refused(&dispute, error))?;
    let json = serde_json::to_string(&resolution).map_err(|error| Refusal::unavailable("the answer", error))?;
    console_log!("{}: {json}", dispute.escrow);
    let mut response = Response::ok(json)?;
    response.headers_mut().set("content-type", "application/json")?;
    Ok(response)
}

fn refused(dispute: &ResolveRequest, error: ResolveError) -> Refusal {
    if error.is_requests_fault() {
        return Refusal::malformed(error.to_string());
    }
    console_error!("{}: {error}", dispute.escrow);
    match error {
        ResolveError::Database(_) => Refusal::later("the database does not answer; try again in a few seconds"),
        ResolveError::Chain(_) => Refusal::later("the chain provider does not answer; try again in a few seconds"),
        other => Refusal::later(other.to_string()),
    }
}
