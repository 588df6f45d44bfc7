//! Escrows on the local ledger, which runs the contract: transactions planned here, judged there.
#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::panic)]

mod devnet;
mod edges;
mod hostile;
mod lifecycle;
mod together;
mod world;
