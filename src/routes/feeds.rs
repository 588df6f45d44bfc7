//! `POST /me/feed`, `DELETE /me/feed`, `GET /me/feed.xml`: a private feed of an account's events.

use api_types::{Error, ErrorCode, FeedAddress};
use edge::{answer::ErrorAnswer, serve::Response};
use market::{
    account::Token,
    event::{self, EventsPage},
    feed,
};
#[cfg(test)]
use serde_json::json;
use sql::Database;

use crate::{
    app::App,
    error::ApiError,
    limits::Counted,
    respond,
    route::{Limit, Route, route},
    session::Session,
};

pub const ROUTES: &[Route] = &[
    route! {
        POST "/me/feed", Limit::Account(Counted::ACCOUNT) => renew(Session);
        docs |of| of
            .names("renewFeed", "Account", "Make a private address for a feed of the account's events")
            .more("Replaces the address before. Whoever has the address can read the events, without a session, until it is replaced or revoked. It is shown only once.")
            .answers::<FeedAddress>(200, "The address.")
    },
    route! {
        DELETE "/me/feed", Limit::Account(Counted::ACCOUNT) => revoke(Session);
        docs |of| of.names("revokeFeed", "Account", "Revoke the feed's address").empty(204, "No feed address is valid.")
    },
    route! {
        GET "/me/feed.xml", Limit::Client(Counted::READ) => show();
        docs |of| of
            .names("eventsFeed", "Account", "The account's newest events as an Atom feed")
            .more("Needs no session: the address itself, from `POST /me/feed`, is the secret.")
            .parameter("query", "token", true, "The token in the feed's address.", json!({ "type": "string" }))
            .text(200, "application/atom+xml; charset=utf-8", "A feed.")
            .fails(&[404])
    },
];

/// Makes a new token for the feed of the session's account.
async fn renew(app: &App, Session { account, .. }: Session) -> Result<Response, ApiError> {
    app.ample_room().await?;
    let token = Token::new(edge::random()?);
    app.database().execute(feed::renew(&account.owner, &token, app.now_ms)).await?;
    // The token is in the query, because neither this service nor the platform logs queries.
    respond::private(&FeedAddress { url: format!("{}/me/feed.xml?token={}", app.public_origin()?, token.reveal()) })
}

/// Revokes the token of the account's feed.
async fn revoke(app: &App, Session { account, .. }: Session) -> Result<Response, ApiError> {
    app.database().execute(feed::revoke(&account.owner)).await?;
    Ok(Response::empty(204))
}

/// Renders the events of the account to which the token belongs.
async fn show(app: &App) -> Result<Response, ApiError> {
    let unknown = || {
        let text = "no such feed: its address was revoked or replaced, or is incomplete";
        ErrorAnswer::not_found(Error::new(ErrorCode::UnknownFeed, text))
    };
    let url = app.request.url()?;
    let token = url.query_pairs().find_map(|(name, value)| (name == "token").then(|| Token::presented(&value)));
    let token = token.flatten().ok_or_else(unknown)?;
    let owner = app.database().fetch(feed::owner_of(&token)).await?.ok_or_else(unknown)?;
    let EventsPage { events, .. } = event::page(&app.database(), &owner, None).await?;
    let xml = pages::feed::events(&app.public_origin()?, &owner, &events);
    Ok(Response::text(xml)
        .with_header("content-type", "application/atom+xml; charset=utf-8")
        .with_header("cache-control", "private, no-cache")
        .with_header("x-robots-tag", "noindex"))
}
