//! The watcher's requests to the arbiter and the arbiter's answers, `POST /disputes/resolve`. They are internal, so not
//! part of the published API description.

use cardano::{ContentHash, TxHash, TxRef};
use escrow::{
    dispute::Split,
    evidence::{Checks, Winner},
};
use serde::{Deserialize, Serialize};

/// A request to resolve a dispute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolveRequest {
    /// Transaction output of the disputed escrow.
    #[serde(rename = "ref")]
    pub escrow: TxRef,
    /// Listing that was purchased.
    pub listing: DisputedListing,
    /// Delivered content, as the buyer received it.
    pub output: String,
}

/// The listing that a dispute is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DisputedListing {
    /// Id of the listing.
    pub id: String,
    /// SHA-256 of the listing's content.
    pub content_hash: ContentHash,
}

/// The arbiter's answer to a request to resolve a dispute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ResolveResult {
    /// The dispute is decided, and the transaction that pays the award is accepted by a node or included in a block.
    Paid {
        /// Winner, reason, and results of the checks.
        verdict: Finding,
        /// Amounts that the award pays to both parties.
        payout: Split,
        /// Id of the transaction that pays the award.
        tx: TxHash,
    },
    /// The dispute is decided, and the award will be paid as soon as the contract allows the arbiters to act.
    Signed {
        /// Winner, reason, and results of the checks.
        verdict: Finding,
        /// Amounts that the award pays to both parties.
        payout: Split,
        /// Time from which the contract allows the arbiters to act, RFC 3339.
        opens_at: String,
    },
    /// The dispute is not decided yet, or there is nothing to decide.
    NoVerdict {
        /// The evidence found so far. Nobody has won yet.
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

/// The arbiter's verdict and its reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Winning party; null if nothing is decided.
    pub winner: Option<Winner>,
    /// Reason for the verdict, in words.
    pub reason: String,
    /// Time until which the parties may submit evidence, RFC 3339.
    pub evidence_deadline: String,
    /// Results of the single checks on which the verdict is based.
    pub checks: Checks,
}
