//! The scheme `exact` on Cardano: the buyer builds and signs a transaction, the seller's side judges it, then
//! submits it.
//!
//! ```text
//! payload ──read──> Payment ──rules, signatures──> payer's facts ──rules──> all facts ──rules──> VerifiedPayment
//!                 (payment.rs)    (rules/)          (facts.rs)
//! ```
//!
//! Reads come first and in one module ([`Facts`]). Every rule is a pure function, in a file of its subject, and the
//! order of the rules is one file (judge.rs). Source of the rules: `scheme_exact_cardano.md`, "Facilitator Verification
//! Rules"; each file names its rule.

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

/// When a payment is judged, and how slots map to time there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The wall clock's POSIX ms. Rules use the later of it and the newest block's time.
    pub now_ms: Millis,
    /// How the chain counts slots.
    pub slots: SlotConfig,
}

/// A payment that passed every rule: the ledger, as it was when the facts were read, takes the transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedPayment {
    /// The transaction's id, of its body's bytes as received.
    pub tx_id: TxHash,
    /// The owner of the output that the nonce names; where an escrow is made, at the address that the buyer chose.
    pub payer: Address,
    /// What the transaction spends.
    pub inputs: Vec<TxRef>,
    /// The first slot in which it is no longer valid.
    pub valid_until: u64,
    /// What was asked for, and is paid at least.
    pub amount: Amount,
    /// The escrow that it makes, if it makes one.
    pub lock: Option<VerifiedLock>,
    /// Whether a block has the transaction already, or the provider's mempool: it was broadcast before it came here.
    /// What is public proves nothing about who sends it, so the caller must ask for the payer's signature.
    pub public: bool,
    /// The height of the newest block when it was looked at.
    pub newest_height: u64,
    /// The signed transaction, byte for byte as received.
    pub cbor: Vec<u8>,
}

/// Why a payment could not be verified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// It is not valid. The buyer's to mend.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The chain could not be asked. The same request may succeed later.
    #[error(transparent)]
    Chain(#[from] ChainError),
}
