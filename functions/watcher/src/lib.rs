//! The watcher worker: every minute one tick of [`market::watch`].

mod arbiter;
mod keys;
mod settings;

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

/// How long a tick asks and waits, in ms: the next one begins a minute after it, and what is built in it is valid for three.
const TICK_MS: u64 = 110_000;
/// How long it asks the arbiter, which may take a minute for its last answer.
const ASKING_MS: u64 = 40_000;
/// How long answers that others made long may be read. With a second for each further one that the calls reach, it is
/// less than the time until the arbiter is asked last.
const READING_MS: u64 = 20_000;

/// One tick. What fails is in the log, and done by a later tick.
#[event(scheduled)]
async fn scheduled(_event: ScheduledEvent, env: Env, _context: ScheduleContext) {
    // What it did, or why not, is in its line.
    let _ = tick(&env, false).await;
}

/// In development, where that setting is made, `POST /tick` runs a tick; with `?reads` the answer also says which statements
/// ran and how many rows each read.
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
        return Ok(ErrorAnswer::not_found("no such path").into_response());
    }
    if (request.method(), request.path()) != ("POST", "/tick") {
        return Ok(Response::text("POST /tick"));
    }
    Ok(Response::json(tick(env, request.url()?.query() == Some("reads")).await?))
}

/// What a tick did and what it cost.
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

/// A tick, and its line in the log.
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

/// Keeps what the tick said for the operator's status.
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
        // When its time is over there are none.
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
            // A full database may be why: nothing but its line tells.
            if let Some(alarm) = alarm {
                line.note("alarms", &alarm);
            }
            Err(error.into())
        }
    }
}
