//! Cardano types and rules: money, hashes, addresses, time, protocol parameters, fees, transactions, signatures, and
//! the [`chain::Chain`] port to a provider.
//!
//! Nothing in this crate reads a clock or a random source. Only the feature `ureq` uses the network.
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

#[macro_use]
mod text;

pub mod address;
pub mod blockfrost;
pub mod chain;
pub mod cip8;
pub mod evaluation;
pub mod fees;
pub mod hash;
pub mod history;
// Public only for x402-cardano and the workers.
#[doc(hidden)]
pub mod json;
pub mod keys;
pub mod money;
pub mod network;
pub mod params;
#[cfg(feature = "schema")]
mod schema;
pub mod slots;
pub mod tx;

pub use address::Address;
pub use hash::{ContentHash, KeyHash, ScriptHash, TxHash, TxRef};
pub use money::Lovelace;
pub use network::Network;

/// The README's example, compiled as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
