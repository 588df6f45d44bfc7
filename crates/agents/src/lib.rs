//! Sign-in of agents by OAuth and the tools of the MCP endpoint: messages, rules and their SQL, without HTTP.
//!
//! ```text
//!   browser ──> oauth::authorize ──> oauth::page (consent) ──> oauth::approve ──> code
//!   client  ──> oauth::client (registration, metadata documents)      oauth::exchange ──> tokens
//!   agent   ──> oauth::grant (who presents the token) ──> mcp::dispatch ──> mcp::shop (a port)
//! ```

#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

pub mod mcp;
pub mod oauth;
