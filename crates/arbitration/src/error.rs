//! Why a request has no answer.

use cardano::{chain::ChainError, cip8::Cip8Error, tx::build::BuildError};
use escrow::{
    InvalidDatum,
    plan::{DraftError, PlanError},
};
use outbox::OutboxError;
use sql::DatabaseError;

/// Why a dispute could not be resolved now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The chain has no such output, at least in the provider's view.
    #[error("ref names no output that is on the chain")]
    Unknown,
    /// It is no escrow of this arbiter's contract.
    #[error("ref names no escrow of this arbiter: {0}")]
    NotAnEscrow(#[from] InvalidDatum),
    /// It goes back to nothing that a purchase could have locked: it was made to look like a dispute.
    #[error("ref names an escrow that no purchase locked")]
    NeverLocked,
    /// What it holds cannot be paid out as decided.
    #[error("the escrow holds less than the buyer's collateral: it cannot be divided")]
    Unpayable,
    /// The way back to the lock is long; the next request goes on where this one stopped.
    #[error("still tracing the escrow back to its lock: ask again")]
    StillTracing,
    /// The provider does not know a transaction that it named.
    #[error("the chain provider lags: ask again")]
    Lagging,
    /// Another award takes what this one would spend.
    #[error("the arbiter's wallet is busy: ask again")]
    Busy,
    /// It is written down, and it is not known whether a node took it.
    #[error("no node has answered for the award yet: ask again")]
    Unanswered,
    /// The award was refused.
    #[error("the award was refused: {0}")]
    Refused(String),
    /// The wallet cannot pay for it.
    #[error("the arbiter's wallet cannot pay the fee: {0}")]
    Wallet(BuildError),
    /// The key cannot sign.
    #[error("the arbiter's key cannot sign: {0}")]
    Signature(#[from] Cip8Error),
    /// The chain cannot be asked.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The database cannot be asked.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl ResolveError {
    /// Whether the request itself is at fault: asking again will not help.
    #[must_use]
    pub const fn is_requests_fault(&self) -> bool {
        matches!(self, Self::Unknown | Self::NotAnEscrow(_) | Self::NeverLocked | Self::Unpayable)
    }
}

impl From<OutboxError> for ResolveError {
    fn from(error: OutboxError) -> Self {
        match error {
            OutboxError::Database(error) => Self::Database(error),
            OutboxError::Chain(error) => Self::Chain(error),
        }
    }
}

impl From<BuildError> for ResolveError {
    fn from(error: BuildError) -> Self {
        Self::Wallet(error)
    }
}

impl From<DraftError> for ResolveError {
    fn from(error: DraftError) -> Self {
        match error {
            DraftError::Build(error) | DraftError::Plan(PlanError::Ledger(error)) => Self::Wallet(error),
            DraftError::Plan(error) => Self::Refused(error.to_string()),
            DraftError::Refused(reason) => Self::Refused(reason),
            DraftError::Chain(error) => Self::Chain(error),
        }
    }
}
