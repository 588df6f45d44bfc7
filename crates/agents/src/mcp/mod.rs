//! The MCP endpoint: JSON-RPC messages, four revisions of the protocol at one address, tools over a port.
//!
//! ```text
//!   body ──parse──> Message ──(route: limits on tools/call)──> answer(endpoint, headers, message) ──> RpcAnswer
//!                                        │ revision: 2025-03-26, 2025-06-18, 2025-11-25 │ 2026-07-28
//!                                        │ endpoint: OwnerTools<impl Shop>  │  OpenTools<impl OpenShop>
//! ```
//!
//! Stateless: no session, nothing remembered between messages; a stream only as the answer to one call (`progress`). Sources: the transport, versioning, discovery
//! and tools pages of MCP's revisions; x402's `specs/transports-v2/mcp.md`.

pub mod dispatch;
pub mod message;
pub mod open;
pub mod progress;
pub mod revision;
pub mod shop;
pub mod tools;
pub mod view;

#[cfg(test)]
mod negotiation;
#[cfg(test)]
mod schemas;
#[cfg(test)]
mod tests;

/// Whether a request with this `Origin` may go on: none (not a browser), ours, or a program on the user's own machine.
///
/// Everything else is refused with 403, against DNS rebinding.
#[must_use]
pub fn origin_allowed(origin: Option<&str>, own_origin: &str) -> bool {
    let Some(origin) = origin else { return true };
    let local = |url: url::Url| {
        let host = url.host_str().is_some_and(|host| matches!(host, "localhost" | "127.0.0.1" | "[::1]"));
        host && matches!(url.scheme(), "http" | "https")
    };
    origin == own_origin || url::Url::parse(origin).is_ok_and(local)
}
