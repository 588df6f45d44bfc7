//! Compares our rules with the compiled contract: case by case in the Plutus evaluator, and over whole lives of escrows
//! on a local ledger that runs the contract.
//!
//! `ESCROW_BLUEPRINT` names the blueprint of another contract with the same interface, to be tested instead.
#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::panic)]
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "starts a ledger, and is told what to print")]

mod ledger;
mod matrix;

use std::path::PathBuf;

use blueprint::Blueprint;

/// Returns the blueprint under test: this repository's, or the one that `ESCROW_BLUEPRINT` names.
fn blueprint() -> Blueprint {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contracts/plutus.json");
    let path = std::env::var_os("ESCROW_BLUEPRINT").map_or_else(|| PathBuf::from(own), PathBuf::from);
    Blueprint::load(&path).unwrap()
}
