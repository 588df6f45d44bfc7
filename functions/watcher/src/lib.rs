//! The watcher worker, which runs [`market::watch`] once per minute.

mod arbiter;
mod keys;
mod notify;
mod number;
mod settings;
mod webhooks;

use std::time::Duration;

use self::number::KvNumber;
use std::collections::BTreeMap;

use api_types::{Alarm, AlarmName, Error, ErrorCode, WalletBalance};
use cardano::chain::{Chain, ChainError};
use edge::{
    Usage,
    answer::{ErrorAnswer, Fault},
    chain::Blockfrost,
    contents::ContentStore,
    d1::D1,
    log::Line,
    metrics::DataPoint,
    serve::{Request, Response},
    usage::Costs,
};
use keys::PlatformKeys;
use market::{
    chain_state::ClockLead,
    status::{self, TickOutcome, note_tick},
    watch::{Report, Watch, number::begin},
};
use market::{network::UNKNOWN, watch::Keys as _};
use serde::Serialize;
use settings::WatcherSettings;
use sql::{Database, One};
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};
use worker::{Env, ScheduleContext, ScheduledEvent, event};

/// Maximum duration of one run of the watcher in ms. A run may overlap the next one, which starts a minute later.
const TICK_MS: u64 = 110_000;
/// Time in ms from the start of a run of the watcher during which disputes are sent to the arbiter. The last response
/// may take another minute.
const ASKING_MS: u64 = 40_000;
/// Maximum time in ms that one run of the watcher may spend on reading responses that strangers can make long.
/// Afterwards each such response has a timeout of one second, so that time remains to send disputes to the arbiter.
const READING_MS: u64 = 20_000;

/// Runs the watcher once. Failures are logged, and the next run retries.
#[event(scheduled)]
async fn scheduled(_event: ScheduledEvent, env: Env, _context: ScheduleContext) {
    // The result is logged already.
    let _ = tick(&env, false).await;
}

/// Serves `POST /tick`, which runs the watcher once, if a development setting allows it. With the parameter `reads`,
/// the response lists the SQL statements with the number of rows that each of them read.
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

/// The report of one run of the watcher, with its usage counters.
#[derive(Serialize)]
struct TickAnswer<'a> {
    #[serde(flatten)]
    report: &'a Report,
    #[serde(flatten)]
    costs: Costs,
    /// The number of rows that each SQL statement read, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    reads: Option<BTreeMap<String, u64>>,
}

/// Runs the watcher once and writes a log line. With `reads`, the report lists the number of rows that each SQL
/// statement read.
async fn tick(env: &Env, reads: bool) -> Result<String, Fault> {
    let now = edge::now_ms();
    let settings = WatcherSettings::of(env);
    let usage = Usage::new(settings.as_ref().map_or(0, |settings| settings.calls_per_tick), reads);
    let line = Line::begin("tick", now, usage.clone());
    let ticked = match &settings {
        Ok(settings) => run(env, settings, &usage, &line, now).await,
        Err(error) => Err(error.clone().into()),
    };
    conclude(env, &usage, &ticked, now).await;
    metrics(&ticked, &usage, now).write(env);
    if let Ok(settings) = &settings {
        send_events(env, settings, &usage, &line).await;
    }
    match ticked {
        Ok(Ticked { report, .. }) => {
            line.note_fields(&report);
            if !report.alarms.is_empty() {
                line.alarm();
            }
            let answer = TickAnswer { report: &report, costs: usage.costs(), reads: usage.reads() };
            Ok(serde_json::json!(answer).to_string())
        }
        Err(fault) => {
            line.cause(&fault);
            Err(fault)
        }
    }
}

/// Returns the metrics of a run of the watcher that began at `began` (POSIX ms).
fn metrics(ticked: &Result<Ticked, Fault>, usage: &Usage, began: u64) -> DataPoint {
    let (is_complete, actions, failures) = match ticked {
        Ok(Ticked { report, .. }) => (true, report.acted.len(), report.notes.len()),
        Err(_) => (false, 0, 1),
    };
    let time = Duration::from_millis(edge::now_ms().saturating_sub(began));
    DataPoint::Tick { is_complete, time, calls: usage.calls(), actions, failures }
}

