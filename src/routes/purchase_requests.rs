//! `GET /me/requests`, `GET /me/requests/{id}`, `POST /me/requests/{id}`: an owner approves or declines agents' purchases.

use api_types::{Error, ErrorCode, RequestAnswer};
use edge::{answer::ErrorAnswer, serve::Response};
use market::purchase_request::{self, RequestId};
use sql::Database;

#[cfg(test)]
use crate::openapi::operations::Operation;
use crate::{
    app::App,
    body::Json,
    error::ApiError,
    limits::Counted,
    respond,
    route::{Argument, Asked, Limit, Route, route},
    routes::pages,
    session::Session,
};

pub const ROUTES: &[Route] = &[
    route! {
        GET "/me/requests", Limit::Account(Counted::ACCOUNT) => list(Session);
        docs |of| of
            .names("listPurchaseRequests", "Account", "List the purchases that agents ask the owner to approve")
            .answers::<Vec<api_types::PurchaseRequest>>(200, "The requests that are not answered yet, oldest first.")
    },
    route! {
        GET "/me/requests/{id}", Limit::Account(Counted::ACCOUNT) => show(Session, RequestId);
        page Limit::Account(Counted::ACCOUNT) => pages::request_of_agent(Option<Session>, String);
        docs |of| of
            .names("getPurchaseRequest", "Account", "Get a purchase that an agent asks the owner to approve")
            .answers::<api_types::PurchaseRequest>(200, "The request.")
    },
    route! {
        POST "/me/requests/{id}", Limit::Account(Counted::ACCOUNT) => answer(Session, RequestId, Json<RequestAnswer>);
        docs |of| of
            .names("answerPurchaseRequest", "Account", "Approve or decline a purchase request")
            .more("An approval is valid for an hour and for one purchase.")
            .answers::<api_types::PurchaseRequest>(200, "The request with its new status.")
    },
];

/// 404: the session's account has no such request, or the request has expired.
fn unknown() -> ErrorAnswer {
    let text = "no such request: it is over, or is another account's";
    ErrorAnswer::not_found(Error::new(ErrorCode::UnknownRequest, text))
}

impl Argument for RequestId {
    async fn of(asked: Asked<'_>) -> Result<Self, ApiError> {
        Ok(Self::parse(asked.parameter).ok_or_else(unknown)?)
    }

    #[cfg(test)]
    fn describe(operation: Operation<'_>) -> Operation<'_> {
        operation.path("id", "The request.").fails(&[404])
    }
}

/// Lists the purchase requests that the session's account has not answered yet, the oldest first.
async fn list(app: &App, Session { account, .. }: Session) -> Result<Response, ApiError> {
    respond::private(&app.database().fetch(purchase_request::waiting(&account.owner, app.now_ms)).await?)
}

/// Returns a purchase request that an agent made to the session's account.
async fn show(app: &App, Session { token, .. }: Session, id: RequestId) -> Result<Response, ApiError> {
    let request = purchase_request::read(&app.database(), &token, id, app.now_ms).await?;
    respond::private(&request.ok_or_else(unknown)?)
}

/// Stores the owner's answer to a purchase request: approved or declined.
async fn answer(
    app: &App,
    Session { token, .. }: Session,
    id: RequestId,
    Json(RequestAnswer { answer }): Json<RequestAnswer>,
) -> Result<Response, ApiError> {
    let answered = purchase_request::answer(&app.database(), &token, id, answer, app.now_ms).await?;
    respond::private(&answered.ok_or_else(unknown)?)
}
