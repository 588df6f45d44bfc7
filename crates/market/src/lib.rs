//! The rules of the marketplace and their SQL: listings, accounts, purchases, escrows and payouts.
//!
//! Nothing here does I/O or reads a clock: the database and the chain are traits, time and randomness are parameters.

#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

pub mod account;
pub mod actions;
mod buyer;
pub mod catalogue;
pub mod chain_state;
pub mod challenge;
pub mod checkout;
pub mod cip30;
pub mod claim;
pub mod contents;
mod error_codes;
mod escrow_steps;
mod escrow_tx;
pub mod event;
pub mod feed;
pub mod fees;
pub mod headroom;
pub mod limits;
pub mod listing;
pub mod network;
pub mod notice;
pub mod payment;
mod platform;
mod port_error;
pub mod proof;
pub mod provider_calls;
pub mod public_host;
pub mod purchase;
pub mod purchase_request;
pub mod receipt;
pub mod release;
pub mod result_poster;
pub mod schema;
pub mod seller_name;
pub mod state;
pub mod status;
mod subject;
pub mod transitions;
mod visible;
pub mod watch;
pub mod webhook;
pub mod withdraw;

pub use listing::{DeliveryMode, ListingId};
pub use port_error::PortError;
pub use visible::shows_something;
