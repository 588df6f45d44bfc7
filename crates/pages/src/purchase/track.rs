//! The protection of a purchase as three steps: paid and held, delivery proven, money where it belongs.

use market::purchase::Status;
use maud::{Markup, html};

use crate::{
    format::{clock, span},
    view::{Deadlines, Event, Purchase},
};

/// A step's look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Done,
    Now,
    /// In progress, and not as the seller would like it.
    Off,
    Later,
}

impl Look {
    const fn class(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Now => "now",
            Self::Off => "off",
            Self::Later => "later",
        }
    }
}

/// The steps; nothing for what has no escrow. `now`, POSIX ms.
pub fn steps(purchase: &Purchase, now: u64) -> Markup {
    let (Some(deadlines), Some(paid)) = (Deadlines::of(purchase), purchase.events.first()) else { return html! {} };
    let proof = happened(purchase, "ResultSubmitted");
    html! {
        ol.track {
            (step(Look::Done, &html! { "✓ Paid " (clock(paid.at)) }, &html! { "Held by the contract" }))
            @match proof {
                Some(proof) => { (step(Look::Done, &html! { "✓ Proof " (clock(proof.at)) }, &html! { "On the chain" })) }
                None => {
                    @let look = if purchase.status == Status::FundsLocked { Look::Now } else { Look::Later };
                    (step(look, &html! { "Proof by " (clock(deadlines.submit_result)) }, &html! { "Or the money goes back" }))
                }
            }
            (last(purchase, now))
        }
    }
}

fn step(look: Look, what: &Markup, more: &Markup) -> Markup {
    html! { li.(look.class()) aria-current=[matches!(look, Look::Now | Look::Off).then_some("step")] { b { (what) } (more) } }
}

fn happened<'a>(purchase: &'a Purchase, status: &str) -> Option<&'a Event> {
    purchase.events.iter().find(|event| event.status == status)
}

fn last(purchase: &Purchase, now: u64) -> Markup {
    let Some(deadlines) = Deadlines::of(purchase) else { return html! {} };
    let ended = |words: &str, status: &str| html! { "✓ " (words) " " @if let Some(event) = happened(purchase, status) { (clock(event.at)) } };
    let text = |words: &str| html! { (words) };
    let (look, what, more) = match purchase.status {
        Status::FundsLocked | Status::Settled => {
            (Look::Later, html! { "Seller paid " (clock(deadlines.unlock)) }, text("If all is well"))
        }
        Status::ResultSubmitted => {
            (Look::Now, html! { "Seller paid " (clock(deadlines.unlock)) }, span(deadlines.unlock, now))
        }
        Status::RefundRequested => (
            Look::Off,
            text("Refund asked for"),
            html! { "Yours from " (clock(deadlines.submit_result)) " without proof" },
        ),
        Status::Disputed => {
            (Look::Off, text("Disputed"), html! { "Arbiter from " (clock(deadlines.external_dispute_unlock)) })
        }
        Status::WithdrawAuthorized => (Look::Now, text("Released"), text("The seller collects")),
        Status::RefundAuthorized => (Look::Off, text("Refund agreed"), text("The buyer can take it")),
        Status::Withdrawing => (Look::Now, text("Seller being paid"), text("On its way")),
        Status::Withdrawn => (Look::Done, ended("Seller paid", "withdrawn"), text("Complete")),
        Status::Refunded => (Look::Done, ended("Refunded", "refunded"), text("Back with the buyer")),
        Status::Closed => (Look::Done, ended("Closed", "closed"), text("See the transactions")),
    };
    step(look, &what, &more)
}
