//! The statuses of a purchase.

use escrow::{State, spend::Ending};
use serde::{Deserialize, Serialize};

/// How a purchase stands. In text: as the API spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Status {
    /// Protected: locked.
    FundsLocked,
    /// Protected: the seller posted a result.
    ResultSubmitted,
    /// Protected: the buyer asked for the money back before there was a result.
    RefundRequested,
    /// Protected: the buyer asked for the money back, and there is a result.
    Disputed,
    /// Protected: the buyer released the money.
    WithdrawAuthorized,
    /// Protected: the seller gave in.
    RefundAuthorized,
    /// Protected: our collecting transaction is submitted.
    #[serde(rename = "withdrawing")]
    Withdrawing,
    /// Instant: paid.
    #[serde(rename = "settled")]
    Settled,
    /// Protected: over, the seller got most.
    #[serde(rename = "withdrawn")]
    Withdrawn,
    /// Protected: over, the buyer got most.
    #[serde(rename = "refunded")]
    Refunded,
    /// Protected: over, neither was paid.
    #[serde(rename = "closed")]
    Closed,
}

impl Status {
    /// The API's word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FundsLocked => "FundsLocked",
            Self::ResultSubmitted => "ResultSubmitted",
            Self::RefundRequested => "RefundRequested",
            Self::Disputed => "Disputed",
            Self::WithdrawAuthorized => "WithdrawAuthorized",
            Self::RefundAuthorized => "RefundAuthorized",
            Self::Withdrawing => "withdrawing",
            Self::Settled => "settled",
            Self::Withdrawn => "withdrawn",
            Self::Refunded => "refunded",
            Self::Closed => "closed",
        }
    }
}

impl From<State> for Status {
    fn from(state: State) -> Self {
        match state {
            State::FundsLocked => Self::FundsLocked,
            State::ResultSubmitted => Self::ResultSubmitted,
            State::RefundRequested => Self::RefundRequested,
            State::Disputed => Self::Disputed,
            State::WithdrawAuthorized => Self::WithdrawAuthorized,
            State::RefundAuthorized => Self::RefundAuthorized,
        }
    }
}

impl From<Ending> for Status {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Withdrawn => Self::Withdrawn,
            Ending::Refunded => Self::Refunded,
            Ending::Closed => Self::Closed,
        }
    }
}
