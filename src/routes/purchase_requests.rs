//! `GET /me/requests`, `GET /me/requests/{id}`, `POST /me/requests/{id}`: an owner approves or declines agents' purchases.

use api_types::{Error, ErrorCode, PurchaseRequest, RequestAnswer};
use edge::{answer::ErrorAnswer, serve::Response};
use market::purchase_request::{self, RequestId};
use sql::Database;

use crate::{
    app::App,
    body::{self, MAX_BODY},
    error::ApiError,
    limits::Counted,
    respond,
    session::Session,
};

/// 404: the session's account has no such request, or the request has expired.
fn unknown() -> ErrorAnswer {
    let text = "no such request: it is over, or is another account's";
    ErrorAnswer::not_found(Error::new(ErrorCode::UnknownRequest, text))
}

/// Returns a purchase request that an agent made to the session's account, or `None` if there is none or it has
/// expired.
pub async fn read(app: &App, id: &str) -> Result<Option<PurchaseRequest>, ApiError> {
    let Session { token, .. } = owner(app).await?;
    let Some(id) = RequestId::parse(id) else { return Ok(None) };
    Ok(purchase_request::read(&app.database(), &token, id, app.now_ms).await?)
}

/// Lists the purchase requests that the session's account has not answered yet, the oldest first.
pub async fn list(app: &App) -> Result<Response, ApiError> {
    let Session { account, .. } = owner(app).await?;
    respond::private(&app.database().fetch(purchase_request::waiting(&account.owner, app.now_ms)).await?)
}

/// Returns a purchase request.
pub async fn show(app: &App, id: &str) -> Result<Response, ApiError> {
    respond::private(&read(app, id).await?.ok_or_else(unknown)?)
}

/// Stores the owner's answer to a purchase request: approved or declined.
pub async fn answer(app: &App, id: &str) -> Result<Response, ApiError> {
    let Session { token, .. } = owner(app).await?;
    let id = RequestId::parse(id).ok_or_else(unknown)?;
    let RequestAnswer { answer } = body::read(app, MAX_BODY).await?;
    let answered = purchase_request::answer(&app.database(), &token, id, answer, app.now_ms).await?;
    respond::private(&answered.ok_or_else(unknown)?)
}

async fn owner(app: &App) -> Result<Session, ApiError> {
    let session = Session::of(app).await?;
    app.limit(Counted::ACCOUNT, &session.account.owner).await?;
    Ok(session)
}
