//! Handlers of the routes, one file per resource: each parses its request, calls a crate, and renders the answer.

pub mod auth;
pub mod crawlers;
pub mod creators;
pub mod discovery;
pub mod drafts;
pub mod edit;
pub mod events;
pub mod facilitator;
pub mod feeds;
pub mod health;
pub mod listings;
pub mod mcp;
pub mod me;
pub mod oauth;
pub mod pages;
pub mod purchase_requests;
pub mod purchases;
pub mod status;
pub mod take_off;
pub mod unlock;
pub mod webhooks;

use crate::{openapi, receipts, route::Route};

/// All routes, by resource.
static ALL: [&[Route]; 23] = [
    listings::ROUTES,
    edit::ROUTES,
    take_off::ROUTES,
    pages::ROUTES,
    creators::ROUTES,
    unlock::ROUTES,
    drafts::ROUTES,
    purchases::ROUTES,
    auth::ROUTES,
    me::ROUTES,
    purchase_requests::ROUTES,
    events::ROUTES,
    feeds::ROUTES,
    webhooks::ROUTES,
    mcp::ROUTES,
    oauth::ROUTES,
    discovery::ROUTES,
    facilitator::ROUTES,
    receipts::ROUTES,
    health::ROUTES,
    status::ROUTES,
    openapi::ROUTES,
    crawlers::ROUTES,
];

/// Returns all routes.
pub fn all() -> impl Iterator<Item = &'static Route> {
    ALL.iter().copied().flatten()
}
