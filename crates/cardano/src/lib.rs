//! Cardano as this service needs it: money, hashes, addresses on test networks, time, protocol parameters and
//! the [`chain::Chain`] port through which everything outside is asked.
//!
//! Nothing here reads a clock, a random source or the network by itself.
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

/// The README's example, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
