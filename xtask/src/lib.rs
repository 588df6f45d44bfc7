//! Operator and developer commands, as a library so that their parts can be tested and reused.

pub mod escrow;
pub mod provider;
pub mod secret;
