//! `GET /me/events`: the events that an account's owner is notified of.

use api_types::{Error, ErrorCode};
use edge::{answer::ErrorAnswer, serve::Response};
use market::event::{self, EventsPage};
#[cfg(test)]
use serde_json::json;

use crate::{
    app::App,
    error::ApiError,
    limits::Counted,
    respond,
    route::{Limit, Route, route},
    session::Session,
};

pub const ROUTES: &[Route] = &[route! {
    GET "/me/events", Limit::Account(Counted::ACCOUNT) => list(Session);
    docs |of| of
        .names("listEvents", "Account", "List the account's events, newest first")
        .more(
            "Sales, proofs of delivery, disputes, refunds and payouts of purchases in which the account is the seller or \
             the buyer, agents that ask for approval, and old tokens of agents. An event says what a block includes. If a \
             rollback removes the block, the event has `undoneBy`, and an event `rolled_back` names it. Events begin with \
             the account's first sign-in and are kept for 90 days. The `Link` header (rel=\"next\") has the address of the \
             next page.",
        )
        .query("cursor", "Cursor from the `Link` header of the previous page.", json!({ "type": "string", "pattern": r"^\d{1,15}$" }))
        .answers::<Vec<api_types::Event>>(200, "Events.")
        .header(200, "Link", "Address of the next page; absent on the last page.", false)
        .fails(&[400])
}];

async fn list(app: &App, Session { account, .. }: Session) -> Result<Response, ApiError> {
    let url = app.request.url()?;
    let cursor = url.query_pairs().find_map(|(name, value)| (name == "cursor").then(|| value.parse::<u64>()));
    let foreign = |_| Error::of_field(ErrorCode::InvalidValue, "cursor", "must come from a page of this list");
    let before = cursor.transpose().map_err(foreign).map_err(ErrorAnswer::bad_request)?;
    let EventsPage { events, next } = event::page(&app.database(), &account.owner, before).await?;
    let next = next.map(|next| next.to_string());
    Ok(respond::linked(respond::private(&events)?, &app.request, next.as_deref())?)
}
