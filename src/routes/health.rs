//! `GET /health`: the service runs. `GET /health/ready`: it can sell, as far as it knows.

use std::cell::RefCell;

use api_types::Readiness;
use cardano::slots::Millis;
use edge::serve::{JsText, Response};
use market::status::AlarmSources;

use crate::{
    app::App,
    error::ApiError,
    respond,
    route::{Limit, Route, route},
};

/// Time in ms for which an answer of `/health/ready` is cached. Anyone may ask, so the database is read at most once a
/// second.
const KEPT_MS: Millis = 1_000;

thread_local! {
    static HEALTH: JsText = JsText::new("{\"ok\":true,\"network\":\"preprod\"}");
    static READINESS: RefCell<Option<(Readiness, Millis)>> = const { RefCell::new(None) };
}

pub const ROUTES: &[Route] = &[
    route! {
        GET "/health", Limit::Free => show();
        docs |of| of.names("health", "System", "Check that the service runs").answers::<api_types::Health>(200, "The service runs.")
    },
    route! {
        GET "/health/ready", Limit::Free => ready();
        docs |of| of
            .names("ready", "System", "Check whether the service can sell")
            .more("For monitoring services. The answer contains only the names of the problems; the operator's status has the details.")
            .answers::<Readiness>(200, "The service can sell, and no alarm is raised.")
            .answers::<Readiness>(503, "The service cannot sell, or an alarm is raised.")
    },
];

/// Answers that the service runs, and for which network.
async fn show(_: &App) -> Result<Response, ApiError> {
    Ok(HEALTH.with(Response::js_json))
}

/// Answers 200 if the database answers, the watcher's last run began within the last five minutes, the newest block is
/// recent, and no alarm is raised; otherwise 503 with the names of the problems.
async fn ready(app: &App) -> Result<Response, ApiError> {
    let kept = READINESS.with_borrow(|kept| kept.clone()).filter(|(_, at)| app.now_ms.saturating_sub(*at) < KEPT_MS);
    let readiness = match kept {
        Some((readiness, _)) => readiness,
        None => {
            let readiness = read(app).await?;
            READINESS.set(Some((readiness.clone(), app.now_ms)));
            readiness
        }
    };
    let status = if readiness.ok { 200 } else { 503 };
    Ok(respond::private(&readiness)?.with_status(status))
}

async fn read(app: &App) -> Result<Readiness, ApiError> {
    let problems = match AlarmSources::read(&app.database(), app.now_ms).await {
        Ok(vitals) => {
            let alarms = vitals.alarms(vitals.wallets(), app.settings()?.lead, app.now_ms);
            let mut names: Vec<String> = alarms.iter().map(|alarm| alarm.name.to_string()).collect();
            names.sort_unstable();
            names.dedup();
            names
        }
        Err(error) => {
            app.line.cause(&error);
            vec!["database".to_owned()]
        }
    };
    Ok(Readiness { ok: problems.is_empty(), problems })
}
