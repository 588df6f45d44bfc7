//! The watcher worker: every minute one tick of [`market::watch`].

mod arbiter;
mod keys;
mod settings;

use edge::{
    Usage,
    answer::{self, ErrorAnswer, Fault},
    chain::Blockfrost,
    contents::ContentStore,
    d1::D1,
    serve::{Request, Response},
};
use keys::PlatformKeys;
use market::watch::{Report, TickError, Watch};
use settings::WatcherSettings;
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};
use worker::{Env, ScheduleContext, ScheduledEvent, console_error, console_log, event};

/// One tick. What fails is in the log, and done by a later tick.
#[event(scheduled)]
async fn scheduled(_event: ScheduledEvent, env: Env, _context: ScheduleContext) {
    match tick(&env, false).await {
        Ok(told) => console_log!("tick {told}"),
        Err(error) => console_error!("tick: {error}"),
    }
}

/// The same on request, in development only: the deployed worker has no address, and this setting is not made there.
/// With `?reads` the answer also says which statements were run and how many rows each read.
#[wasm_bindgen]
pub fn serve(request: web_sys::Request, method: String, url: String, env: Env) -> JsValue {
    let request = Request::new(request, method, url);
    edge::serve::serve(
        async move { answer(&request, &env).await.unwrap_or_else(|fault| fault.answer().into_response()) },
    )
}

async fn answer(request: &Request, env: &Env) -> Result<Response, Fault> {
    if !WatcherSettings::of(env)?.answers {
        return Ok(ErrorAnswer::not_found("no such path").into_response());
    }
    if (request.method(), request.path()) != ("POST", "/tick") {
        return Ok(Response::ok("POST /tick")?);
    }
    Ok(answer::json(tick(env, request.url()?.query() == Some("reads")).await?)?)
}

/// For the log: what a tick did and what it cost.
fn told(report: &Report, usage: &Usage) -> String {
    let mut told = serde_json::json!(report);
    if let Some(told) = told.as_object_mut() {
        told.insert("batches".into(), usage.batches().into());
    }
    if let (Some(reads), Some(told)) = (usage.reads(), told.as_object_mut()) {
        told.insert("reads".into(), serde_json::json!(reads));
    }
    told.to_string()
}

async fn tick(env: &Env, reads: bool) -> Result<String, Fault> {
    let settings = WatcherSettings::of(env)?;
    let usage = Usage::new(settings.calls_per_tick, reads);
    let chain = Blockfrost::new(&settings.blockfrost_url, settings.blockfrost_project.clone(), usage.clone())
        .leading(settings.lead);
    let database = D1::new(env.d1("DB")?, usage.clone());
    let contents = ContentStore::bound(env, D1::new(env.d1("DB")?, usage.clone()), usage.clone());
    let watch = Watch {
        database: &database,
        chain: &chain,
        contents: &contents,
        deployment: settings.deployment.as_ref(),
        sells: settings.sells,
        lead: settings.lead,
        now: edge::now_ms(),
        calls_left: &|| usage.calls_left(),
    };
    let keys = PlatformKeys::new(settings::keys(env)?)?;
    let arbiter = arbiter::Bound { env, token: settings.arbiter_token.as_deref(), usage: &usage };
    match watch.tick(&keys, &arbiter).await {
        Ok(report) => {
            report.alarms.iter().for_each(|alarm| console_error!("ALARM {alarm}"));
            Ok(told(&report, &usage))
        }
        Err(error) => {
            console_error!("tick: {}", usage.server_timing());
            Err(match error {
                TickError::Database(error) => error.into(),
                TickError::Chain(error) => error.into(),
                TickError::Contents(error) => error.into(),
            })
        }
    }
}
