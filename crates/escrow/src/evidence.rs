//! How a dispute is decided: three checks of what was delivered against what is on the chain, and a time by which
//! evidence must be there.
//!
//! ```text
//!   disputed ──────────── external dispute unlock ── 10 min ── evidence deadline
//!      │ conclusive evidence: decided at once                        │
//!      │ anything else: no verdict yet ──────────────────────────────┤ the buyer wins
//! ```

use cardano::{ContentHash, TxHash, slots::Millis};
use serde::{Deserialize, Serialize};

use crate::{Deadlines, result::result_hash};

/// How long after the arbiters' window opens evidence may still arrive.
pub const EVIDENCE_GRACE_MS: Millis = 10 * 60_000;

/// Who gets the money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Winner {
    /// All of it goes back.
    Buyer,
    /// All but the buyer's collateral.
    Seller,
}

/// The three checks of the service's arbiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checks {
    /// The escrow's `input_hash` commits to this listing.
    pub escrow_is_for_listing: bool,
    /// `result_hash` is the hash of the lock and this output.
    pub output_is_what_seller_posted: bool,
    /// The output's SHA-256 is the listing's content hash.
    pub output_matches_listing: bool,
}

/// What a dispute turns on.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// `input_hash` of the disputed escrow.
    pub input_hash: &'a [u8],
    /// `result_hash` of the disputed escrow.
    pub result_hash: &'a [u8],
    /// The transaction that locked it.
    pub lock: TxHash,
    /// What the quote of the listing commits to.
    pub listing_input_hash: ContentHash,
    /// The listing's content hash.
    pub content_hash: ContentHash,
    /// What was delivered, as it was received.
    pub output: &'a str,
}

/// The decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Who wins; `None` as long as evidence may still arrive.
    pub winner: Option<Winner>,
    /// The reason, for people and in the answer.
    pub reason: Reason,
    /// Until when evidence may arrive, POSIX ms.
    pub evidence_deadline: Millis,
    /// What was found.
    pub checks: Checks,
}

/// Why a verdict is as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// All three checks hold.
    Delivered,
    /// The seller posted this output for this listing, and it is not the listing's content.
    WrongContent,
    /// The evidence is not about this escrow's result; there is still time for evidence that is.
    Inconclusive,
    /// No evidence for the seller came in time.
    NoEvidence,
}

impl Reason {
    /// For people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Delivered => "the seller delivered what the listing promised",
            Self::WrongContent => "the seller posted something else than the listing's content",
            Self::Inconclusive => "the evidence does not belong to this escrow; evidence that does may still be sent",
            Self::NoEvidence => "no evidence for the seller arrived before the evidence deadline",
        }
    }
}

impl Checks {
    /// Looks at the evidence.
    #[must_use]
    pub fn of(evidence: &Evidence<'_>) -> Self {
        Self {
            escrow_is_for_listing: evidence.input_hash == evidence.listing_input_hash.as_bytes(),
            output_is_what_seller_posted: evidence.result_hash
                == result_hash(&evidence.lock, evidence.output).as_bytes(),
            output_matches_listing: ContentHash::of(evidence.output.as_bytes()) == evidence.content_hash,
        }
    }

    /// The seller wins only if all three hold. Evidence that shows the seller posted something else for this listing
    /// decides for the buyer at once; evidence about another listing or another output shows nothing.
    const fn shown(self) -> Option<(Winner, Reason)> {
        match self {
            Self { escrow_is_for_listing: true, output_is_what_seller_posted: true, output_matches_listing } => {
                if output_matches_listing {
                    Some((Winner::Seller, Reason::Delivered))
                } else {
                    Some((Winner::Buyer, Reason::WrongContent))
                }
            }
            _ => None,
        }
    }
}

