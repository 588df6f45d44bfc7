//! The watcher worker, which runs one tick of [`market::watch`] per minute.

mod arbiter;
mod keys;
mod settings;

use api_types::{Error, ErrorCode};
use edge::{
    Usage,
    answer::{ErrorAnswer, Fault},
    chain::Blockfrost,
    contents::ContentStore,
    d1::D1,
    log::Line,
    serve::{Request, Response},
};
use keys::PlatformKeys;
use market::network::UNKNOWN;
use market::status::{TickOutcome, note_tick};
use market::watch::{Report, Watch};
use settings::WatcherSettings;
use sql::Database;
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};
use worker::{Env, ScheduleContext, ScheduledEvent, event};

/// Maximum duration of a tick in ms. The next one starts a minute after it began, and its transactions are valid for
/// three minutes.
const TICK_MS: u64 = 110_000;
/// Time in ms during which it asks the arbiter, whose last answer may take another minute.
const ASKING_MS: u64 = 40_000;
/// Time in ms for reading answers whose length strangers determine. With a second for each further call, this ends
/// before the last question to the arbiter.
const READING_MS: u64 = 20_000;

/// Runs a tick. Failures are logged, and the next tick retries.
#[event(scheduled)]
async fn scheduled(_event: ScheduledEvent, env: Env, _context: ScheduleContext) {
    // The log has the result.
    let _ = tick(&env, false).await;
}

/// Serves `POST /tick`, which runs a tick, if a development setting allows it. With `?reads`, the answer lists the
/// statements and the rows that each has read.
#[wasm_bindgen]
pub fn serve(request: web_sys::Request, method: String, url: String, env: Env) -> JsValue {
    let request = Request::new(request, method, url);
    edge::serve::serve(
        async move { answer(&request, &env).await.unwrap_or_else(|fault| fault.answer().into_response()) },
        || Ok(()),
    )
}

async fn answer(request: &Request, env: &Env) -> Result<Response, Fault> {
    if !WatcherSettings::of(env)?.answers {
        return Ok(ErrorAnswer::not_found(Error::new(ErrorCode::UnknownPath, "no such path")).into_response());
    }
    if (request.method(), request.path()) != ("POST", "/tick") {
        return Ok(Response::text("POST /tick"));
    }
    Ok(Response::json(tick(env, request.url()?.query() == Some("reads")).await?))
}

/// Renders a tick's report with its cost.
fn told(report: &Report, usage: &Usage) -> String {
    let mut told = serde_json::json!(report);
    if let Some(told) = told.as_object_mut() {
        let costs: serde_json::Map<_, _> =
            serde_json::from_str(&format!("{{{}}}", usage.members())).unwrap_or_default();
        told.extend(costs);
        told.extend(usage.reads().map(|reads| ("reads".into(), serde_json::json!(reads))));
    }
    told.to_string()
}

/// Runs a tick and writes its log line.
async fn tick(env: &Env, reads: bool) -> Result<String, Fault> {
    let now = edge::now_ms();
    let settings = WatcherSettings::of(env);
    let usage = Usage::new(settings.as_ref().map_or(0, |settings| settings.calls_per_tick), reads);
    let line = Line::begin("tick", now, usage.clone());
    let ticked = match settings {
        Ok(settings) => run(env, &settings, &usage, &line, now).await,
        Err(error) => Err(error.into()),
    };
    note(env, &usage, &ticked, now).await;
    match ticked {
        Ok(report) => {
            line.note_object(&serde_json::json!(report).to_string());
            if !report.alarms.is_empty() {
                line.alarm();
            }
            Ok(self::told(&report, &usage))
        }
        Err(fault) => {
            line.cause(&fault);
            Err(fault)
        }
    }
}

/// Stores the tick's result for the operator's status.
async fn note(env: &Env, usage: &Usage, ticked: &Result<Report, Fault>, now: u64) {
    let told = match ticked {
        Ok(report) => TickOutcome { failed: None, alarms: report.alarms.clone(), notes: report.notes.clone() },
        Err(fault) => TickOutcome { failed: Some(fault.to_string()), ..TickOutcome::default() },
    };
    let noted = D1::new(env, "DB", usage.clone()).run(note_tick(told, usage.calls(), now)).await;
    if let Err(error) = noted {
        edge::log::fault(&error);
    }
}

async fn run(env: &Env, settings: &WatcherSettings, usage: &Usage, line: &Line, now: u64) -> Result<Report, Fault> {
    let until = now.saturating_add(TICK_MS);
    let chain = Blockfrost::new(&settings.blockfrost_url, settings.blockfrost_project.clone(), usage.clone())
        .until(until)
        .lasting(READING_MS)
        .leading(settings.lead);
    let database = D1::new(env, "DB", usage.clone());
    let contents = ContentStore::bound(env, D1::new(env, "DB", usage.clone()), usage.clone(), UNKNOWN.to_owned());
    let keys = PlatformKeys::new(settings::keys(env)?)?;
    let arbiter =
        arbiter::Bound { env, token: settings.arbiter_token.as_deref(), usage, until: now.saturating_add(ASKING_MS) };
    let watch = Watch {
        database: &database,
        chain: &chain,
        contents: &contents,
        keys: &keys,
        arbiter: &arbiter,
        deployment: settings.deployment.as_ref(),
        sells: settings.sells,
        lead: settings.lead,
        now,
        // None after its time is over.
        calls_left: &|| if edge::now_ms() < until { usage.calls_left() } else { 0 },
    };
    let ticked = watch.tick().await;
    let alarm = market::headroom::alarm(edge::d1::size(), settings.database_bytes);
    match ticked {
        Ok(mut report) => {
            report.alarms.extend(alarm);
            Ok(report)
        }
        Err(error) => {
            // If the database is full, the alarm can only be logged.
            if let Some(alarm) = alarm {
                line.note("alarms", &alarm);
            }
            Err(error.into())
        }
    }
}
