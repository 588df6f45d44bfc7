//! Shows the progress of a protected purchase in three steps: paid and held, delivery proven, money paid out.

use market::purchase::Status;
use maud::{Markup, html};

use super::told::{Ruling, ruling};
use crate::{
    format::{clock, relative_time},
    view::{Deadlines, Event, Purchase, deadlines},
};

/// Renders the three steps of a protected purchase, or nothing for an instant one. `now` is in POSIX ms.
pub fn steps(purchase: &Purchase, now: u64) -> Markup {
    let (Some(deadlines), Some(paid)) = (deadlines(purchase), purchase.events.first()) else { return html! {} };
    html! {
        ol.track {
            (step("done", &html! { "✓ Paid " (clock(paid.at)) }, &html! { "Held by the contract" }))
            @match happened(purchase, &["ResultSubmitted", "Disputed"]) {
                Some(proof) => { (step("done", &html! { "✓ Proof " (clock(proof.at)) }, &html! { "On the public ledger" })) }
                None => { (without_proof(purchase, &deadlines, now)) }
            }
            (last(purchase, &deadlines, now))
        }
    }
}

fn without_proof(purchase: &Purchase, deadlines: &Deadlines, now: u64) -> Markup {
    let waits = matches!(purchase.status, Status::FundsLocked | Status::RefundRequested);
    let by = clock(deadlines.submit_result);
    if waits && now < deadlines.submit_result {
        step("now", &html! { "Proof by " (by) }, &html! { "Or the money goes back" })
    } else {
        step("off", &html! { "No proof" }, &html! { "Due by " (by) })
    }
}

/// Renders a step. `look` is its CSS class: `done`, `now`, `later`, or `off` for a step that went against the buyer or
/// the seller.
fn step(look: &str, what: &Markup, more: &Markup) -> Markup {
    html! { li.(look) aria-current=[(look == "now").then_some("step")] { b { (what) } (more) } }
}

/// Returns the first event with one of these statuses, or `None`.
fn happened<'a>(purchase: &'a Purchase, statuses: &[&str]) -> Option<&'a Event> {
    purchase.events.iter().find(|event| statuses.contains(&event.status.as_str()))
}

/// Renders the third step: where the money goes.
fn last(purchase: &Purchase, deadlines: &Deadlines, now: u64) -> Markup {
    let words = html! { (purchase.status.words()) };
    match purchase.status {
        Status::FundsLocked | Status::RefundRequested if now >= deadlines.submit_result => {
            step("now", &html! { "Money back" }, &html! { "To you" })
        }
        Status::FundsLocked | Status::Settled => {
            step("later", &html! { "Seller paid " (clock(deadlines.unlock)) }, &html! { "If a proof comes" })
        }
        Status::RefundRequested => step("later", &html! { "Money back" }, &html! { "If no proof comes" }),
        Status::ResultSubmitted => {
            let left =
                html! { @if now < deadlines.unlock { (relative_time(deadlines.unlock, now)) } @else { "Any minute" } };
            step("now", &html! { "Seller paid " (clock(deadlines.unlock)) }, &left)
        }
        Status::Disputed => {
            step("now", &html! { "Arbiter " (clock(deadlines.external_dispute_unlock)) }, &html! { "Disputed" })
        }
        Status::WithdrawAuthorized | Status::Withdrawing => {
            step("now", &html! { "Seller paid" }, &html! { "Any minute" })
        }
        Status::RefundAuthorized => {
            let when = if purchase.paid_from_balance == Some(true) { "Any minute" } else { "When you take it" };
            step("now", &html! { "Money back" }, &html! { (when) })
        }
        Status::Withdrawn | Status::Refunded | Status::Closed => match ruling(purchase) {
            Some((Ruling::ForSeller, end)) => {
                step("off", &html! { "Dispute lost " (clock(end.at)) }, &html! { "Seller paid" })
            }
            Some((Ruling::ForBuyer, end)) => {
                step("done", &html! { "✓ Dispute won " (clock(end.at)) }, &html! { "Money back" })
            }
            Some((Ruling::Divided, end)) => {
                step("off", &html! { "Divided " (clock(end.at)) }, &html! { "By the arbiter" })
            }
            None => {
                let at = happened(purchase, &[purchase.status.name()]).map(|event| clock(event.at));
                step("done", &html! { "✓ " (words) @if let Some(at) = at { " " (at) } }, &html! {})
            }
        },
    }
}
