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
    let Some(deadlines) = purchase.escrow.as_ref().map(|escrow| escrow.deadlines) else {
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
