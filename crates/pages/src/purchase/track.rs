//! The protection of a purchase as three steps: paid and held, delivery proven, money where it belongs.

use market::purchase::Status;
use maud::{Markup, html};

use crate::{
    format::{clock, span},
    view::{Deadlines, Event, Purchase, deadlines},
};

/// The steps; nothing for what has no escrow. `now`, POSIX ms.
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

/// A step, which looks `done`, `now`, `off` (in progress, and not as the seller would like it) or `later`.
fn step(look: &str, what: &Markup, more: &Markup) -> Markup {
    html! { li.(look) aria-current=[matches!(look, "now" | "off").then_some("step")] { b { (what) } (more) } }
}

fn happened<'a>(purchase: &'a Purchase, status: &str) -> Option<&'a Event> {
    purchase.events.iter().find(|event| event.status == status)
}

fn last(purchase: &Purchase, deadlines: &Deadlines, now: u64) -> Markup {
    let ended = |words: &str, status: &str| html! { "✓ " (words) " " @if let Some(event) = happened(purchase, status) { (clock(event.at)) } };
    let text = |words: &str| html! { (words) };
    let paid_at = || html! { "Seller paid " (clock(deadlines.unlock)) };
    let (look, what, more) = match purchase.status {
        Status::FundsLocked | Status::Settled => ("later", paid_at(), text("If all is well")),
        Status::ResultSubmitted => ("now", paid_at(), span(deadlines.unlock, now)),
        Status::RefundRequested => {
            ("off", text("Refund asked for"), html! { "Yours from " (clock(deadlines.submit_result)) " without proof" })
        }
        Status::Disputed => {
            ("off", text("Disputed"), html! { "Arbiter from " (clock(deadlines.external_dispute_unlock)) })
        }
        Status::WithdrawAuthorized => ("now", text("Released"), text("The seller collects")),
        Status::RefundAuthorized => ("off", text("Refund agreed"), text("The buyer can take it")),
        Status::Withdrawing => ("now", text("Seller being paid"), text("On its way")),
        Status::Withdrawn => ("done", ended("Seller paid", "withdrawn"), text("Complete")),
        Status::Refunded => ("done", ended("Refunded", "refunded"), text("Back with the buyer")),
        Status::Closed => ("done", ended("Closed", "closed"), text("See the transactions")),
    };
    step(look, &what, &more)
}
