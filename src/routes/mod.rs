//! Handlers of the routes, one file per resource: each parses its request, calls a crate, and renders the answer.

pub mod auth;
pub mod crawlers;
pub mod creators;
pub mod discovery;
pub mod drafts;
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
