//! `POST /disputes/resolve`: what the watcher asks, and what the arbiter answers. Internal, not in the published description.

use cardano::{ContentHash, TxHash, TxRef};
use escrow::{
    dispute::Split,
    evidence::{Checks, Winner},
};
use serde::{Deserialize, Serialize};

/// A request to resolve a dispute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolveRequest {
    /// The disputed output.
    #[serde(rename = "ref")]
    pub escrow: TxRef,
    /// What was bought.
    pub listing: DisputedListing,
    /// What was delivered, as it was received.
    pub output: String,
}

/// The listing that a dispute is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DisputedListing {
    /// Its id.
    pub id: String,
    /// The hash of its content.
    pub content_hash: ContentHash,
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ResolveResult {
    /// A node took the award, or the chain has it.
    Paid {
        /// What the evidence shows, and why.
        verdict: Finding,
        /// Who gets how much.
        payout: Split,
        /// The transaction that pays the award.
        tx: TxHash,
    },
    /// Decided, and to be paid once the arbiters' window opens.
    Signed {
        /// What the evidence shows, and why.
        verdict: Finding,
        /// Who will get how much.
        payout: Split,
        /// When, RFC 3339.
        opens_at: String,
    },
    /// Not decided yet, or nothing to decide.
    NoVerdict {
        /// What was found.
        verdict: Finding,
    },
}

impl ResolveResult {
    /// The status, as the API names it.
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
    /// Who wins; null where nothing is decided.
    pub winner: Option<Winner>,
    /// In words.
    pub reason: String,
    /// Until when evidence may arrive, RFC 3339.
    pub evidence_deadline: String,
    /// What was looked at.
    pub checks: Checks,
}
