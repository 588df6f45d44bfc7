//! Operator and developer commands, as a library so that their parts can be tested and reused.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "runs on a developer's machine")]

pub mod escrow;
pub mod secret;
