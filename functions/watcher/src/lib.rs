//! The watcher worker: every minute one tick of [`market::watch`].

mod arbiter;
mod keys;

use edge::{
    MAX_OUTSIDE_CALLS, Usage,
    chain::Blockfrost,
    d1::D1,
    settings::{self, SettingError},
};
use keys::PlatformKeys;
use market::watch::{Report, Watch};
use worker::{
    Context, Env, Method, Request, Response, ScheduleContext, ScheduledEvent, console_error, console_log, event,
};

/// The paid plan's 1,000 subrequests, with room for D1.
const MOST_CALLS_PER_TICK: u32 = 900;

/// One tick. What fails is in the log, and done by a later tick.
#[event(scheduled)]
async fn scheduled(_event: ScheduledEvent, env: Env, _context: ScheduleContext) {
    let usage = match calls_per_tick(&env) {
        Ok(calls) => Usage::new(calls, false),
        Err(error) => return console_error!("tick: {error}"),
    };
    match tick(&env, &usage).await {
        Ok(report) => console_log!("tick {}", told(&report, &usage)),
        Err(error) => console_error!("tick: {error} ({})", usage.server_timing()),
    }
}

/// The same on request, in development only: the deployed worker has no address, and this setting is not made there.
/// With `?reads` the answer also says which statements were run and how many rows each read.
#[event(fetch)]
async fn fetch(request: Request, env: Env, _context: Context) -> worker::Result<Response> {
    if settings::optional(&env, "DEV").is_none() {
        return Response::error("not found", 404);
    }
    if (request.method(), request.path().as_str()) != (Method::Post, "/tick") {
        return Response::ok("POST /tick");
    }
    let calls = match calls_per_tick(&env) {
        Ok(calls) => calls,
        Err(error) => return Response::error(error.to_string(), 500),
    };
    let usage = Usage::new(calls, request.url()?.query() == Some("reads"));
    match tick(&env, &usage).await {
        Ok(report) => Response::ok(told(&report, &usage)),
        Err(error) => {
            console_error!("tick: {error} ({})", usage.server_timing());
            Response::error(error, 500)
        }
    }
}

/// Outside calls that a tick may make: as many as Workers' free plan allows, unless the operator has a larger one.
fn calls_per_tick(env: &Env) -> Result<u32, SettingError> {
    const NAME: &str = "CALLS_PER_TICK";
    let Some(text) = settings::optional(env, NAME) else { return Ok(MAX_OUTSIDE_CALLS) };
    let calls = text.parse().ok().filter(|calls| (MAX_OUTSIDE_CALLS..=MOST_CALLS_PER_TICK).contains(calls));
    calls.ok_or(SettingError { name: NAME.into(), problem: "must be a whole number from 40 to 900" })
}

/// For the log: what a tick did and what it cost.
fn told(report: &Report, usage: &Usage) -> String {
    let mut told = serde_json::json!({
        "read": report.read, "steps": report.steps, "confirmed": report.confirmed, "rolledBack": report.rolled_back,
        "acted": report.acted, "notes": report.notes, "batches": usage.batches(), "calls": usage.calls(),
    });
    if let (Some(reads), Some(told)) = (usage.reads(), told.as_object_mut()) {
        told.insert("reads".into(), serde_json::json!(reads));
    }
    told.to_string()
}

async fn tick(env: &Env, usage: &Usage) -> Result<Report, String> {
    let text = |error: SettingError| error.to_string();
    let base = settings::required(env, "BLOCKFROST_URL").map_err(text)?;
    let chain = Blockfrost::new(&base, settings::optional(env, "BLOCKFROST_PROJECT_ID"), usage.clone());
    let database = D1::new(env.d1("DB").map_err(|error| error.to_string())?, usage.clone());
    let deployment = settings::deployment(env).map_err(text)?;
    let watch = Watch {
        database: &database,
        chain: &chain,
        deployment: deployment.as_ref(),
        sells: settings::optional(env, "SELLER_AGENT").as_deref() != Some("off"),
        now: edge::now_ms(),
        calls_left: &|| usage.calls_left(),
    };
    let keys = PlatformKeys::configured(env).map_err(text)?;
    watch.tick(&keys, &arbiter::Bound::configured(env, usage)).await.map_err(|error| error.to_string())
}
