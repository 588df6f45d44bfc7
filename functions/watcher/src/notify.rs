//! Notifies the operator: sends alarms to a webhook, and a heartbeat to a monitoring service after each complete run of
//! the watcher.
//!
//! A failure does not stop the run, and delays it by at most [`TIMEOUT`] for each of the two requests. It is logged,
//! and the next run tries again.

use std::{cell::RefCell, time::Duration};

use api_types::Alarm;
use edge::{
    d1::D1,
    http::{self, CallError},
    log,
    settings::Lookup,
};
use market::{
    notice::{self, Notified},
    status::{TickOutcome, TickRecord, low_wallets},
};
use sql::Database;
use worker::{Headers, Method, Request, RequestInit};

/// Timeout of a request to the webhook or to the monitoring service.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of bytes to read of a response.
const MAX_ANSWER: usize = 64 << 10;

/// A webhook or monitoring service could not be reached. Its address is a secret, so the error does not contain it.
#[derive(Debug, thiserror::Error)]
#[error("{setting}: {why}")]
struct NotReached {
    setting: &'static str,
    #[source]
    why: NotifyError,
}

#[derive(Debug, thiserror::Error)]
enum NotifyError {
    #[error("is not an address")]
    NotAnAddress(#[from] worker::Error),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("status {0}")]
    Status(u16),
}

const ALARM_URL: &str = "ALARM_URL";
const HEARTBEAT_URL: &str = "HEARTBEAT_URL";

thread_local! {
    /// The alarms that this isolate last notified the operator of, for use while the database is unavailable.
    static NOTIFIED: RefCell<Notified> = RefCell::default();
}

/// Notifies the operator of the outcome of a run of the watcher. `record` is the database's record of earlier runs, or
/// `None` if the database is unavailable.
pub async fn notify(lookup: &Lookup<'_>, database: &D1, outcome: &TickOutcome, record: Option<TickRecord>, now: u64) {
    if let Some(url) = lookup(ALARM_URL) {
        tell(&url, database, alarms(outcome, record.as_ref()), record, now).await;
    }
    if let Some(url) = lookup(HEARTBEAT_URL).filter(|_| outcome.failed.is_none()) {
        reached(HEARTBEAT_URL, send(&url, None).await);
    }
}

/// Returns the alarms that the operator should be notified of after a run of the watcher.
fn alarms(outcome: &TickOutcome, record: Option<&TickRecord>) -> Vec<Alarm> {
    let failures = record.map_or(u32::MAX, |record| record.failures);
    let failed = outcome.failed.iter().filter(|failed| notice::is_worth_notifying(failed, failures));
    let wallets = record.map(|record| low_wallets(&record.wallets)).unwrap_or_default();
    failed.cloned().chain(wallets).chain(outcome.alarms.iter().cloned()).collect()
}

async fn tell(url: &str, database: &D1, alarms: Vec<Alarm>, record: Option<TickRecord>, now: u64) {
    let is_stored = record.is_some();
    let notified = record.map_or_else(|| NOTIFIED.with_borrow(Clone::clone), |record| record.notified);
    let Some(notification) = notified.due(&alarms, now) else { return };
    if !reached(ALARM_URL, send(url, Some(&serde_json::json!(notification).to_string())).await) {
        return;
    }
    let notified = Notified::of(&alarms, now);
    if is_stored && let Err(error) = database.execute(notified.record()).await {
        log::fault(&error);
    }
    NOTIFIED.set(notified);
}

/// Returns whether a notification was sent, and logs the error if not.
fn reached(setting: &'static str, sent: Result<(), NotifyError>) -> bool {
    sent.map_err(|why| log::fault(&NotReached { setting, why })).is_ok()
}

/// Sends a POST request with JSON, or a GET request if `json` is `None`.
async fn send(url: &str, json: Option<&str>) -> Result<(), NotifyError> {
    let mut init = RequestInit::new();
    if let Some(json) = json {
        let headers = Headers::new();
        headers.set("content-type", "application/json")?;
        init.with_method(Method::Post).with_headers(headers).with_body(Some(json.into()));
    }
    let answer = http::call(Request::new_with_init(url, &init)?, TIMEOUT, MAX_ANSWER).await?;
    if (200..300).contains(&answer.status) { Ok(()) } else { Err(NotifyError::Status(answer.status)) }
}
