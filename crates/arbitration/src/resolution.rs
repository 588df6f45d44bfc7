//! The stored form of awards, and the responses to requests.

use api_types::arbiter::{Finding, ResolveResult};
use cardano::{TxHash, slots::Millis};
use escrow::{
    dispute::Split,
    evidence::{Checks, Reason, Verdict, Winner},
};
use serde::{Deserialize, Serialize};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// The permanent decision of a dispute, as stored in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Award {
    /// Party that wins the dispute.
    pub(crate) winner: Winner,
    reason: Reason,
    evidence_deadline: Millis,
    checks: Checks,
    payout: Split,
}

/// Converts a verdict to its form in the API.
fn finding(Verdict { winner, reason, evidence_deadline, checks }: Verdict) -> Finding {
    Finding { winner, reason: reason.text().into(), evidence_deadline: date_time(evidence_deadline), checks }
}

impl Award {
    pub(crate) const fn new(verdict: &Verdict, winner: Winner, payout: Split) -> Self {
        let Verdict { reason, evidence_deadline, checks, .. } = *verdict;
        Self { winner, reason, evidence_deadline, checks, payout }
    }

    const fn verdict(&self) -> Verdict {
        let Self { winner, reason, evidence_deadline, checks, .. } = *self;
        Verdict { winner: Some(winner), reason, evidence_deadline, checks }
    }

    pub(crate) fn paid(&self, tx: TxHash) -> ResolveResult {
        ResolveResult::Paid { verdict: finding(self.verdict()), payout: self.payout, tx }
    }

    pub(crate) fn signed(&self, opens: Millis) -> ResolveResult {
        ResolveResult::Signed { verdict: finding(self.verdict()), payout: self.payout, opens_at: date_time(opens) }
    }

    /// Returns the response for an award that can no longer be paid, because a party has spent the disputed escrow in
    /// the transaction `by`.
    pub(crate) fn superseded(&self, by: TxHash) -> ResolveResult {
        let why = format!("the parties took the escrow further in {by}: ask about what it is now");
        undecided(self.verdict(), Some(why))
    }
}

/// Returns the response for a request that leads to no decision. The response contains the reason `why` or, if `why` is
/// `None`, the verdict's reason.
pub(crate) fn undecided(verdict: Verdict, why: Option<String>) -> ResolveResult {
    let found = finding(Verdict { winner: None, ..verdict });
    ResolveResult::NoVerdict { verdict: Finding { reason: why.unwrap_or(found.reason), ..found } }
}

/// Formats a time as RFC 3339 in UTC with milliseconds. Times after the year 9999, which only a forged escrow can
/// contain, are formatted as digits.
fn date_time(ms: Millis) -> String {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(ms).saturating_mul(1_000_000)).ok();
    time.and_then(|time| time.format(&Rfc3339).ok()).unwrap_or_else(|| ms.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardano::Lovelace;

    fn verdict(winner: Option<Winner>) -> Verdict {
        let checks =
            Checks { escrow_is_for_listing: true, output_is_what_seller_posted: true, output_matches_listing: false };
        Verdict { winner, reason: Reason::WrongContent, evidence_deadline: 1_785_756_600_000, checks }
    }

    fn award() -> Award {
        let split = Split { buyer: Lovelace::from_ada(7), seller: Lovelace::ZERO };
        Award::new(&verdict(Some(Winner::Buyer)), Winner::Buyer, split)
    }

    #[test]
    fn answers_have_the_fields_of_the_api() {
        let tx = TxHash::new([0xab; 32]);
        let paid = serde_json::to_value(award().paid(tx)).unwrap();
        assert_eq!(
            paid,
            serde_json::json!({
                "status": "paid",
                "verdict": {
                    "winner": "buyer", "reason": Reason::WrongContent.text(), "evidenceDeadline": "2026-08-03T11:30:00Z",
                    "checks": {"escrowIsForListing": true, "outputIsWhatSellerPosted": true, "outputMatchesListing": false},
                },
                "payout": {"buyerLovelace": "7000000", "sellerLovelace": "0"},
                "tx": tx,
            })
        );
        let signed = serde_json::to_value(award().signed(1_785_756_000_001)).unwrap();
        assert_eq!((&signed["status"], &signed["opensAt"]), (&"signed".into(), &"2026-08-03T11:20:00.001Z".into()));
        assert!(signed.get("tx").is_none());
        let open = serde_json::to_value(undecided(verdict(None), None)).unwrap();
        assert_eq!((&open["status"], &open["verdict"]["winner"]), (&"no_verdict".into(), &serde_json::Value::Null));
        assert!(open.get("payout").is_none());
        let superseded = serde_json::to_value(award().superseded(tx)).unwrap();
        assert_eq!(superseded["verdict"]["winner"], serde_json::Value::Null);
        assert!(superseded["verdict"]["reason"].as_str().unwrap().contains(&tx.to_string()));
    }

    #[test]
    fn a_stored_award_reads_back_unchanged() {
        let kept = serde_json::to_string(&award()).unwrap();
        assert_eq!(serde_json::from_str::<Award>(&kept).unwrap(), award());
    }

    #[test]
    fn a_time_out_of_range_is_still_shown() {
        assert_eq!(date_time(u64::MAX), u64::MAX.to_string());
        assert_eq!(date_time(0), "1970-01-01T00:00:00Z");
    }
}
