//! Describes a purchase's state to its buyer: a headline, one or two sentences in the second person, and at most one
//! action. Puts the contract's rules (`escrow::rules`) and the release of content (`market::release`) into words.

use api_types::BuyerAction;
use escrow::evidence::EVIDENCE_GRACE_MS;
use market::purchase::Status;
use maud::{Markup, html};

use crate::{
    format::{at, clock},
    view::{Deadlines, Event, Purchase, deadlines},
};

/// Description of a purchase's state for its buyer.
pub struct StatusText {
    /// Headline of the description.
    pub headline: &'static str,
    /// Explanation below the headline, one or two sentences.
    pub explanation: Markup,
    /// Time in POSIX ms from which the description changes even without an event on the chain; `None` if no such change
    /// is due.
    pub changes_at_ms: Option<u64>,
    /// Action that the buyer may want to take now; `None` if there is none.
    pub action: Option<Offer>,
}

/// An action that a purchase's page offers to the buyer.
pub struct Offer {
    pub action: BuyerAction,
    /// Label of the action's button.
    pub label: &'static str,
    /// Summary of the collapsed section with the button, for an action that is needed only if something is wrong;
    /// `None` if the action is the next step.
    pub only_if_wrong: Option<Markup>,
}

const fn next_step(action: BuyerAction, label: &'static str) -> Option<Offer> {
    Some(Offer { action, label, only_if_wrong: None })
}

/// An arbiter's decision of a dispute, as the chain shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    ForBuyer,
    ForSeller,
    /// The money was divided between buyer and seller.
    Divided,
}

/// Returns an arbiter's decision and the event that paid it out, or `None` if the escrow did not end by a decision.
pub fn ruling(purchase: &Purchase) -> Option<(Ruling, &Event)> {
    let ends = |event: &Event| match event.status.as_str() {
        "withdrawn" => Some(Ruling::ForSeller),
        "refunded" => Some(Ruling::ForBuyer),
        "closed" => Some(Ruling::Divided),
        _ => None,
    };
    let (_, end) = purchase
        .events
        .iter()
        .zip(purchase.events.iter().skip(1))
        .find(|(before, end)| before.status == Status::Disputed.name() && ends(end).is_some())?;
    Some((ends(end)?, end))
}

/// Returns a purchase's status in one or two words, for its buyer.
pub fn standing(purchase: &Purchase) -> &'static str {
    match ruling(purchase) {
        Some((Ruling::ForSeller, _)) => "Dispute lost",
        Some((Ruling::ForBuyer, _)) => "Dispute won",
        Some((Ruling::Divided, _)) => "Divided by the arbiter",
        None => purchase.status.words(),
    }
}

/// Returns the CSS class for a purchase's status, so that a lost dispute looks different from a sale that went well.
pub fn tone(purchase: &Purchase) -> &'static str {
    match ruling(purchase) {
        Some((Ruling::ForSeller, _)) => Status::Disputed.name(),
        _ => purchase.status.name(),
    }
}

/// Returns whether the buyer may read the content again. `true` for an instant purchase, and for a protected one once a
/// block includes the proof of delivery or a payout to the seller. `false` after a refund.
pub fn is_readable(purchase: &Purchase) -> bool {
    let proven =
        |event: &Event| matches!(event.status.as_str(), "ResultSubmitted" | "Disputed" | "withdrawn" | "closed");
    purchase.status != Status::Refunded && (purchase.escrow.is_none() || purchase.events.iter().any(proven))
}

/// Describes a purchase's state to its buyer. `now` is the time in POSIX ms that escrow deadlines are compared with.
pub fn tell(purchase: &Purchase, now: u64) -> StatusText {
    let told = |what, how| StatusText { headline: what, explanation: how, changes_at_ms: None, action: None };
    let Some(deadlines) = deadlines(purchase) else {
        return told(
            "Delivered",
            html! { "You paid the seller directly, so the sale is final: buyer protection does not cover it." },
        );
    };
    let balance = purchase.paid_from_balance == Some(true);
    match purchase.status {
        Status::FundsLocked | Status::RefundRequested => without_proof(purchase, &deadlines, balance, now),
        Status::ResultSubmitted => delivered(&deadlines, now),
        Status::Disputed => disputed(purchase, &deadlines, now),
        Status::WithdrawAuthorized => {
            told("You released the money", html! { "The seller collects it, usually within minutes." })
        }
        Status::RefundAuthorized if balance => told(
            "The seller agreed to a refund",
            html! { "Your money returns to your balance by itself, usually within minutes." },
        ),
        Status::RefundAuthorized => StatusText {
            action: next_step(BuyerAction::TakeRefund, "Take your money back"),
            ..told(
                "The seller agreed to a refund",
                html! { "The contract holds your money until you take it back; there is no deadline." },
            )
        },
        Status::Withdrawing => {
            told("The seller is being paid", html! { "The payment is on its way. Your text stays yours." })
        }
        Status::Withdrawn | Status::Refunded | Status::Closed => ended(purchase, balance),
        Status::Settled => told("Delivered", html! { "The sale is final." }),
    }
}

