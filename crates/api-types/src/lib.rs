//! The types of all requests and answers. The API's routes, its OpenAPI document, the pages, the MCP tools, the CLI and
//! the arbiter share them, so that field names are defined only once.
//!
//! | how JSON is produced | how it is checked against the type |
//! |---|---|
//! | a route serialises the type | the compiler |
//! | SQL builds the text (listings, purchases, accounts, agents) | a test that calls [`check::complete`] |
//! | a parser with its own limits (offers, disputes) | a test that compares field names with [`check::fields`] |
//!
//! Amounts are lovelace in decimal strings, times POSIX ms, addresses preprod bech32, hashes lowercase hexadecimal. An
//! optional field is absent rather than null. The doc comments of types and fields become the descriptions in the
//! published documents.
//!
//! The feature `schema` adds JSON Schemas and [`check`]. The workers are built without it.
#![warn(missing_docs)]

mod account;
mod alarm;
pub mod arbiter;
#[cfg(feature = "schema")]
pub mod check;
mod draft;
mod error;
mod event;
mod listing;
pub mod mcp;
mod oauth;
mod operator;
mod purchase;
mod text;
mod webhook;

pub use account::*;
pub use alarm::*;
pub use draft::*;
pub use error::{Error, ErrorCode};
pub use event::*;
pub use listing::*;
pub use oauth::*;
pub use operator::*;
pub use purchase::*;
pub use text::{Millis, OptionalMillis};
pub use webhook::*;

use cardano::{Network, slots::SlotConfig};
use serde::{Deserialize, Serialize};

/// Network on which the service sells. The texts of the pages and the deployment settings assume the same network.
pub const NETWORK: Network = Network::Preprod;
/// Conversion between slots and time on [`NETWORK`].
pub const SLOTS: SlotConfig = NETWORK.slots();

/// The answer of `GET /health`, which shows that the service runs, and on which network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Health {
    /// Always true.
    pub ok: bool,
    /// Always `preprod`.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^preprod$")))]
    pub network: String,
}
