//! The scheme `exact` on Cardano: the buyer builds and signs a transaction; the seller's side verifies it and then
//! submits it.
//!
//! ```text
//! payload ──read──> Payment ──rules, signatures──> payer's facts ──rules──> all facts ──rules──> VerifiedPayment
//!                 (payment.rs)    (rules/)          (facts.rs)
//! ```
//!
//! A single module reads everything from the chain ([`Facts`]). Every rule is a pure function, in a file for its
//! subject, and judge.rs contains their order. Source of the rules: `scheme_exact_cardano.md`, "Facilitator
//! Verification Rules"; each file names its rule.

mod facts;
mod judge;
mod payment;
pub mod rules;

use cardano::{
    Address, TxHash, TxRef,
    chain::ChainError,
    slots::{Millis, SlotConfig},
};
pub use facts::{Facts, InputState, MAX_INPUT_TOKENS, MAX_INPUT_TRANSACTIONS};
pub use judge::{verify, verify_with_facts};
pub use payment::{InvalidPayload, Payment};
pub use rules::{PaymentContext, VerificationContext};

use crate::{Refusal, escrow::VerifiedLock, wire::Amount};

/// The time of verification, with the network's conversion between slots and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Wall clock in POSIX milliseconds. The rules use the later of this time and the newest block's time.
    pub now_ms: Millis,
    /// Conversion between slots and time.
    pub slots: SlotConfig,
}

/// A payment that passed every rule. The ledger would accept its transaction in the state that was read from the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedPayment {
    /// Transaction id: the hash of the body's bytes as received.
    pub tx_id: TxHash,
    /// Address of the payer, who owns the output that the nonce names. For an escrow, the buyer's address in the datum,
    /// which has the same payment key.
    pub payer: Address,
    /// Outputs that the transaction spends.
    pub inputs: Vec<TxRef>,
    /// First slot in which the transaction is no longer valid.
    pub valid_until: u64,
    /// Amount that the offer requests. The transaction pays at least this amount.
    pub amount: Amount,
    /// The escrow that the transaction creates; `None` for a direct payment to the seller.
    pub lock: Option<VerifiedLock>,
    /// `true` if the transaction was already in a block or in the provider's mempool when it was verified, and is
    /// therefore public. Anyone could present a public transaction, so the caller must ask for the payer's signature.
    pub public: bool,
    /// Height of the newest block at the time of verification.
    pub newest_height: u64,
    /// Signed transaction, byte for byte as received.
    pub cbor: Vec<u8>,
}

/// Reason why a payment was not verified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The payment is invalid. The buyer can fix it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The chain could not be read. A retry of the same request may succeed.
    #[error(transparent)]
    Chain(#[from] ChainError),
}
