//! Answers, as the API has them.

use cardano::{Lovelace, TxHash, slots::Millis};
use escrow::{
    dispute::Split,
    evidence::{Checks, Verdict, Winner},
};
use serde::{Deserialize, Serialize};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// `ResolveResult` of the API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resolution {
    status: Status,
    verdict: Shown,
    #[serde(skip_serializing_if = "Option::is_none")]
    payout: Option<Parts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tx: Option<TxHash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    opens_at: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Paid,
    Signed,
    NoVerdict,
}

/// A verdict as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    winner: Option<String>,
    reason: String,
    evidence_deadline: String,
    checks: Flags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_excessive_bools, reason = "the API's shape")]
struct Flags {
    escrow_is_for_listing: bool,
    output_is_what_seller_posted: bool,
    output_matches_listing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parts {
    buyer_lovelace: Lovelace,
    seller_lovelace: Lovelace,
}

/// A decision as it is kept: its verdict, and who gets how much.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Decision {
    verdict: Shown,
    payout: Parts,
}

impl From<Checks> for Flags {
    fn from(checks: Checks) -> Self {
        Self {
            escrow_is_for_listing: checks.escrow_is_for_listing,
            output_is_what_seller_posted: checks.output_is_what_seller_posted,
            output_matches_listing: checks.output_matches_listing,
        }
    }
}

impl From<&Verdict> for Shown {
    fn from(verdict: &Verdict) -> Self {
        Self {
            winner: verdict.winner.map(|winner| name(winner).to_owned()),
            reason: verdict.reason.text().to_owned(),
            evidence_deadline: date_time(verdict.evidence_deadline),
            checks: verdict.checks.into(),
        }
    }
}

/// A winner's name in the API.
pub(crate) const fn name(winner: Winner) -> &'static str {
    match winner {
        Winner::Buyer => "buyer",
        Winner::Seller => "seller",
    }
}

impl Decision {
    pub(crate) fn decided(verdict: &Verdict, winner: Winner, split: Split) -> Self {
        let payout = Parts { buyer_lovelace: split.buyer, seller_lovelace: split.seller };
        let shown = Shown { winner: Some(name(winner).to_owned()), ..verdict.into() };
        Self { verdict: shown, payout }
    }

    /// Who wins; `None` where what is kept is not a decision.
    pub(crate) fn who_wins(&self) -> Option<Winner> {
        [Winner::Buyer, Winner::Seller].into_iter().find(|winner| self.verdict.winner.as_deref() == Some(name(*winner)))
    }
}

impl Resolution {
    pub(crate) fn no_verdict(verdict: &Verdict) -> Self {
        Self { status: Status::NoVerdict, verdict: verdict.into(), payout: None, tx: None, opens_at: None }
    }

    /// What was found, about an escrow of which nothing is to be decided.
    pub(crate) fn nothing_to_decide(verdict: &Verdict, why: String) -> Self {
        let shown = Shown { winner: None, reason: why, ..verdict.into() };
        Self { verdict: shown, ..Self::no_verdict(verdict) }
    }

    /// Decided, but the parties took the escrow further before it could be paid.
    pub(crate) fn moved_on(decision: Decision, by: TxHash) -> Self {
        let reason = format!("the parties took the escrow further in {by}: ask about what it is now");
        let verdict = Shown { winner: None, reason, ..decision.verdict };
        Self { status: Status::NoVerdict, verdict, payout: None, tx: None, opens_at: None }
    }

    pub(crate) fn signed(decision: Decision, opens: Millis) -> Self {
        let Decision { verdict, payout } = decision;
        Self { status: Status::Signed, verdict, payout: Some(payout), tx: None, opens_at: Some(date_time(opens)) }
    }

    pub(crate) fn paid(decision: Decision, tx: TxHash) -> Self {
        let Decision { verdict, payout } = decision;
        Self { status: Status::Paid, verdict, payout: Some(payout), tx: Some(tx), opens_at: None }
    }
}

/// RFC 3339 in UTC with milliseconds; times beyond the year 9999, which only a forged escrow can have, stay digits.
fn date_time(ms: Millis) -> String {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(ms).saturating_mul(1_000_000)).ok();
    time.and_then(|time| time.format(&Rfc3339).ok()).unwrap_or_else(|| ms.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use escrow::evidence::Reason;

    fn verdict(winner: Option<Winner>) -> Verdict {
        let checks =
            Checks { escrow_is_for_listing: true, output_is_what_seller_posted: true, output_matches_listing: false };
        Verdict { winner, reason: Reason::WrongContent, evidence_deadline: 1_785_756_600_000, checks }
    }

    fn decision() -> Decision {
        let split = Split { buyer: Lovelace::from_ada(7), seller: Lovelace::ZERO };
        Decision::decided(&verdict(Some(Winner::Buyer)), Winner::Buyer, split)
    }

    #[test]
    fn answers_have_the_fields_of_the_api() {
        let tx = TxHash::new([0xab; 32]);
        let paid = serde_json::to_value(Resolution::paid(decision(), tx)).unwrap();
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
        let signed = serde_json::to_value(Resolution::signed(decision(), 1_785_756_000_001)).unwrap();
        assert_eq!((&signed["status"], &signed["opensAt"]), (&"signed".into(), &"2026-08-03T11:20:00.001Z".into()));
        assert!(signed.get("tx").is_none());
        let open = serde_json::to_value(Resolution::no_verdict(&verdict(None))).unwrap();
        assert_eq!((&open["status"], &open["verdict"]["winner"]), (&"no_verdict".into(), &serde_json::Value::Null));
        assert!(open.get("payout").is_none());
    }

    #[test]
    fn a_kept_decision_reads_as_it_was_made() {
        let kept = serde_json::to_string(&decision()).unwrap();
        let read: Decision = serde_json::from_str(&kept).unwrap();
        assert_eq!(read.who_wins(), Some(Winner::Buyer));
        let tx = TxHash::new([1; 32]);
        assert_eq!(Resolution::paid(read, tx), Resolution::paid(decision(), tx));
    }

    #[test]
    fn a_time_out_of_range_is_still_shown() {
        assert_eq!(date_time(u64::MAX), u64::MAX.to_string());
        assert_eq!(date_time(0), "1970-01-01T00:00:00Z");
    }
}
