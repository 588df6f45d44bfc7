//! Payments into the `vested_pay` escrow: the second entry of a 402's `accepts`, and what a lock must hold.
//!
//! ```text
//!  issue: listing, price, now, nonce ──> commitment ──> terms ──one signature──> requirements
//!  retry: accepted ──> the same from its nonce and deadlines ──> equal? then it is ours (nothing was stored)
//!         transaction ──> lock checks ──> buyer, datum, terms digest
//! ```
//!
//! Source: scheme_exact_cardano.md (x402-foundation/x402), "Masumi assetTransferMethod". The names below are that
//! document's. The transfer method's own name is configured: this service says `escrow`, the document `masumi`.

mod authorization;
mod commitment;
mod extra;
#[cfg(test)]
pub(crate) mod fixture;
mod identifier;
mod lock;
pub mod method;
mod pay;
mod terms;

pub use authorization::{AuthorizationError, AuthorizedTerms};
pub use commitment::{Canonicalization, CommitmentError, CommitmentPart, InputCommitment, listing_input_hash};
pub use extra::{DeploymentWire, EscrowExtra, SchemaError};
pub(crate) use identifier::encoded as encoded_identifier;
pub use identifier::{BlockchainIdentifier, NotAnIdentifier};
pub use lock::{Field, LockError, LockFacts, VerifiedLock, verify_lock};
pub use method::{PUBLISHED_BLUEPRINT, TransferMethod};
pub use terms::{AgentIdentifier, SellerTerms, TermsDigest};
