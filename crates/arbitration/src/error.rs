//! Errors of the arbiter.

use cardano::{chain::ChainError, cip8::Cip8Error, tx::build::BuildError};
use escrow::{
    InvalidDatum,
    plan::{DraftError, PlanError},
};
use outbox::OutboxError;
use sql::DatabaseError;

/// Reason why a dispute was not resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The provider knows no output with the reference that the request names.
    #[error("ref: names no output that is on the chain")]
    Unknown,
    /// The output with this reference is not an escrow of the arbiter's contract.
    #[error("ref: names no escrow of this arbiter: {0}")]
    NotAnEscrow(#[from] InvalidDatum),
    /// The escrow was forged to look disputed: no purchase can have created it.
    #[error("ref: names an escrow that no purchase locked")]
    NeverLocked,
    /// The escrow does not hold enough to pay the award.
    #[error("the escrow holds less than the buyer's collateral: it cannot be divided")]
    Unpayable,
    /// The number of transactions between the escrow and its lock exceeds what one request may read. The next request
    /// continues the trace where this one stopped.
    #[error("still tracing the escrow back to its lock: ask again")]
    StillTracing,
    /// The provider's data refers to a transaction that the provider does not know, so the data is incomplete at the
    /// moment.
    #[error("the chain provider lags: ask again")]
    Lagging,
    /// The payout could not be sent at this time, usually because the payout of another award is spending the same
    /// outputs of the arbiter's wallet.
    #[error("the arbiter's wallet is busy: ask again")]
    Busy,
    /// The transaction that pays the award was recorded and sent, but no answer tells whether a node accepted it.
    #[error("no node has answered the submission of the award yet: ask again")]
    Unanswered,
    /// The transaction that pays the award could not be built, or a node rejected it. Contains the reason.
    #[error("the award was refused: {0}")]
    Refused(String),
    /// The arbiter's wallet cannot pay the fee.
    #[error("the arbiter's wallet cannot pay the fee: {0}")]
    Wallet(BuildError),
    /// The arbiter's key cannot sign.
    #[error("the arbiter's key cannot sign: {0}")]
    Signature(#[from] Cip8Error),
    /// The chain cannot be read.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The database is unavailable.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl ResolveError {
    /// Returns `true` if the request itself is wrong, so that repeating it cannot succeed.
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
