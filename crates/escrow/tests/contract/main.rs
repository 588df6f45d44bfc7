//! Holds the compiled contract against our rules: case by case in the Plutus evaluator, and from lock to end on a local
//! ledger that runs it.
//!
//! `ESCROW_BLUEPRINT` selects another blueprint with the same interface.
#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::panic)]
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "starts a ledger, and is told what to print")]

mod ledger;
mod matrix;

use std::path::PathBuf;

use blueprint::Blueprint;

/// The blueprint to test: ours, or another with the same interface.
fn blueprint() -> Blueprint {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contracts/plutus.json");
    let path = std::env::var_os("ESCROW_BLUEPRINT").map_or_else(|| PathBuf::from(own), PathBuf::from);
    Blueprint::load(&path).unwrap()
}
