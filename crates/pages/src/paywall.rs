//! `/listings/{id}/unlock` for browsers: the order, how it is protected, and a wallet to pay with. Programs get a 402
//! at the same path.

use cardano::Lovelace;
use market::DeliveryMode;
use maud::{Markup, html};

use crate::{
    asset::{ICON, PAYWALL},
    format::{file_name, tada},
    guide,
    layout::{Page, Section},
    parts, preview,
    view::Listing,
};

/// Estimated network fee of a payment in lovelace, rounded up. The wallet shows the exact fee.
const NETWORK_FEE: u64 = 200_000;

/// Approximate lovelace that a wallet's change must hold (the ledger's minimum for an output), rounded up.
const CHANGE: Lovelace = Lovelace::from_ada(1);

/// The ways in which a listing can be bought now.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// The listing to buy.
    pub listing: &'a Listing,
    /// Whether an instant payment is possible.
    pub instant: bool,
    /// Whether a protected payment is possible.
    pub protected: bool,
    /// Address of a block explorer, to which a transaction's id is appended.
    pub explorer: &'a str,
}

/// Renders the paywall's page.
#[must_use]
pub fn page(offer: &Offer<'_>) -> String {
    let listing = offer.listing;
    let file = file_name(&listing.title);
    let main = html! {
        main #main.pay data-listing=(listing.id) data-hash=(listing.content_hash) data-seller=(listing.seller_address)
            data-price=(listing.price_lovelace) data-explorer=(offer.explorer) {
            (summary(listing))
            section.stack aria-label="Pay" {
                (offer.choices())
                // First, because owners need not read on.
                section.box.stack #owned hidden tabindex="-1" aria-labelledby="have" {
                    h2 #have { "You already own this" }
                    p #owned-words { "Showing it again is free." }
                    div.acts {
                        button #again type="button" { "Show it again (free)" }
                        a.button.quiet #owned-link hidden { "See your purchase" }
                        button.plain #other type="button" { "Buy with another wallet" }
                    }
                }
                (stages())
                (parts::progress())
                p #already { button.plain #show-again type="button" { "I already bought this: show it again (free)" } }
                p.acts #restart hidden {
                    a.button href={ "/listings/" (listing.id) "/unlock" } { "Start again" }
                    a.button.quiet #account href="/me" { "Open your account" }
                }
                section.stack #delivered hidden tabindex="-1" aria-labelledby="ready" {
                    h2 #ready { "Your prompt is ready" }
                    div.acts {
                        button.copy #copy type="button" hidden data-copy="" { "Copy prompt" }
                        a.button.quiet #download download=(file) { "Download " (file) }
                        a.button.quiet #timeline { "See your purchase" }
                    }
                    pre #content.boxed tabindex="0" aria-label="The prompt" {}
                    button.plain #whole type="button" hidden aria-expanded="false" { "Show all" }
                }
            }
        }
    };
    let title = format!("Buy {}", listing.title);
    Page { title: &title, section: Section::Elsewhere, script: Some(PAYWALL), card: None }.around(&main)
}

fn summary(listing: &Listing) -> Markup {
    let price = listing.price_lovelace;
    let fee = Lovelace::new(NETWORK_FEE).unwrap_or_default();
    let total: Lovelace = [price, fee].into_iter().sum();
    html! {
        section.sum.stack aria-label="Order summary" {
            p.small { a href={ "/listings/" (listing.id) } { "‹ Back to the listing" } }
            div.item {
                (preview::cover(listing, &html! {}))
                div {
                    h1 { (listing.title) }
                    p.facts.soft {
                        span { "by " (parts::seller(listing)) }
                        @if let Some(known) = listing.seller_reputation { (parts::paid_out(known)) }
                    }
                }
            }
            div {
                div.line { span { "Price" } (tada(price)) }
                div.line.soft { span { "Network fee, about" } (tada(fee)) }
                div.line.total { span { "Total, about" } (tada(total)) }
            }
            p.small.soft {
                "A wallet needs about " (tada([total, CHANGE].into_iter().sum())) " to pay this: Cardano wants at least 1 tADA to stay \
                in it as change, which is yours."
            }
            p.small.soft { "Test network: tADA is not real money." }
        }
    }
}

impl Offer<'_> {
    fn choices(&self) -> Markup {
        let id = &self.listing.id;
        html! {
            form.stack #choose {
                fieldset.options {
                    legend { "1. Protection" }
                    @if self.protected {
                        label.option {
                            input #protected type="radio" name="mode" value=(DeliveryMode::Protected.as_str()) checked;
                            span {
                                b { "Protected" } " " em.pill { "Recommended" }
                                span.small.soft { (guide::GUARANTEE) " A smart contract, a program on Cardano's public ledger, holds the money until then." }
                                span.small.soft { b { "Right file: " } "the seller is paid " (guide::DISPUTE_UNTIL) " min after your order." }
                                span.small.soft { b { "Wrong file: " } "dispute within those " (guide::DISPUTE_UNTIL) " min. A program of this shop's operator, the arbiter, compares fingerprints." }
                                span.small.soft { b { "Nothing within " (guide::PROOF_DUE) " min: " } "take your money back on the purchase's page. To a Surety balance it returns by itself." }
                                span.small.soft { "Quality is not covered. " a href=(guide::PROTECTION) { "How protection works" } }
                            }
                        }
                    }
                    @if self.instant {
                        label.option {
                            input #instant type="radio" name="mode" value=(DeliveryMode::Instant.as_str())
                                checked[!self.protected];
                            span { b { "Instant" } span.small.soft { "The seller is paid at once. No protection, no refund." } }
                        }
                    }
                }
                fieldset.options #payers {
                    legend { "2. Pay with" }
                    // The script fills in the balance, or the reason why it cannot pay.
                    label.option #balance-row {
                        input type="radio" name="payer" value="balance" disabled;
                        span {
                            b { "Surety balance" }
                            span.small.soft #funds { a data-signed-out href={ "/me?next=/listings/" (id) "/unlock" } { "Sign in" } " to pay from it." }
                        }
                        img src=(ICON) alt="";
                    }
                }
                (parts::no_wallet())
                button.wide #go disabled { "Pay " (self.listing.price_lovelace.display_tada()) }
                p.small.soft { span #before-signing { "Your wallet shows the transaction before you sign. " } "The page may be closed once you have paid: come back to it for the text. You are never charged twice." }
                noscript { p.warning { "Paying needs JavaScript, because your wallet is asked to sign." } }
            }
        }
    }
}

/// Renders the stages of the purchase, which replace the form when the buyer pays.
fn stages() -> Markup {
    html! {
        section #working hidden tabindex="-1" aria-labelledby="steps" {
            h2 #steps { "Your purchase" }
            ol.stages {
                li { b #first-step { "Sign in your wallet" } (parts::draft()) }
                li {
                    b { "Confirming on the network" }
                    div #confirming hidden {
                        p { "Elapsed: " span #elapsed { "0 s" } " · " a #transaction hidden rel="noreferrer" target="_blank" { "See the transaction" } }
                        p { "You may close this page. Your purchase is safe: come back here for the text." }
                    }
                }
                li { b { "Delivered" } }
            }
        }
    }
}
