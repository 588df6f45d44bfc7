//! Failures of the database, the chain's provider and the content store.

use cardano::chain::ChainError;
use outbox::OutboxError;
use sql::DatabaseError;

use crate::contents::ContentsError;

/// The database, the provider or the content store failed. The same call may succeed later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error(transparent)]
    Contents(#[from] ContentsError),
}

impl PortError {
    /// Returns whether the provider did not answer. A too long answer counts as an answer, because the provider is not
    /// at fault.
    pub(crate) const fn is_provider_down(&self) -> bool {
        matches!(self, Self::Chain(error) if !matches!(error, ChainError::TooLong))
    }
}

impl From<OutboxError> for PortError {
    fn from(error: OutboxError) -> Self {
        match error {
            OutboxError::Database(error) => Self::Database(error),
            OutboxError::Chain(error) => Self::Chain(error),
        }
    }
}

/// Implements `From` for use with `?`, through an intermediate error type.
macro_rules! from_by_way_of {
    ($error:ty, $way:ty: $($cause:ty),+) => {$(
        impl From<$cause> for $error {
            fn from(cause: $cause) -> Self {
                Self::from(<$way>::from(cause))
            }
        }
    )+};
}
pub(crate) use from_by_way_of;
