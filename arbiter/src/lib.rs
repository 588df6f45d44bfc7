//! The arbiter worker: `POST /disputes/resolve`, for whoever holds the token. The rules are in the crate `arbitration`.

mod settings;

use arbitration::{Arbiter, MAX_OUTPUT_BYTES, MalformedRequest, ResolveError, ResolveRequest};
use cardano::slots::SlotConfig;
use edge::{
    Usage,
    answer::{self, ErrorAnswer, Fault},
    bearer::Bearer,
    chain::Blockfrost,
    d1::D1,
    http::{BodyError, read_request},
    serve::{Request, Response},
    timer::Timer,
};
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};
use worker::{Env, console_error, console_log};

use crate::settings::ArbiterSettings;

/// Bytes of a body: an output of which JSON escapes every character (6 bytes for 1), and the rest of a request.
const MAX_BODY: usize = 6 * MAX_OUTPUT_BYTES + 4_096;

/// Why a request is not answered as it asked.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error("no such path")]
    NoSuchPath,
    #[error("this path takes only {0}")]
    WrongMethod(&'static str),
    #[error("a bearer token is needed: Authorization: Bearer ARBITER_TOKEN")]
    NoToken,
    #[error(transparent)]
    Body(#[from] BodyError),
    #[error(transparent)]
    Malformed(#[from] MalformedRequest),
    #[error(transparent)]
    Unresolved(#[from] ResolveError),
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl RequestError {
    /// What the caller is told.
    fn answer(&self) -> ErrorAnswer {
        let text = || self.to_string();
        match self {
            Self::NoSuchPath => ErrorAnswer::not_found(text()),
            Self::WrongMethod(allowed) => ErrorAnswer::wrong_method(allowed),
            Self::NoToken => ErrorAnswer::unauthorized(text()),
            Self::Body(_) | Self::Malformed(_) => ErrorAnswer::bad_request(text()),
            Self::Unresolved(error) if error.is_requests_fault() => ErrorAnswer::bad_request(text()),
            Self::Unresolved(error) => {
                console_error!("{error}");
                match error {
                    ResolveError::Database(error) => Fault::from(error.clone()).answer(),
                    ResolveError::Chain(_) => {
                        ErrorAnswer::unavailable("the chain provider does not answer; try again in a few seconds")
                    }
                    _ => ErrorAnswer::unavailable(text()),
                }
            }
            Self::Fault(fault) => fault.answer(),
        }
    }
}

impl From<worker::Error> for RequestError {
    fn from(error: worker::Error) -> Self {
        Self::Fault(error.into())
    }
}

/// What entry.js calls with each request, and what it read of it.
#[wasm_bindgen]
pub fn serve(request: web_sys::Request, method: String, url: String, env: Env) -> JsValue {
    let request = Request::new(request, method, url);
    edge::serve::serve(async move {
        let mut response = answer(request, &env).await.unwrap_or_else(|refusal| refusal.answer().into_response());
        response.headers_mut().put("cache-control", "no-store");
        response
    })
}

async fn answer(request: Request, env: &Env) -> Result<Response, RequestError> {
    // Unusable settings first: a misconfigured arbiter serves nothing at all.
    let settings = ArbiterSettings::of(env).map_err(Fault::from)?;
    match (request.path(), request.method()) {
        ("/disputes/resolve", "POST") => resolve(request, env, &settings).await,
        ("/disputes/resolve", "OPTIONS") => Ok(Response::empty()?.with_status(204)),
        ("/disputes/resolve", _) => Err(RequestError::WrongMethod("POST, OPTIONS")),
        ("/health", "GET") => health(&settings),
        ("/health", _) => Err(RequestError::WrongMethod("GET")),
        _ => Err(RequestError::NoSuchPath),
    }
}

/// That it is ready, and the wallet that pays the fees: to be funded by the operator.
fn health(settings: &ArbiterSettings) -> Result<Response, RequestError> {
    let wallet = settings.key.enterprise_address();
    let health = serde_json::json!({ "ok": true, "network": "preprod", "wallet": wallet });
    Ok(answer::json(health.to_string())?)
}

async fn resolve(mut request: Request, env: &Env, settings: &ArbiterSettings) -> Result<Response, RequestError> {
    if !settings.token.admits(&Bearer::of(&request)?) {
        return Err(RequestError::NoToken);
    }
    let body = read_request(&mut request, MAX_BODY).await?;
    let dispute = ResolveRequest::parse(&body)?;
    drop(body);

    let usage = Usage::default();
    let arbiter = Arbiter {
        database: &D1::new(env.d1("DB")?, usage.clone()),
        chain: &Blockfrost::new(&settings.blockfrost_url, settings.blockfrost_project.clone(), usage)
            .leading(settings.lead),
        sleep: &Timer::UNBOUNDED,
        deployment: &settings.deployment,
        key: &settings.key,
        slots: &SlotConfig::PREPROD,
        now: edge::now_ms(),
    };
    let resolution = arbiter.resolve(&dispute).await?;
    let json = serde_json::to_string(&resolution).map_err(|error| Fault::Inconsistent(error.to_string()))?;
    console_log!("{}: {json}", dispute.escrow);
    Ok(answer::json(json)?)
}
