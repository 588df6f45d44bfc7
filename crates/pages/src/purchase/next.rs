//! What happens next to a purchase, and by when: what the contract's rules (`escrow::rules`) mean to people.

use market::purchase::Status;

use crate::view::{Deadlines, Purchase};

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// In a few words.
    pub what: &'static str,
    /// In a sentence or two.
    pub how: &'static str,
    /// By when, or from when, POSIX ms.
    pub by: Option<u64>,
}

const fn over(what: &'static str, how: &'static str) -> Next {
    Next { what, how, by: None }
}

const fn by(what: &'static str, how: &'static str, at: u64) -> Next {
    Next { what, how, by: Some(at) }
}

/// What happens next to this purchase; `now` is the clock of escrow matters, POSIX ms.
pub fn after(purchase: &Purchase, now: u64) -> Next {
    let Some(deadlines) = Deadlines::of(purchase) else {
        return over("Nothing is left to do", "The seller was paid, and the content was delivered with the payment.");
    };
    match purchase.status {
        Status::FundsLocked => locked(deadlines, now),
        Status::ResultSubmitted => delivered(deadlines, now),
        Status::RefundRequested => requested(deadlines, now),
        Status::Disputed => disputed(deadlines, now),
        Status::WithdrawAuthorized => {
            over("The seller collects", "The buyer released the money; the seller may take it at any time.")
        }
        Status::RefundAuthorized => {
            over("The buyer takes the money back", "The seller agreed to a refund; the buyer may take it at any time.")
        }
        Status::Withdrawing => over("The seller is being paid", "The transaction is on its way into a block."),
        Status::Withdrawn if paid_creator(purchase) => {
            over("Nothing is left to do", "The sale is complete: the contract paid out, and the creator has the money.")
        }
        Status::Withdrawn => {
            over("The creator is paid", "The contract paid out; the creator's share follows by itself.")
        }
        Status::Refunded => over("Nothing is left to do", "The buyer has the money back."),
        Status::Closed => over("Nothing is left to do", "The contract was closed with payouts to neither alone."),
        Status::Settled => over("Nothing is left to do", "The seller was paid."),
    }
}

fn paid_creator(purchase: &Purchase) -> bool {
    purchase.events.iter().any(|event| event.status == "creator_paid")
}

const fn locked(deadlines: Deadlines, now: u64) -> Next {
    let at = deadlines.submit_result;
    if now < at {
        by(
            "The seller proves the delivery",
            "By then its hash has to be in the contract. If not, the buyer may take the money back.",
            at,
        )
    } else {
        by("The buyer may take the money back", "No proof of a delivery was posted in time.", at)
    }
}

const fn delivered(deadlines: Deadlines, now: u64) -> Next {
    let at = deadlines.unlock;
    if now < at {
        by(
            "The buyer may dispute",
            "Until then, if what came is not what was listed. After that the seller is paid.",
            at,
        )
    } else {
        by("The seller collects", "Nobody disputed in time: the seller may take the money.", at)
    }
}

const fn requested(deadlines: Deadlines, now: u64) -> Next {
    let at = deadlines.submit_result;
    if now < at {
        by(
            "The seller may still prove a delivery",
            "The buyer asked for the money back. Without a proof by then, the buyer may take it.",
            at,
        )
    } else {
        by("The buyer may take the money back", "No proof of a delivery was posted in time.", at)
    }
}

const fn disputed(deadlines: Deadlines, now: u64) -> Next {
    let at = deadlines.external_dispute_unlock;
    if now < at {
        by(
            "The arbiter decides",
            "From then on, by the hashes: of what was listed, what was promised, and what was delivered.",
            at,
        )
    } else {
        by(
            "The arbiter is deciding",
            "By the hashes: of what was listed, what was promised, and what was delivered. Within minutes.",
            at,
        )
    }
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
    fn every_status_says_what_comes_next_and_by_when() {
        for (status, now, what, by) in [
            ("FundsLocked", SUBMIT - 1, "The seller proves the delivery", Some(SUBMIT)),
            ("FundsLocked", SUBMIT, "The buyer may take the money back", Some(SUBMIT)),
            ("ResultSubmitted", UNLOCK - 1, "The buyer may dispute", Some(UNLOCK)),
            ("ResultSubmitted", UNLOCK, "The seller collects", Some(UNLOCK)),
            ("RefundRequested", SUBMIT - 1, "The seller may still prove a delivery", Some(SUBMIT)),
            ("RefundRequested", SUBMIT, "The buyer may take the money back", Some(SUBMIT)),
            ("Disputed", ARBITER - 1, "The arbiter decides", Some(ARBITER)),
            ("Disputed", ARBITER, "The arbiter is deciding", Some(ARBITER)),
            ("WithdrawAuthorized", 0, "The seller collects", None),
            ("RefundAuthorized", 0, "The buyer takes the money back", None),
            ("withdrawing", 0, "The seller is being paid", None),
            ("withdrawn", 0, "The creator is paid", None),
            ("refunded", 0, "Nothing is left to do", None),
            ("closed", 0, "Nothing is left to do", None),
        ] {
            let next = after(&purchase(status, |_| ()), now);
            assert_eq!((next.what, next.by), (what, by), "{status} at {now}");
        }
    }

    #[test]
    fn a_sale_is_complete_when_its_creator_is_paid_and_an_instant_one_at_once() {
        let paid = json!({ "status": "creator_paid", "txHash": "8".repeat(64), "at": "1" });
        let complete = purchase("withdrawn", |it| it["events"].as_array_mut().unwrap().push(paid));
        assert_eq!(after(&complete, 0).what, "Nothing is left to do");
        let instant = purchase("settled", |it| it["escrow"] = Value::Null);
        assert_eq!(after(&instant, 0).what, "Nothing is left to do");
    }
}
