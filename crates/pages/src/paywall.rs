//! `/listings/{id}/unlock`, unpaid: what is bought, the terms, and a wallet to pay with. The same 402 that programs get.

use escrow::Deadlines;
use market::DeliveryMode;
use maud::{Markup, html};

use crate::{
    asset::PAYWALL,
    format::{clock, distance, tada},
    layout::{Page, Place},
    parts, preview,
    view::Listing,
};

/// What is offered now.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// What is for sale.
    pub listing: &'a Listing,
    /// Whether the seller may be paid at once.
    pub instant: bool,
    /// The deadlines of a payment into the escrow made now, if that is offered.
    pub protected: Option<Deadlines>,
    /// The clock of escrow matters, POSIX ms.
    pub now: u64,
}

/// The page.
#[must_use]
pub fn page(offer: &Offer<'_>) -> String {
    let listing = offer.listing;
    let main = html! {
        main #main.checkout data-listing=(listing.id) data-hash=(listing.content_hash) data-seller=(listing.seller_address) {
            (order(listing))
            div {
                section #choose aria-label="Pay" {
                    form #modes { (offer.modes()) }
                    (service())
                    (parts::wallets("Pay with your wallet"))
                    noscript {
                        p.warning { "Paying here needs JavaScript, because your wallet is asked to sign." }
                    }
                }
                (parts::progress())
                p.facts #restart hidden {
                    a.button.quiet href={ "/listings/" (listing.id) "/unlock" } { "Start again" }
                    a.button.quiet #account href="/me" { "Wallet and limits" }
                }
                (parts::draft())
                div.others { (other_ways(listing)) }
                (delivered(listing))
            }
        }
    };
    let title = format!("Buy {}", listing.title);
    Page { title: &title, place: Place::Elsewhere, script: Some(&PAYWALL), card: None }.around(&main)
}

fn order(listing: &Listing) -> Markup {
    html! {
        section.order aria-label="Your order" {
            p.over { "You buy" }
            h1 { a href={ "/listings/" (listing.id) } { (listing.title) } }
            p.price { (tada(listing.price_lovelace)) }
            p { "Sold by " (parts::creator(&listing.seller_address.to_string())) }
            p.facts { (parts::reputation(listing.seller_reputation)) }
            @if listing.preview_media.is_some() { div.picture { (preview::large(listing)) } }
            p.note { "The content's SHA-256 is " (parts::hash(&listing.content_hash.to_string())) ". This page checks what comes against it." }
        }
    }
}

impl Offer<'_> {
    fn modes(&self) -> Markup {
        html! {
            fieldset.modes {
                legend { "How to pay" }
                @if let Some(deadlines) = self.protected {
                    (mode(DeliveryMode::Protected, true, "Protected", "Your money waits in a contract.", &self.terms(&deadlines)))
                }
                @if self.instant {
                    (mode(DeliveryMode::Instant, self.protected.is_none(), "Instant", "The seller is paid at once, for good.", &html! {}))
                }
            }
        }
    }

    fn terms(&self, deadlines: &Deadlines) -> Markup {
        let line = |time: u64, words: &str| html! { li { (words) " " strong { (distance(time, self.now)) } ", " span.amount { (clock(time)) } } };
        html! {
            ul {
                (line(deadlines.submit_result, "Nothing delivered: you take it back"))
                (line(deadlines.unlock, "Something else delivered: dispute until"))
                (line(deadlines.external_dispute_unlock, "The arbiter decides a dispute"))
            }
            p.note { "A few tADA more are locked and come back to you when the purchase ends." }
        }
    }
}

fn mode(mode: DeliveryMode, checked: bool, name: &str, words: &str, terms: &Markup) -> Markup {
    html! {
        div.mode {
            input #(mode.as_str()) type="radio" name="mode" value=(mode.as_str()) checked[checked];
            div {
                label for=(mode.as_str()) { strong { (name) } " " (words) }
                (terms)
            }
        }
    }
}

/// For whoever is signed in, which the script knows.
fn service() -> Markup {
    html! {
        fieldset.wallets #service hidden {
            legend { "Your service wallet" }
            p #funds {}
            button.wide #spend type="button" { "Pay from the service wallet" }
        }
    }
}

fn other_ways(listing: &Listing) -> Markup {
    html! {
        details #proof {
            summary { "I already bought this" }
            p { "Sign with the wallet that paid. It costs nothing." }
            div.wallets #again {}
        }
        details #signed-out {
            summary { "Pay from a service wallet" }
            p { a href="/me" { "Sign in" } " and come back: then its balance and limits are here." }
        }
        details {
            summary { "Pay with a program or an agent" }
            p { a href={ "/listings/" (listing.id) "#programs" } { "How to, with commands to copy" } }
        }
    }
}

fn delivered(listing: &Listing) -> Markup {
    html! {
        section #delivered hidden tabindex="-1" aria-labelledby="yours" {
            h2 #yours { "It is yours" }
            p.facts {
                a.button #download download={ (listing.id) ".md" } { "Download" }
                a.button.quiet #timeline { "See the purchase" }
            }
            div.code {
                pre #content tabindex="0" aria-label="The content" {}
                button.copy #copy type="button" hidden data-copy="" aria-label="Copy: the content" { "Copy" }
            }
        }
    }
}
