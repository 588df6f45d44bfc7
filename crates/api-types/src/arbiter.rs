//! The watcher's requests to the arbiter and its answers, `POST /disputes/resolve`. Internal, so not part of the
//! published API description.

use cardano::{ContentHash, TxHash, TxRef};
use escrow::{
    dispute::Split,
    evidence::{Checks, Winner},
};
use serde::{Deserialize, Serialize};

/// A request to resolve a dispute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolveRequest {
    /// Disputed output.
    #[serde(rename = "ref")]
    pub escrow: TxRef,
    /// Purchased listing.
    pub listing: DisputedListing,
    /// Delivered text, as the buyer received it.
    pub output: String,
}

/// The listing that a dispute is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DisputedListing {
    /// Id of the listing.
    pub id: String,
    /// SHA-256 of its content.
    pub content_hash: ContentHash,
}

/// The arbiter's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ResolveResult {
    /// A node has accepted the award's transaction, or a block includes it.
    Paid {
        /// The verdict.
        verdict: Finding,
        /// Amounts for both parties.
        payout: Split,
        /// Id of the transaction that pays the award.
        tx: TxHash,
    },
    /// Decided, and to be paid once the arbiters' window opens.
    Signed {
        /// The verdict.
        verdict: Finding,
        /// Amounts for both parties.
        payout: Split,
        /// Time at which the window opens, RFC 3339.
        opens_at: String,
    },
    /// Not decided yet, or nothing to decide.
    NoVerdict {
        /// The findings so far.
        verdict: Finding,
    },
}

impl ResolveResult {
    /// Returns the status's name in the API.
    #[must_use]
    pub const fn status(&self) -> &'static str {
        match self {
            Self::Paid { .. } => "paid",
            Self::Signed { .. } => "signed",
            Self::NoVerdict { .. } => "no_verdict",
        }
    }
}

/// A verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Winning party; null if nothing is decided.
    pub winner: Option<Winner>,
    /// Reason in words.
    pub reason: String,
    /// Time until which evidence may arrive, RFC 3339.
    pub evidence_deadline: String,
    /// Results of the checks.
    pub checks: Checks,
}
