//! The next step of a purchase and its deadline: the contract's rules (`escrow::rules`) in plain words.

use market::purchase::Status;

use crate::view::{Purchase, deadlines};

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// Short form.
    pub what: &'static str,
    /// Explanation, followed by the time.
    pub how: &'static str,
    /// Deadline or earliest time, POSIX ms.
    pub by: Option<u64>,
}

const fn over(what: &'static str, how: &'static str) -> Next {
    Next { what, how, by: None }
}

/// Step after the deadline for the proof of delivery.
const NO_PROOF: (&str, &str) = ("The buyer can take the money back", "No proof of delivery came in time. Due was");

/// Returns the next step of a purchase. `now` is the clock for escrow deadlines, POSIX ms.
pub fn after(purchase: &Purchase, now: u64) -> Next {
    let Some(deadlines) = deadlines(purchase) else {
        return over("All done", "The seller was paid at once, and the text was delivered.");
    };
    let until = |at: u64, before, after| {
        let (what, how) = if now < at { before } else { after };
        Next { what, how, by: Some(at) }
    };
    match purchase.status {
        Status::FundsLocked => until(
            deadlines.submit_result,
            ("Waiting for the proof of delivery", "Without it, the buyer can take the money back. Due"),
            NO_PROOF,
        ),
        Status::ResultSubmitted => until(
            deadlines.unlock,
            ("All good? Nothing to do", "Not the text that was listed? Dispute before the seller is paid,"),
            ("The seller collects the payment", "There was no dispute in time. Free since"),
        ),
        Status::RefundRequested => until(
            deadlines.submit_result,
            ("The buyer asked for a refund", "Without a proof of delivery, the buyer can take the money back from"),
            NO_PROOF,
        ),
        Status::Disputed => until(
            deadlines.external_dispute_unlock,
            ("The arbiter decides", "By comparing what was listed with what was delivered. From"),
            (
                "The arbiter is deciding",
                "By comparing what was listed with what was delivered. Usually within minutes, since",
            ),
        ),
        Status::WithdrawAuthorized => over("The seller collects the payment", "The buyer released the money."),
        Status::RefundAuthorized => over("The buyer can take the money back", "The seller agreed to a refund."),
        Status::Withdrawing => over("The seller is being paid", "The payment is on its way."),
        Status::Withdrawn if paid_creator(purchase) => over("All done", "The seller is paid and the sale is complete."),
        Status::Withdrawn => {
            over("The seller is being paid", "The contract paid out; the seller's share follows by itself.")
        }
        Status::Refunded => over("All done", "The buyer has the money back."),
        Status::Closed => over("All done", "The escrow ended, neither paid to the seller alone nor refunded."),
        Status::Settled => over("All done", "The seller was paid at once."),
    }
}

fn paid_creator(purchase: &Purchase) -> bool {
    purchase.events.iter().any(|event| event.status == "creator_paid")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const SUBMIT: u64 = 1_000;
    const UNLOCK: u64 = 2_000;
    const ARBITER: u64 = 3_000;

    fn purchase(status: &str, change: impl FnOnce(&mut Value)) -> Purchase {
        let id = "7".repeat(64);
        let mut purchase = json!({
            "id": id, "listingId": "lst_1", "mode": "protected", "status": status, "txHash": id,
            "buyerAddress": "addr_test1vpu5vlrf4xkxv2qpwngf6cjhtw542ayty80v8dyr49rf5eg57c2qv",
            "events": [{ "status": "FundsLocked", "txHash": id, "at": "0" }],
            "escrow": { "address": "addr_test1", "inputHash": id, "identifierFromPurchaser": id, "deadlines": {
                "payBy": "500", "submitResult": SUBMIT.to_string(), "unlock": UNLOCK.to_string(),
                "externalDisputeUnlock": ARBITER.to_string() } },
        });
        change(&mut purchase);
        serde_json::from_value(purchase).unwrap()
    }

    #[test]
    fn every_status_names_the_next_step_and_its_deadline() {
        for (status, now, what, by) in [
            ("FundsLocked", SUBMIT - 1, "Waiting for the proof of delivery", Some(SUBMIT)),
            ("FundsLocked", SUBMIT, "The buyer can take the money back", Some(SUBMIT)),
            ("ResultSubmitted", UNLOCK - 1, "All good? Nothing to do", Some(UNLOCK)),
            ("ResultSubmitted", UNLOCK, "The seller collects the payment", Some(UNLOCK)),
            ("RefundRequested", SUBMIT - 1, "The buyer asked for a refund", Some(SUBMIT)),
            ("RefundRequested", SUBMIT, "The buyer can take the money back", Some(SUBMIT)),
            ("Disputed", ARBITER - 1, "The arbiter decides", Some(ARBITER)),
            ("Disputed", ARBITER, "The arbiter is deciding", Some(ARBITER)),
            ("WithdrawAuthorized", 0, "The seller collects the payment", None),
            ("RefundAuthorized", 0, "The buyer can take the money back", None),
            ("withdrawing", 0, "The seller is being paid", None),
            ("withdrawn", 0, "The seller is being paid", None),
            ("refunded", 0, "All done", None),
            ("closed", 0, "All done", None),
        ] {
            let next = after(&purchase(status, |_| ()), now);
            assert_eq!((next.what, next.by), (what, by), "{status} at {now}");
        }
    }

    #[test]
    fn a_sale_is_complete_when_its_creator_is_paid_and_an_instant_one_at_once() {
        let paid = json!({ "status": "creator_paid", "txHash": "8".repeat(64), "at": "1" });
        let complete = purchase("withdrawn", |it| it["events"].as_array_mut().unwrap().push(paid));
        assert_eq!(after(&complete, 0).what, "All done");
        let instant = purchase("settled", |it| it["escrow"] = Value::Null);
        assert_eq!(after(&instant, 0).what, "All done");
    }
}
