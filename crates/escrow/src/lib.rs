//! The `vested_pay` escrow contract (V2) off the chain: datum and redeemers as types, the contract's rules as a table,
//! deadlines and payouts, transaction plans, and the decision of disputes.
//!
//! ```text
//!               SubmitResult                 unlock
//!  FundsLocked ─────────────> ResultSubmitted ─────> Withdraw (seller)
//!   │      │                      │
//!   │      │ SetRefundRequested   │ SetRefundRequested
//!   │      v                      v            AuthorizeWithdrawal
//!   │   RefundRequested ─────> Disputed ───────────────> WithdrawAuthorized ──> Withdraw
//!   │      │      SubmitResult    │ │
//!   │      │                      │ └── external dispute unlock ──> WithdrawDisputed (arbiters)
//!   │      │                      │
//!   └──────┴── AuthorizeRefund ───┴──> RefundAuthorized ──> WithdrawRefund (buyer)
//!   (no result at submit result time: FundsLocked, RefundRequested ──> WithdrawRefund)
//! ```
//!
//! Nothing in this crate does I/O or reads a clock or a random source.
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

pub mod address;
pub mod admin;
mod codec;
pub mod collateral;
mod datum;
pub mod deadlines;
mod deployment;
pub mod dispute;
pub mod evidence;
pub mod plan;
mod redeemer;
pub mod result;
pub mod rules;
pub mod spend;

pub use address::PlutusAddress;
pub use cardano::address::Credential;
pub use codec::InvalidDatum;
pub use datum::{Datum, MIN_REFERENCE_SIGNATURE_BYTES, State};
pub use deadlines::Deadlines;
pub use deployment::{Deployment, MAX_ADMINS, ParameterError, Parameters};
pub use redeemer::{Action, AdminSignature, AssetQuantities, AssetValue, PlainAction, Redeemer};

/// The README's example, compiled as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