/// Stores the outcome of a run of the watcher for `GET /operator/status`, and notifies the operator.
async fn conclude(env: &Env, usage: &Usage, ticked: &Result<Ticked, Fault>, now: u64) {
    let (outcome, wallets) = match ticked {
        Ok(Ticked { report, wallets }) => {
            let Report { alarms, notes, .. } = report.clone();
            (TickOutcome { failed: None, alarms, notes }, wallets.as_deref())
        }
        Err(fault) => (TickOutcome { failed: Some(failure(fault)), ..TickOutcome::default() }, None),
    };
    let database = D1::new(env, "DB", usage.clone());
    let noted = database.execute(note_tick(outcome.clone(), wallets, usage.calls(), now)).await;
    let record = noted.inspect_err(|error| edge::log::fault(error)).ok().map(|One(record)| record);
    notify::notify(&edge::settings::of(env), &database, &outcome, record, now).await;
}

/// Sends events to owners' webhooks, even if this run of the watcher failed. A failure to send is logged, and the next
/// run tries again.
async fn send_events(env: &Env, settings: &WatcherSettings, usage: &Usage, line: &Line) {
    let keys = match settings::keys(env) {
        Ok(keys) => keys,
        Err(error) => return edge::log::fault(&error),
    };
    let database = D1::new(env, "DB", usage.clone());
    let on_local_ledger = settings.lead == ClockLead::LocalLedger;
    let sender = webhooks::Sender { database: &database, keys: &keys, on_local_ledger, usage };
    match sender.send().await {
        Ok(sent) => {
            if let Some(words) = sent.words() {
                line.note("webhooks", &words);
            }
        }
        Err(error) => edge::log::fault(&error),
    }
}

/// The result of a complete run of the watcher.
struct Ticked {
    report: Report,
    /// Balances of the wallets that pay fees; `None` if this run did not read them.
    wallets: Option<Vec<WalletBalance>>,
}

/// Number of runs of the watcher after which the balances of the wallets that pay fees are read again.
const READ_WALLETS_EVERY: u64 = 30;

/// Returns the alarm for a run of the watcher that ended early.
fn failure(fault: &Fault) -> Alarm {
    let name = match fault {
        Fault::Chain(ChainError::Forbidden(_)) => AlarmName::ProviderRefusesProject,
        Fault::Chain(ChainError::QuotaUsedUp) => AlarmName::ProviderQuotaUsedUp,
        Fault::Setting(_) => AlarmName::InvalidSetting,
        _ => AlarmName::TickFailed,
    };
    let setting = if name == AlarmName::ProviderRefusesProject { ": BLOCKFROST_PROJECT_ID" } else { "" };
    Alarm::new(name, format!("the last tick failed: {fault}{setting}"))
}

async fn run(env: &Env, settings: &WatcherSettings, usage: &Usage, line: &Line, now: u64) -> Result<Ticked, Fault> {
    let until = now.saturating_add(TICK_MS);
    let project = settings.blockfrost_project.clone();
    let chain = Blockfrost::new(&settings.blockfrost_url, project, usage.clone(), settings.lead, until)
        .with_long_answer_time(READING_MS);
    let database = D1::new(env, "DB", usage.clone());
    let contents = ContentStore::bound(env, D1::new(env, "DB", usage.clone()), usage.clone(), UNKNOWN.to_owned());
    let keys = PlatformKeys::new(settings::keys(env)?)?;
    let begun = begin(&database, &KvNumber::bound(env), now).await?;
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
        number: begun.number,
        now,
        // No calls are left once the run's time is over.
        calls_left: &|| if edge::now_ms() < until { usage.calls_left() } else { 0 },
    };
    let ticked = watch.tick().await;
    let alarm = market::headroom::alarm(edge::d1::size(), settings.database_bytes);
    match ticked {
        Ok(mut report) => {
            report.alarms.extend(alarm);
            report
                .alarms
                .extend(chain.last_read_tip().and_then(|tip| status::old_block(tip.time_ms, settings.lead, now)));
            report.notes.extend(begun.notes);
            let reads_wallets = begun.number.is_multiple_of(READ_WALLETS_EVERY);
            let balances = status::balances(&chain, keys.seller(), settings.deployment.as_ref());
            let wallets = if reads_wallets { Some(balances.await) } else { None };
            Ok(Ticked { report, wallets })
        }
        Err(error) => {
            // If the database is full, the alarm can only be logged.
            if let Some(alarm) = alarm {
                line.note("alarms", &alarm.message);
            }
            Err(error.into())
        }
    }
}
