//! `/purchases/{id}`: where the money is, what happens next and by when, and what happened before.

use market::{
    DeliveryMode,
    purchase::{Status, Verification},
};
use maud::{Markup, html};

use crate::{
    asset::PURCHASE,
    format::{at, distance, tada},
    layout::{Page, Place},
    parts,
    view::{Event, Listing, Purchase},
};

mod next;
mod scale;
mod verdict;

/// What a purchase's page shows.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// The purchase.
    pub purchase: &'a Purchase,
    /// What was bought; `None` where the operator hid it since.
    pub listing: Option<&'a Listing>,
    /// The clock of escrow matters, POSIX ms.
    pub now: u64,
    /// Where transactions are shown: an address to which an id is appended.
    pub explorer: &'a str,
}

/// The page.
#[must_use]
pub fn page(shown: &Shown<'_>) -> String {
    let title = format!("Purchase of {}", shown.listing.map_or("a listing", |listing| &listing.title));
    let main = html! {
        main #main.purchase data-purchase=(shown.purchase.id) data-listing=(shown.purchase.listing_id)
            data-buyer=(shown.purchase.buyer_address) data-verdict=[shown.purchase.verification.map(Verification::as_str)] {
            (shown.heading())
            (shown.next())
            @if shown.is_open() { (actions()) }
            (parts::progress())
            (verdict::section(shown.purchase))
            section aria-labelledby="timeline" {
                h2 #timeline { "Timeline" }
                (scale::drawn(shown.purchase, shown.is_open().then_some(shown.now)))
                (shown.events())
            }
            (shown.facts())
        }
    };
    Page { title: &title, place: Place::Elsewhere, script: Some(&PURCHASE), card: None }.around(&main)
}

/// A status in a word or two.
pub(crate) const fn status(status: Status) -> &'static str {
    match status {
        Status::FundsLocked => "Waiting for delivery",
        Status::ResultSubmitted => "Delivered",
        Status::RefundRequested => "Refund requested",
        Status::Disputed => "Disputed",
        Status::WithdrawAuthorized => "Released",
        Status::RefundAuthorized => "Refund granted",
        Status::Withdrawing => "Paying the seller",
        Status::Settled => "Paid",
        Status::Withdrawn => "Complete",
        Status::Refunded => "Refunded",
        Status::Closed => "Closed",
    }
}

/// What a transaction did.
fn deed(event: &Event, mode: DeliveryMode) -> &str {
    match event.status.as_str() {
        "settled" => "The seller was paid",
        "FundsLocked" => "The price was locked in the contract",
        "ResultSubmitted" => "The seller posted the hash of what was delivered",
        "RefundRequested" => "The buyer asked for the money back",
        "Disputed" => "The buyer disputed the delivery",
        "WithdrawAuthorized" => "The buyer released the money",
        "RefundAuthorized" => "The seller agreed to a refund",
        "withdrawn" => "The contract paid the seller",
        "refunded" => "The contract paid the buyer back",
        "closed" => "The contract was closed",
        "creator_paid" if matches!(mode, DeliveryMode::Protected) => "The creator got the price less the fee",
        other => other,
    }
}

/// What the buyer or the seller can do now: filled in by the script, which asks the chain.
fn actions() -> Markup {
    html! {
        section #actions hidden aria-labelledby="do" {
            h2 #do { "What you can do now" }
            form #choices {
                fieldset #buyer-part { legend { "If you bought it" } div.choices #buyer {} }
                details #seller-part { summary { "If you sold it" } div.choices #seller {} }
            }
            div #sign hidden { (parts::wallets("Sign with your wallet")) }
        }
        (parts::draft())
    }
}

impl Shown<'_> {
    /// Whether the escrow goes on.
    const fn is_open(&self) -> bool {
        let over =
            matches!(self.purchase.status, Status::Settled | Status::Withdrawn | Status::Refunded | Status::Closed);
        self.purchase.escrow.is_some() && !over
    }

    fn heading(&self) -> Markup {
        let Purchase { mode, status: now, listing_id, .. } = self.purchase;
        html! {
            section.person {
                p.over { "Purchase " (parts::hash(&self.purchase.id.to_string())) }
                h1 {
                    @match self.listing {
                        Some(listing) => { a href={ "/listings/" (listing_id) } { (listing.title) } }
                        None => { "A listing that is no longer shown" }
                    }
                }
                p.facts {
                    span.status.{ (now.name()) } { (status(*now)) }
                    @if *mode == DeliveryMode::Protected { span.badge.protected { "Protected" } } @else { span.badge { "Instant" } }
                    @if let Some(listing) = self.listing { (tada(listing.price_lovelace)) }
                }
            }
        }
    }

    fn next(&self) -> Markup {
        let next = next::after(self.purchase, self.now);
        html! {
            section.next aria-labelledby="next" {
                h2 #next { (next.what) }
                p { (next.how) }
                @if let Some(by) = next.by {
                    p.by { strong { (at(by)) } " · " (distance(by, self.now)) }
                }
            }
        }
    }

    fn events(&self) -> Markup {
        html! {
            ol.events {
                @for event in &self.purchase.events {
                    li {
                        strong { (deed(event, self.purchase.mode)) }
                        span { (at(event.at)) " · " (distance(event.at, self.now)) }
                        a.hash href={ (self.explorer) (event.tx_hash) } rel="noreferrer" title=(event.tx_hash) {
                            "Transaction " (crate::format::short(&event.tx_hash.to_string()))
                        }
                    }
                }
            }
        }
    }

    fn facts(&self) -> Markup {
        let purchase = self.purchase;
        html! {
            section aria-labelledby="facts" {
                h2 #facts { "Details" }
                dl.facts {
                    div { dt { "Buyer" } dd { (parts::hash(&purchase.buyer_address.to_string())) } }
                    @if let Some(listing) = self.listing {
                        div { dt { "Creator" } dd { (parts::creator(&listing.seller_address.to_string())) } }
                        div { dt { "SHA-256 of the content" } dd { (parts::hash(&listing.content_hash.to_string())) } }
                    }
                    @if let Some(escrow) = &purchase.escrow {
                        div { dt { "Contract" } dd { (parts::hash(&escrow.address)) } }
                        @if let Some(hash) = &escrow.input_hash {
                            div { dt { "Commits to the listing by" } dd { (parts::hash(&hash.to_string())) } }
                        }
                        @if let Some(result) = &escrow.result_hash {
                            div { dt { "Delivered, by hash" } dd { (parts::hash(&result.to_string())) } }
                        }
                    }
                }
            }
        }
    }
}
