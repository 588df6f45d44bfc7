//! Escrows on the local ledger, which runs the contract: transactions planned here, judged there.

#![allow(clippy::disallowed_types, reason = "starts a ledger of its own and talks to it")]
#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::panic)]

mod devnet;
mod edges;
mod hostile;
mod lifecycle;
mod together;
mod world;