/// Decides a dispute on what the evidence shows at this time.
#[must_use]
pub fn decide(checks: Checks, deadlines: &Deadlines, now: Millis) -> Verdict {
    let evidence_deadline = deadlines.external_dispute_unlock.saturating_add(EVIDENCE_GRACE_MS);
    let (winner, reason) = match checks.shown() {
        Some((winner, reason)) => (Some(winner), reason),
        None if now < evidence_deadline => (None, Reason::Inconclusive),
        None => (Some(Winner::Buyer), Reason::NoEvidence),
    };
    Verdict { winner, reason, evidence_deadline, checks }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: TxHash = TxHash::new([0xab; 32]);
    const DISPUTE: Millis = 1_785_766_800_000;
    const DEADLINE: Millis = DISPUTE + 600_000;

    /// One case: whether each check holds, the time, and what is decided.
    type DisputeCase = ([bool; 3], Millis, Option<Winner>, Reason);

    #[rustfmt::skip]
    const CASES: &[DisputeCase] = &[
        // for listing, posted, content
        ([true,  true,  true],  0,            Some(Winner::Seller), Reason::Delivered),
        ([true,  true,  true],  DEADLINE + 1, Some(Winner::Seller), Reason::Delivered),
        ([true,  true,  false], 0,            Some(Winner::Buyer),  Reason::WrongContent),
        ([true,  true,  false], DEADLINE + 1, Some(Winner::Buyer),  Reason::WrongContent),
        ([true,  false, true],  0,            None,                 Reason::Inconclusive),
        ([true,  false, true],  DISPUTE,      None,                 Reason::Inconclusive),
        ([true,  false, true],  DEADLINE - 1, None,                 Reason::Inconclusive),
        ([true,  false, true],  DEADLINE,     Some(Winner::Buyer),  Reason::NoEvidence),
        ([true,  false, false], DEADLINE - 1, None,                 Reason::Inconclusive),
        ([true,  false, false], DEADLINE,     Some(Winner::Buyer),  Reason::NoEvidence),
        ([false, true,  true],  DEADLINE - 1, None,                 Reason::Inconclusive),
        ([false, true,  true],  DEADLINE,     Some(Winner::Buyer),  Reason::NoEvidence),
        ([false, true,  false], DEADLINE - 1, None,                 Reason::Inconclusive),
        ([false, true,  false], DEADLINE,     Some(Winner::Buyer),  Reason::NoEvidence),
        ([false, false, true],  DEADLINE - 1, None,                 Reason::Inconclusive),
        ([false, false, true],  DEADLINE,     Some(Winner::Buyer),  Reason::NoEvidence),
        ([false, false, false], DEADLINE - 1, None,                 Reason::Inconclusive),
        ([false, false, false], DEADLINE,     Some(Winner::Buyer),  Reason::NoEvidence),
    ];

    #[test]
    fn every_case_is_decided_as_in_the_table() {
        let deadlines = Deadlines { external_dispute_unlock: DISPUTE, ..Deadlines::issue(0).unwrap() };
        for &([listing, posted, content], now, winner, reason) in CASES {
            let output = "the prompt";
            let posted_hash = result_hash(&LOCK, if posted { output } else { "another" });
            let listing_input_hash = ContentHash::new([1; 32]);
            let evidence = Evidence {
                input_hash: if listing { listing_input_hash.as_bytes() } else { &[2; 32] },
                result_hash: posted_hash.as_bytes(),
                lock: LOCK,
                listing_input_hash,
                content_hash: ContentHash::of(if content { output.as_bytes() } else { b"another" }),
                output,
            };
            let verdict = decide(Checks::of(&evidence), &deadlines, now);
            let case = format!("{listing} {posted} {content} at {now}");
            assert_eq!((verdict.winner, verdict.reason), (winner, reason), "{case}");
            assert_eq!(verdict.evidence_deadline, DEADLINE);
            let Checks { escrow_is_for_listing, output_is_what_seller_posted, output_matches_listing } = verdict.checks;
            let found = [escrow_is_for_listing, output_is_what_seller_posted, output_matches_listing];
            assert_eq!(found, [listing, posted, content], "{case}");
        }
    }

    #[test]
    fn an_empty_result_matches_no_output() {
        let evidence = Evidence {
            input_hash: &[1; 32],
            result_hash: &[],
            lock: LOCK,
            listing_input_hash: ContentHash::new([1; 32]),
            content_hash: ContentHash::of(b""),
            output: "",
        };
        assert!(!Checks::of(&evidence).output_is_what_seller_posted);
    }
}
