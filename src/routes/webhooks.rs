//! `GET /me/webhook`, `PUT /me/webhook`, `DELETE /me/webhook`, `POST /me/webhook/test`: the address to which the
//! watcher sends an account's events.

use api_types::{Error, ErrorCode, NewWebhook, Webhook};
use edge::{answer::ErrorAnswer, serve::Response};
use market::webhook::{self, Salt, Secret, WebhookUrl};
use sql::{Database, One};

use crate::{
    app::App,
    body::Json,
    error::ApiError,
    limits::Counted,
    respond,
    route::{Limit, Route, route},
    session::Session,
};

pub const ROUTES: &[Route] = &[
    route! {
        GET "/me/webhook", Limit::Account(Counted::ACCOUNT) => show(Session);
        docs |of| of
            .names("getWebhook", "Account", "Get the address to which the account's events are sent")
            .answers::<Webhook>(200, "The webhook, without its secret.")
            .fails(&[404])
    },
    route! {
        PUT "/me/webhook", Limit::Account(Counted::WEBHOOK) => set(Session, Json<NewWebhook>);
        docs |of| of
            .names("setWebhook", "Account", "Set the address to which the account's events are sent")
            .more(
                "Messages are signed and sent as the Standard Webhooks specification describes it (`webhook-id`, \
                 `webhook-timestamp`, `webhook-signature`), in order and at least once. The first request answers with the \
                 secret. A later one keeps the secret, switches the webhook on again, and goes on with the first event that \
                 was not delivered. `docs/notices.md` describes retries.",
            )
            .answers::<Webhook>(200, "The webhook.")
            .fails(&[400])
    },
    route! {
        DELETE "/me/webhook", Limit::Account(Counted::ACCOUNT) => remove(Session);
        docs |of| of
            .names("removeWebhook", "Account", "Remove the webhook and its secret")
            .empty(204, "Nothing is sent any more.")
    },
    route! {
        POST "/me/webhook/test", Limit::Account(Counted::WEBHOOK) => test(Session);
        docs |of| of
            .names("testWebhook", "Account", "Send a test message to the webhook")
            .more("The watcher sends it within about a minute, behind events that wait. At most one test message is made per minute.")
            .answers::<Webhook>(200, "The webhook.")
            .fails(&[404, 409])
    },
];

/// 404: the account has no webhook.
fn unknown() -> ErrorAnswer {
    ErrorAnswer::not_found(Error::new(ErrorCode::NoWebhook, "there is no webhook: add one with PUT /me/webhook"))
}

async fn read(app: &App, owner: &str) -> Result<Webhook, ApiError> {
    Ok(app.database().fetch(webhook::read(owner)).await?.ok_or_else(unknown)?)
}

/// Returns the webhook's state.
async fn show(app: &App, Session { account, .. }: Session) -> Result<Response, ApiError> {
    respond::private(&read(app, &account.owner).await?)
}

/// Sets the webhook's address. The answer contains the secret if this request adds the webhook.
async fn set(
    app: &App,
    Session { account, .. }: Session,
    Json(NewWebhook { url }): Json<NewWebhook>,
) -> Result<Response, ApiError> {
    let url = WebhookUrl::parse(&url, app.is_on_local_ledger()).map_err(ErrorAnswer::bad_request)?;
    app.ample_room().await?;
    let keys = app.keys()?;
    let (version, salt) = (keys.current_version()?, Salt::new(edge::random()?));
    // Checked before anything is stored, because without the master secret no message could be signed.
    let master = keys.master(version)?;
    let write = webhook::set(&account.owner, &url, &salt, version, app.now_ms);
    let (One(stored), webhook) = app.database().batch((write, webhook::read(&account.owner))).await?;
    let mut webhook = webhook.ok_or_else(unknown)?;
    if stored == salt.as_str() {
        webhook.secret = Secret::derive(master, version, &account.owner, &salt).map(|secret| secret.reveal());
    }
    respond::private(&webhook)
}

/// Removes the webhook.
async fn remove(app: &App, Session { account, .. }: Session) -> Result<Response, ApiError> {
    app.database().execute(webhook::remove(&account.owner)).await?;
    Ok(Response::empty(204))
}

/// Requests a test message, which the watcher sends.
async fn test(app: &App, Session { account, .. }: Session) -> Result<Response, ApiError> {
    let webhook = read(app, &account.owner).await?;
    if webhook.status == api_types::WebhookStatus::Off {
        let text = "the webhook is off: switch it on with PUT /me/webhook first";
        return Err(ErrorAnswer::conflict(Error::new(ErrorCode::WebhookOff, text)).into());
    }
    app.database().batch(webhook::test(&account.owner, app.now_ms)).await?;
    respond::private(&read(app, &account.owner).await?)
}
