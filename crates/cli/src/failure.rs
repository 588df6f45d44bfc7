//! Errors of commands, with advice and the exit code for scripts.

use provider::ProviderError;

use crate::{keys::NotOwner, verify::NotAsAsked};

/// Reason why a command failed, with advice.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The service, the ledger or this machine rejected the command.
    #[error("{0}")]
    Refused(String),
    /// The arguments are invalid, or the wallet does not exist.
    #[error("{0}")]
    Usage(String),
    /// The service or the provider did not answer, or failed temporarily.
    #[error("{0}")]
    Unreachable(String),
    /// The outcome of a payment is not known yet.
    #[error("{0}")]
    Pending(String),
    /// The evidence is consistent, but some of its parts are not proven by anyone.
    #[error("not proven: {0}")]
    Unproven(String),
    /// The draft does not match the command.
    #[error("not signed: {0}. Nothing was paid. Do not trust the service at this address")]
    NotAsAsked(#[from] NotAsAsked),
}

impl Failure {
    /// Returns the exit code and its name, as listed in the help.
    pub const fn kind(&self) -> (u8, &'static str) {
        match self {
            Self::Refused(_) => (1, "refused"),
            Self::Usage(_) => (2, "usage"),
            Self::Unreachable(_) => (3, "unreachable"),
            Self::Pending(_) => (4, "pending"),
            Self::NotAsAsked(_) => (5, "not_as_asked"),
            Self::Unproven(_) => (6, "unproven"),
        }
    }
}

impl From<NotOwner> for Failure {
    fn from(error: NotOwner) -> Self {
        Self::Refused(error.to_string())
    }
}

impl From<ProviderError> for Failure {
    fn from(error: ProviderError) -> Self {
        match error {
            ProviderError::Unreachable { .. } => Self::Unreachable(format!(
                "the chain's provider does not answer: {error}. Is `make dev` running? For another one set BLOCKFROST_URL, and BLOCKFROST_PROJECT_ID"
            )),
            ProviderError::NotIncluded(..) => Self::Pending(error.to_string()),
            // Blockfrost's answer to requests without a project id.
            ProviderError::Call { why, .. } if why.starts_with("status 403") => Self::Usage(
                "the chain's provider asks for a project id: put one (free at blockfrost.io) into BLOCKFROST_PROJECT_ID".into(),
            ),
            ProviderError::Refused(_) => Self::Refused(error.to_string()),
            other => Self::Refused(format!("the chain's provider: {other}")),
        }
    }
}
