//! Payments into the `vested_pay` escrow: quotes in a 402's `accepts`, and the rules for a lock.
//!
//! ```text
//!  issue: listing, price, now, nonce ──> commitment ──> terms ──one signature──> requirements
//!  retry: accepted ──> rebuilt from its nonce and deadlines ──> equal? then it is ours (nothing was stored)
//!         transaction ──> lock checks ──> buyer, datum, terms digest
//! ```
//!
//! Source: scheme_exact_cardano.md (x402-foundation/x402), "Masumi assetTransferMethod". Field names are that
//! document's. The name of the transfer method is configured: `escrow` in this service, `masumi` in the document.

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
pub use identifier::{BlockchainIdentifier, NotAnIdentifier};
pub use lock::{Field, LockError, LockFacts, VerifiedLock, verify_lock};
pub use method::{PUBLISHED_BLUEPRINT, TransferMethod};
pub use terms::{AgentIdentifier, SellerTerms, TermsDigest};
