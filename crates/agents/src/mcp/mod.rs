//! The MCP endpoint: JSON-RPC messages in four revisions of the protocol at one address. Its tools call the shop
//! through a trait.
//!
//! ```text
//!   body ──parse──> Message ──(route: rate limits)──> answer(endpoint, headers, message) ──> RpcAnswer
//!                                        │ revision: 2025-03-26, 2025-06-18, 2025-11-25 │ 2026-07-28
//!                                        │ endpoint: OwnerTools<impl Shop>  │  OpenTools<impl OpenShop>
//! ```
//!
//! The messages are types of this crate: those of the SDK `rmcp` would add 1,053 kB to the program instead of 153 kB.
//!
//! The endpoint is stateless: there are no sessions, and a stream exists only as the answer to one call (`progress`).
//! Sources: the transport, versioning, discovery and tools pages of MCP's revisions; x402's
//! `specs/transports-v2/mcp.md`.

pub mod dispatch;
mod for_models;
pub mod message;
pub mod open;
pub mod progress;
mod resources;
pub mod revision;
pub mod shop;
pub mod tool;
pub mod tools;
pub mod view;

#[cfg(test)]
mod negotiation;
#[cfg(test)]
mod schemas;
#[cfg(test)]
mod tests;

/// Returns whether a browser's request is allowed, by its `Origin` and `Host`. `own_origin` is the configured origin.
///
/// Pages of any origin are allowed, because requests are authenticated by a token, never by a cookie. The check only
/// prevents DNS rebinding, in which the domain of a malicious page resolves to this server's address. The `Host` header
/// then contains that domain and not the server's name.
#[must_use]
pub fn page_allowed(origin: Option<&str>, host: Option<&str>, own_origin: Option<&str>) -> bool {
    if origin.is_none() {
        return true;
    }
    let parse = |url: &str| url::Url::parse(url).ok();
    let Some(host) = host.and_then(|host| parse(&format!("http://{host}"))) else { return false };
    let local = matches!(host.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    local || own_origin.and_then(parse).is_some_and(|own| own.host() == host.host())
}
