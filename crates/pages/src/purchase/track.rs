//! The progress of a protected purchase in three steps: paid and held, delivery proven, money paid out.

use market::purchase::Status;
use maud::{Markup, html};

use crate::{
    format::{clock, span},
    view::{Deadlines, Event, Purchase, deadlines},
};

/// Renders the steps; nothing for instant purchases. `now` is in POSIX ms.
pub fn steps(purchase: &Purchase, now: u64) -> Markup {
    let (Some(deadlines), Some(paid)) = (deadlines(purchase), purchase.events.first()) else { return html! {} };
    html! {
        ol.track {
            (step("done", &html! { "✓ Paid " (clock(paid.at)) }, &html! { "Held by the contract" }))
            @match happened(purchase, "ResultSubmitted") {
                Some(proof) => { (step("done", &html! { "✓ Proof " (clock(proof.at)) }, &html! { "On the chain" })) }
                None => {
                    @let look = if purchase.status == Status::FundsLocked { "now" } else { "later" };
                    (step(look, &html! { "Proof by " (clock(deadlines.submit_result)) }, &html! { "Or the money goes back" }))
                }
            }
            (last(purchase, &deadlines, now))
        }
    }
}

/// Renders a step with the class `done`, `now`, `off` (in progress, but not going well for the seller) or `later`.
fn step(look: &str, what: &Markup, more: &Markup) -> Markup {
    html! { li.(look) aria-current=[matches!(look, "now" | "off").then_some("step")] { b { (what) } (more) } }
}

fn happened<'a>(purchase: &'a Purchase, status: &str) -> Option<&'a Event> {
    purchase.events.iter().find(|event| event.status == status)
}

/// Renders the third step, the purchase's status. The next step is explained below (`next`).
fn last(purchase: &Purchase, deadlines: &Deadlines, now: u64) -> Markup {
    let status = purchase.status;
    let seller_paid = html! { "Seller paid " (clock(deadlines.unlock)) };
    let words = html! { (status.words()) };
    match status {
        Status::FundsLocked | Status::Settled => step("later", &seller_paid, &html! { "If all is well" }),
        Status::ResultSubmitted => step("now", &seller_paid, &span(deadlines.unlock, now)),
        Status::WithdrawAuthorized | Status::Withdrawing => step("now", &words, &html! {}),
        Status::RefundRequested | Status::RefundAuthorized | Status::Disputed => step("off", &words, &html! {}),
        Status::Withdrawn | Status::Refunded | Status::Closed => {
            let at = happened(purchase, status.name()).map(|event| clock(event.at));
            step("done", &html! { "✓ " (words) @if let Some(at) = at { " " (at) } }, &html! {})
        }
    }
}