fn without_proof(purchase: &Purchase, deadlines: &Deadlines, balance: bool, now: u64) -> StatusText {
    let by = deadlines.submit_result;
    if now >= by {
        let what = "No proof of delivery came in time";
        return if balance {
            StatusText {
                headline: what,
                explanation: html! { "It was due by " (clock(by)) ". Your money returns to your balance by itself, usually within minutes." },
                changes_at_ms: None,
                action: next_step(BuyerAction::TakeRefund, "Take your money back now"),
            }
        } else {
            StatusText {
                headline: what,
                explanation: html! { "It was due by " (clock(by)) ". Take your money back: all that the contract holds is yours." },
                changes_at_ms: None,
                action: next_step(BuyerAction::TakeRefund, "Take your money back"),
            }
        };
    }
    let otherwise = if balance {
        html! { "If no proof comes by " (clock(by)) ", your money returns to your balance by itself." }
    } else {
        html! { "If no proof comes by " (clock(by)) ", you take your money back here." }
    };
    if purchase.status == Status::RefundRequested {
        let how = html! { (otherwise) " If one comes before, the purchase is in dispute, and the arbiter decides." };
        return StatusText {
            headline: "You asked for a refund",
            explanation: how,
            changes_at_ms: Some(by),
            action: None,
        };
    }
    StatusText {
        headline: "Waiting for the proof of delivery",
        explanation: html! { "Your text opens here once the seller has recorded its fingerprint on Cardano's public ledger, usually within a minute. " (otherwise) },
        changes_at_ms: Some(by),
        action: Some(Offer {
            action: BuyerAction::RequestRefund,
            label: "Ask for a refund",
            only_if_wrong: Some(html! { "Changed your mind? Ask for a refund" }),
        }),
    }
}

fn delivered(deadlines: &Deadlines, now: u64) -> StatusText {
    let unlock = deadlines.unlock;
    if now >= unlock {
        return StatusText {
            headline: "Delivered",
            explanation: html! { "The time to dispute ended at " (clock(unlock)) ". The contract pays the seller next, usually within minutes." },
            changes_at_ms: None,
            action: None,
        };
    }
    StatusText {
        headline: "Delivered",
        explanation: html! { "All good? You need not do anything: the seller is paid at " (clock(unlock)) "." },
        changes_at_ms: Some(unlock),
        action: Some(Offer {
            action: BuyerAction::Dispute,
            label: "Dispute",
            only_if_wrong: Some(html! { "Something wrong? Dispute this purchase (until " (clock(unlock)) ")" }),
        }),
    }
}

fn disputed(purchase: &Purchase, deadlines: &Deadlines, now: u64) -> StatusText {
    let opens = deadlines.external_dispute_unlock;
    let compares = "The arbiter compares the fingerprint of what was delivered with the listed one, and nothing else.";
    let over = opens.saturating_add(EVIDENCE_GRACE_MS);
    let how = match &purchase.decision {
        Some(decision) => html! {
            "The arbiter decided for " (if decision.winner == "buyer" { "you" } else { "the seller" }) ": " (decision.reason)
            ". The contract pays it out next."
        },
        None if now < opens => {
            html! { (compares) " It decides from " (at(opens)) " on; your money stays in the contract until then." }
        }
        None if now < over => html! { (compares) " It decides by " (clock(over)) " at the latest." },
        None => html! { (compares) " Its decision is due." },
    };
    StatusText {
        headline: "You disputed this purchase",
        explanation: how,
        changes_at_ms: [opens, over].into_iter().find(|at| now < *at),
        action: Some(Offer {
            action: BuyerAction::Release,
            label: "Release the money to the seller",
            only_if_wrong: Some(html! { "Changed your mind? End the dispute" }),
        }),
    }
}

fn ended(purchase: &Purchase, balance: bool) -> StatusText {
    let told = |what, how| StatusText { headline: what, explanation: how, changes_at_ms: None, action: None };
    let yours = if balance { "your Surety balance" } else { "your wallet" };
    let reason = html! { @if let Some(decision) = &purchase.decision { ": " (decision.reason) } ". " };
    match (ruling(purchase).map(|(ruling, _)| ruling), purchase.status) {
        (Some(Ruling::ForSeller), _) => told(
            "You lost the dispute",
            html! { "The arbiter decided for the seller" (reason) "The seller has the price. Your text stays yours." },
        ),
        (Some(Ruling::ForBuyer), _) => told(
            "You won the dispute",
            html! { "The arbiter decided for you" (reason) "Your money is back in " (yours) "." },
        ),
        (Some(Ruling::Divided), _) => told(
            "The arbiter divided the money",
            html! { "The arbiter decided" (reason) "The last transaction below shows who got how much." },
        ),
        (None, Status::Refunded) => told("Refunded", html! { "Your money is back in " (yours) "." }),
        (None, Status::Withdrawn) if is_creator_paid(purchase) => {
            told("Complete", html! { "The seller is paid. Your text stays yours." })
        }
        (None, Status::Withdrawn) => told(
            "Complete",
            html! { "The contract paid out; the seller's share follows by itself. Your text stays yours." },
        ),
        (None, _) => told(
            "Closed",
            html! { "The contract ended, neither paid to the seller alone nor refunded. The last transaction below shows who got how much." },
        ),
    }
}

fn is_creator_paid(purchase: &Purchase) -> bool {
    purchase.events.iter().any(|event| event.status == "creator_paid")
}

#[cfg(test)]
mod tests;
