//! x402 v2 payments on Cardano: the wire types, and the scheme `exact` as a library for a server that is its own
//! facilitator.
//!
//! ```text
//! GET /thing ───────────────────────────> 402, PAYMENT-REQUIRED     exact::default::requirements
//! GET /thing, PAYMENT-SIGNATURE ──┐
//!                                 ├ admit: read, look up, verify    settlement::admit, exact::default::verify
//!                                 ├ make the content ready
//!                                 ├ settle: claim, submit, observe  settlement::Settler
//!                                 └─────> 200, PAYMENT-RESPONSE
//! ```
//!
//! The crate does no I/O: the chain, the signature check, the store, the clock and the waiting are parameters.
//! Nothing is approved by default, and every refusal has a [`Refusal::code`] that stays and a message that says what to
//! do. What a payment may be is said in [`exact::default`]; when it may be presented again in [`settlement`].
//!
//! # Decisions
//!
//! - One output must carry the whole amount: outputs to `payTo` are not added up, and more of them are gifts.
//! - The payer is the owner of the output that `payload.nonce` names, and must not be the payee (same payment key).
//! - `accepted` must equal the requirements of now in every field; `cip34:0-1` is another name for `cardano:preprod`.
//! - A signature that is not needed is allowed, one that does not verify is not: the ledger refuses it.
//! - A payment that somebody already broadcast is refused: what is public proves nothing about who presents it.
//! - After the first claim the very same header is honoured until the content was delivered; then the payer proves
//!   ownership with a wallet signature instead ([`Refusal::DuplicateSettlement`] says so).

#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

pub mod escrow;
pub mod exact;
mod json;
pub mod method;
mod refusal;
pub mod settlement;
pub mod wire;

pub use refusal::Refusal;
