//! `GET /operator/status`, for the holder of `OPERATOR_TOKEN`.

use api_types::{Error, ErrorCode, ProviderCalls, ServiceStatus};
use edge::{answer::ErrorAnswer, bearer::Bearer, serve::Response};
use market::status;

#[cfg(test)]
use crate::openapi::operations::Operation;
use crate::{
    app::App,
    error::{ApiError, no_such_path},
    respond,
    route::{Argument, Asked, Limit, Route, route},
};

pub const ROUTES: &[Route] = &[route! {
    GET "/operator/status", Limit::Free => show(Operator);
    docs |of| of
        .names("operatorStatus", "System", "Get the operator's status")
        .more("Answers 404 if the service has no OPERATOR_TOKEN.")
        .answers::<ServiceStatus>(200, "The status.")
}];

/// Proof that the request carries the operator's token. Without the setting `OPERATOR_TOKEN`, the route answers 404.
struct Operator;

impl Argument for Operator {
    async fn of(asked: Asked<'_>) -> Result<Self, ApiError> {
        let token = asked.app.settings()?.operator.as_ref().ok_or_else(no_such_path)?;
        if token.admits(&Bearer::of(&asked.app.request)?) {
            return Ok(Self);
        }
        let text = "a bearer token is needed: Authorization: Bearer OPERATOR_TOKEN";
        Err(ErrorAnswer::unauthorized(Error::new(ErrorCode::InvalidToken, text)).into())
    }

    #[cfg(test)]
    fn describe(operation: Operation<'_>) -> Operation<'_> {
        operation.security(&["operator"]).fails(&[401, 404])
    }
}

/// Reports the service's status to its operator.
async fn show(app: &App, Operator: Operator) -> Result<Response, ApiError> {
    let settings = app.settings()?;
    let (now, chain) = (app.now_ms, app.chain()?);
    let stored = status::read(&app.database(), now).await?;
    let vitals = &stored.vitals;
    let (keys, methods) = (app.keys()?, app.methods()?);
    let wallets = status::balances(&chain, keys.seller()?, methods.deployment()).await;
    let status = ServiceStatus {
        version: app.version(),
        at: now,
        last_tick: vitals.last_tick(),
        newest_block: vitals.newest_block,
        open_escrows: stored.open_escrows,
        oldest_deadline: stored.oldest_deadline,
        provider_calls: ProviderCalls {
            project: chain.calls_on_day_of(now).await.ok().flatten(),
            watcher: vitals.watcher_calls(),
        },
        restore: stored.restore,
        alarms: vitals.alarms(&wallets, settings.lead, now),
        wallets,
    };
    respond::private(&status)
}
