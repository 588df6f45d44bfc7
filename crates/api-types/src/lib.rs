//! What crosses the wire, described once. The API's routes, its OpenAPI document, the pages, the MCP tools, the CLI and the
//! arbiter read these types; a name of a field stands nowhere else.
//!
//! | how a text is made | what holds it to its type |
//! |---|---|
//! | a route writes the type | the compiler |
//! | SQL writes the text (listings, purchases, accounts, agents) | a test that calls [`check::complete`] on it |
//! | a reader with bounds of its own (offers, disputes) | a test that compares its fields with [`check::fields`] |
//!
//! Amounts are lovelace as decimal texts, times POSIX ms, addresses bech32 of preprod, hashes lowercase hexadecimal. A field
//! that may be missing is never null. The doc comments of types and fields are the texts of the published description.
//!
//! The feature `schema` adds JSON Schemas and [`check`]. No worker is built with it.
#![warn(missing_docs)]

mod account;
pub mod arbiter;
#[cfg(feature = "schema")]
pub mod check;
mod draft;
mod listing;
pub mod mcp;
mod oauth;
mod operator;
mod purchase;
mod text;

pub use account::*;
pub use draft::*;
pub use listing::*;
pub use oauth::*;
pub use operator::*;
pub use purchase::*;
pub use text::{Millis, OptionalMillis};

use cardano::{Network, slots::SlotConfig};
use serde::{Deserialize, Serialize};

/// The network that the service sells on. The pages' words and the settings of its deployment are of it, too.
pub const NETWORK: Network = Network::Preprod;
/// How it counts slots.
pub const SLOTS: SlotConfig = NETWORK.slots();

/// Why a request is not answered as it asked, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Error {
    /// For people and programs to show; the status says what kind it is.
    pub error: String,
}

/// The service runs, and for which network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Health {
    /// Always true.
    pub ok: bool,
    /// `preprod`.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^preprod$")))]
    pub network: String,
}
