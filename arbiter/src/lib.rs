//! The arbiter worker: serves `POST /disputes/resolve` to clients that have its token. The crate `arbitration` decides.

mod settings;

use api_types::ErrorCode;
use arbitration::{Arbiter, MAX_OUTPUT_BYTES, ResolveError};
use edge::{
    Usage,
    answer::{ErrorAnswer, Fault},
    bearer::Bearer,
    chain::Blockfrost,
    d1::D1,
    http::{BodyError, read_request},
    log::Line,
    serve::{REQUEST_ID, Request, Response},
    timer::Timer,
};
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};
use worker::Env;

use crate::settings::ArbiterSettings;

/// Maximum size of a request's body in bytes. JSON may escape each byte of the delivered text as six bytes, and the
/// other fields take at most 4 KiB.
const MAX_BODY: usize = 6 * MAX_OUTPUT_BYTES + 4_096;

/// Maximum duration of a request in ms, shorter than the minute for which the watcher waits for the response.
const MAX_MS: u64 = 55_000;
/// Maximum time in ms that one request may spend on reading provider responses whose length strangers can determine.
const READING_MS: u64 = 45_000;

/// Reason why a request is rejected.
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
    Malformed(#[from] api_types::Error),
    #[error(transparent)]
    Unresolved(#[from] ResolveError),
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl RequestError {
    /// Returns the error response for the client.
    fn answer(&self) -> ErrorAnswer {
        let error = |code| api_types::Error::new(code, self);
        match self {
            Self::NoSuchPath => ErrorAnswer::not_found(error(ErrorCode::UnknownPath)),
            Self::WrongMethod(allowed) => ErrorAnswer::wrong_method(allowed),
            Self::NoToken => ErrorAnswer::unauthorized(error(ErrorCode::InvalidToken)),
            Self::Body(_) => ErrorAnswer::bad_request(error(ErrorCode::BodyNotReceived)),
            Self::Malformed(error) => ErrorAnswer::bad_request(error.clone()),
            Self::Unresolved(unresolved) if unresolved.is_requests_fault() => {
                ErrorAnswer::bad_request(api_types::Error {
                    field: Some("ref".into()),
                    ..error(ErrorCode::InvalidValue)
                })
            }
            Self::Unresolved(ResolveError::Database(error)) => Fault::from(error.clone()).answer(),
            Self::Unresolved(ResolveError::Chain(_)) => {
                let text = "the chain provider does not answer; try again in a few seconds";
                ErrorAnswer::unavailable(api_types::Error::new(ErrorCode::Unavailable, text))
            }
            Self::Unresolved(_) => ErrorAnswer::unavailable(error(ErrorCode::Unavailable)),
            Self::Fault(fault) => fault.answer(),
        }
    }
}

impl From<worker::Error> for RequestError {
    fn from(error: worker::Error) -> Self {
        Self::Fault(error.into())
    }
}

/// Serves a request. Called by entry.js.
#[wasm_bindgen]
pub fn serve(request: web_sys::Request, method: String, url: String, env: Env) -> JsValue {
    let request = Request::new(request, method, url);
    let answer = async move {
        let now = edge::now_ms();
        let usage = Usage::default();
        let line = Line::begin("dispute", now, usage.clone());
        let response =
            self::answer(request, &env, &RequestContext { now, usage, line: &line }).await.unwrap_or_else(|refusal| {
                let told = refusal.answer();
                if told.status() >= 500 {
                    line.cause(&refusal);
                } else {
                    line.note("refused", told.text());
                }
                told.into_response()
            });
        line.status(response.status_code());
        response.with_header("cache-control", "no-store").with_header(REQUEST_ID, line.id())
    };
    edge::serve::serve(answer, || Ok(()))
}

/// Context of a request.
struct RequestContext<'a> {
    /// Time at which the request arrived, POSIX ms.
    now: u64,
    usage: Usage,
    line: &'a Line,
}

async fn answer(request: Request, env: &Env, context: &RequestContext<'_>) -> Result<Response, RequestError> {
    // Settings first: a misconfigured arbiter must not serve anything.
    let settings = ArbiterSettings::of(env).map_err(Fault::from)?;
    match (request.path(), request.method()) {
        ("/disputes/resolve", "POST") => resolve(request, env, &settings, context).await,
        ("/disputes/resolve", "OPTIONS") => Ok(Response::empty(204)),
        ("/disputes/resolve", _) => Err(RequestError::WrongMethod("POST, OPTIONS")),
        ("/health", "GET") => health(&settings),
        ("/health", _) => Err(RequestError::WrongMethod("GET")),
        _ => Err(RequestError::NoSuchPath),
    }
}

/// Builds the response of the health check. It contains the address of the arbiter's wallet, which the operator must
/// fund, because the arbiter pays the fees of its transactions.
fn health(settings: &ArbiterSettings) -> Result<Response, RequestError> {
    let wallet = settings.key.enterprise_address();
    let health = serde_json::json!({ "ok": true, "network": "preprod", "wallet": wallet });
    Ok(Response::json(health.to_string()))
}

async fn resolve(
    request: Request,
    env: &Env,
    settings: &ArbiterSettings,
    context: &RequestContext<'_>,
) -> Result<Response, RequestError> {
    if !settings.token.admits(&Bearer::of(&request)?) {
        return Err(RequestError::NoToken);
    }
    let body = read_request(&request, MAX_BODY).await?;
    let dispute = arbitration::parse(&body)?;
    drop(body);

    context.line.note("escrow", &dispute.escrow.to_string());
    let until = context.now.saturating_add(MAX_MS);
    let project = settings.blockfrost_project.clone();
    let arbiter = Arbiter {
        database: &D1::new(env, "DB", context.usage.clone()),
        chain: &Blockfrost::new(&settings.blockfrost_url, project, context.usage.clone(), settings.lead, until)
            .with_long_answer_time(READING_MS),
        sleep: &Timer::until(until),
        deployment: &settings.deployment,
        key: &settings.key,
        slots: &api_types::SLOTS,
        now: context.now,
    };
    let resolution = arbiter.resolve(&dispute).await?;
    let json = serde_json::to_string(&resolution).map_err(|error| Fault::Inconsistent(error.to_string()))?;
    context.line.note_fields(&serde_json::json!({ "resolution": resolution }));
    Ok(Response::json(json))
}
