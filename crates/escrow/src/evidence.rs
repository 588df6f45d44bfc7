//! Decides a dispute: three checks of the delivered text against the escrow, and a deadline by which evidence must
//! arrive.
//!
//! ```text
//!   disputed ──────────── external dispute unlock ── 10 min ── evidence deadline
//!      │ conclusive evidence: decided at once                        │
//!      │ anything else: no verdict yet ──────────────────────────────┤ the buyer wins
//! ```

use cardano::{ContentHash, TxHash, slots::Millis};
use serde::{Deserialize, Serialize};

use crate::{Deadlines, result::result_hash};

/// Time for which evidence may still arrive after `external_dispute_unlock`, in milliseconds.
pub const EVIDENCE_GRACE_MS: Millis = 10 * 60_000;

/// The party that wins a dispute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Winner {
    /// The buyer gets everything back.
    Buyer,
    /// The seller gets everything but the buyer's collateral.
    Seller,
}

/// Results of the arbiter's three checks of a dispute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checks {
    /// `true` if the escrow's `input_hash` commits to this listing.
    pub escrow_is_for_listing: bool,
    /// `true` if the escrow's `result_hash` is the hash of the lock's transaction id and the delivered text.
    pub output_is_what_seller_posted: bool,
    /// `true` if the SHA-256 of the delivered text is the listing's content hash.
    pub output_matches_listing: bool,
}

/// The facts on which a dispute is decided. Anyone may submit them.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// `input_hash` of the disputed escrow.
    pub input_hash: &'a [u8],
    /// `result_hash` of the disputed escrow.
    pub result_hash: &'a [u8],
    /// Id of the transaction that locked the escrow.
    pub lock: TxHash,
    /// Digest of the listing's request commitment. The escrow is for this listing if `input_hash` equals this digest.
    pub listing_input_hash: ContentHash,
    /// Content hash of the listing.
    pub content_hash: ContentHash,
    /// Delivered text, as the buyer received it.
    pub output: &'a str,
}

/// Outcome of a dispute at one point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The winning party; `None` as long as the dispute is undecided because evidence may still arrive.
    pub winner: Option<Winner>,
    /// Reason for the outcome.
    pub reason: Reason,
    /// Time until which evidence may arrive, in POSIX milliseconds.
    pub evidence_deadline: Millis,
    /// Results of the checks of the delivered text.
    pub checks: Checks,
}

/// Reason for the outcome of a dispute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// The three checks all pass.
    Delivered,
    /// The seller committed to this text for this listing, but the text differs from the listing's content.
    WrongContent,
    /// The seller did not commit to this text, and other evidence may still arrive.
    Inconclusive,
    /// No evidence for the seller arrived before the deadline.
    NoEvidence,
}

impl Reason {
    /// Returns an explanation of the reason for people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Delivered => "the seller delivered what the listing promised",
            Self::WrongContent => "the seller posted something else than the listing's content",
            Self::Inconclusive => "the evidence does not belong to this escrow; evidence that does may still be sent",
            Self::NoEvidence => "the text that the seller's proof is of did not reach the arbiter in time",
        }
    }
}

impl Checks {
    /// Runs the three checks on the evidence.
    #[must_use]
    pub fn of(evidence: &Evidence<'_>) -> Self {
        Self {
            escrow_is_for_listing: evidence.input_hash == evidence.listing_input_hash.as_bytes(),
            output_is_what_seller_posted: evidence.result_hash
                == result_hash(&evidence.lock, evidence.output).as_bytes(),
            output_matches_listing: ContentHash::of(evidence.output.as_bytes()) == evidence.content_hash,
        }
    }

    /// Returns the outcome that the checks prove on their own, or `None` if they prove nothing.
    ///
    /// The seller wins only if all three checks pass. If the escrow is for the listing and the text is what the seller
    /// committed to, but it is not the listing's content, the buyer wins at once. Evidence about another listing or
    /// another text proves nothing.
    const fn conclusive_outcome(self) -> Option<(Winner, Reason)> {
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

/// Decides a dispute at the time `now` (POSIX milliseconds), given the results of the three checks.
#[must_use]
pub fn decide(checks: Checks, deadlines: &Deadlines, now: Millis) -> Verdict {
    let evidence_deadline = deadlines.external_dispute_unlock.saturating_add(EVIDENCE_GRACE_MS);
    let (winner, reason) = match checks.conclusive_outcome() {
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

    /// A test case: the results of the three checks, the time, and the expected winner and reason.
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
