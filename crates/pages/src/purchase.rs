//! `/purchases/{id}`: a purchase with its content, protection, possible actions, and receipt.

use cardano::Lovelace;
use market::{
    purchase::{Status, Verification},
    receipt::Receipt,
};
use maud::{Markup, html};

use crate::{
    asset::PURCHASE,
    format::{at, file_name, on, short, tada},
    guide,
    layout::{Page, Section},
    parts,
    view::{Listing, Purchase},
};

mod told;
mod track;

use told::{Offer, StatusText};
pub(crate) use told::{standing, tone};

/// Data for rendering a purchase's page.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// The purchase that the page shows.
    pub purchase: &'a Purchase,
    /// Listing that was purchased; `None` if it is hidden.
    pub listing: Option<&'a Listing>,
    /// Whether the listing is still for sale.
    pub for_sale: bool,
    /// Amounts that were paid and returned.
    pub receipt: Receipt,
    /// Current time in POSIX ms, which escrow deadlines are compared with.
    pub now: u64,
    /// Address of a block explorer, to which a transaction's id is appended.
    pub explorer: &'a str,
}

/// Renders a purchase's page. When the purchase changes, the script replaces only the elements with `data-part`, so
/// that nothing that the reader has open moves or vanishes.
#[must_use]
pub fn page(shown: &Shown<'_>) -> String {
    let Shown { purchase, listing, now, .. } = *shown;
    let told = told::tell(purchase, now);
    let title = listing.map_or("A prompt that is no longer for sale", |listing| &listing.title);
    let changes_in = told.changes_at_ms.map(|at| at.saturating_sub(now));
    let main = html! {
        main #main.two data-purchase=(purchase.id) data-listing=(purchase.listing_id) data-buyer=(purchase.buyer_address)
            data-balance[purchase.paid_from_balance == Some(true)] data-readable[told::is_readable(purchase)]
            data-open[shown.is_open()] data-changes-in=[changes_in] data-version=(version(purchase))
            data-hash=[listing.map(|listing| listing.content_hash)] data-file=(file_name(title)) {
            div.stack {
                div {
                    p.small.soft { "Purchase" @if let Some(paid) = purchase.events.first() { " · " (at(paid.at)) } }
                    h1 {
                        @match listing {
                            Some(listing) if shown.for_sale => { a href={ "/listings/" (listing.id) } { (title) } }
                            _ => { (title) }
                        }
                    }
                }
                (shown.state(&told))
                (parts::progress())
                (parts::draft())
                (goods())
                (shown.only_if_wrong(&told))
                (shown.details())
            }
            (shown.receipt())
            (confirmation())
        }
    };
    Page { title, section: Section::Elsewhere, script: Some(PURCHASE), card: None }.around(&main)
}

/// Renders the empty element into which the script loads the content for the buyer.
fn goods() -> Markup {
    html! {
        section.box.stack #goods hidden tabindex="-1" aria-label="The text" {
            p #checked {}
            div.acts {
                button.copy #copy type="button" hidden data-copy="" { "Copy prompt" }
                a.button.quiet #download {}
                button.quiet #reading type="button" aria-pressed="false" { "Reading view" }
            }
            pre #content.boxed tabindex="0" aria-label="The prompt" {}
            div #readable.boxed hidden tabindex="0" role="region" aria-label="The prompt, for reading" {}
            button.plain #whole type="button" hidden aria-expanded="false" { "Show all" }
        }
    }
}

/// Renders the dialog that asks the buyer to confirm an action, with the action's consequence and the choice of a
/// wallet.
fn confirmation() -> Markup {
    html! {
        dialog #confirm aria-labelledby="asks" {
            form.stack method="dialog" {
                h2 #asks {}
                p #consequence {}
                fieldset.options #payers { legend { "Sign with" } }
                (parts::no_wallet())
                div.acts {
                    button #yes value="yes" {}
                    button.quiet value="no" { "Cancel" }
                }
            }
        }
    }
}

/// Renders a part of the page that the script replaces when the purchase changes.
fn part(id: &str, content: &Markup) -> Markup {
    html! { div id=(id) data-part { (content) } }
}

/// Renders the button of an action. The script shows it to the buyer while the contract permits the action.
fn button(Offer { action, label, only_if_wrong }: &Offer) -> Markup {
    let look = if only_if_wrong.is_some() { "quiet" } else { "" };
    html! { div.acts hidden data-action=(action.name()) { button.(look) type="button" { (label) } } }
}

impl Shown<'_> {
    /// Returns whether the purchase has an escrow that has not ended.
    const fn is_open(&self) -> bool {
        let over =
            matches!(self.purchase.status, Status::Settled | Status::Withdrawn | Status::Refunded | Status::Closed);
        self.purchase.escrow.is_some() && !over
    }

    /// Renders the purchase's state: a headline, one or two sentences, and the next step if there is one.
    fn state(&self, told: &StatusText) -> Markup {
        let Self { purchase, now, .. } = *self;
        let next_step = told.action.as_ref().filter(|offer| offer.only_if_wrong.is_none());
        html! {
            section.box.stack aria-label="State" {
                (part("track", &track::steps(purchase, now)))
                div #told data-part aria-live="polite" {
                    h2 #next { (told.headline) }
                    p.small { (told.explanation) }
                    @if let Some(verdict) = purchase.verification { p.small.soft { "The buyer says: " (said(verdict)) "." } }
                }
                (part("next-step", &html! { @if let Some(offer) = next_step { (button(offer)) } }))
                div.stack #viewer {
                    p.small.soft { "This page speaks to the buyer. Is that you? Sign in, or show the wallet that paid." }
                    div.acts #opening hidden {
                        button #open type="button" { "I bought this" }
                        a.button.quiet data-signed-out href={ "/me?next=/purchases/" (purchase.id) } { "Sign in" }
                    }
                    noscript { p.note { "Opening the text needs JavaScript, because your wallet is asked to sign." } }
                }
            }
        }
    }

    /// Renders the section with the action that the buyer needs only if something is wrong.
    fn only_if_wrong(&self, told: &StatusText) -> Markup {
        let offered = told.action.as_ref().and_then(|offer| Some((offer, offer.only_if_wrong.as_ref()?)));
        part(
            "otherwise",
            &html! {
                @if let Some((offer, summary)) = offered {
                    details #wrong hidden {
                        summary { (summary) }
                        p.small.soft #meaning {}
                        (button(offer))
                    }
                }
            },
        )
    }

    fn details(&self) -> Markup {
        let purchase = self.purchase;
        let named = |name: &str, value: &str| html! { dt { (name) } dd { code { (value) } } };
        html! {
            details #chain {
                summary { "Transactions and fingerprints" }
                p.small.soft {
                    "Each step is a transaction on Cardano's public ledger (“the chain”), which anybody can check. A fingerprint is a number \
                     computed from a text; the same text always has the same one. "
                    a href=(guide::PROTECTION) { "How protection works" }
                }
                div #facts data-part {
                    ol.events {
                        @for event in &purchase.events {
                            li {
                                b { (event.words(purchase.mode)) }
                                span { (at(event.at)) " · " (parts::transaction(self.explorer, &event.tx_hash)) }
                            }
                        }
                    }
                    dl.small {
                        (named("Buyer", &purchase.buyer_address.to_string()))
                        @if let Some(listing) = self.listing {
                            dt { "Seller" }
                            dd {
                                @if let Some(name) = &listing.seller_name { (parts::name(name)) " " }
                                code { (listing.seller_address) }
                            }
                            (named("Fingerprint of the text (SHA-256)", &listing.content_hash.to_string()))
                        }
                        @if let Some(escrow) = &purchase.escrow {
                            (named("Contract that holds the money", &escrow.address))
                            @if let Some(hash) = &escrow.input_hash { (named("Commitment to this listing", &hash.to_string())) }
                            @if let Some(result) = &escrow.result_hash { (named("Proof of delivery", &result.to_string())) }
                        }
                    }
                }
            }
        }
    }

    /// Renders all amounts of the purchase, including what was returned.
    fn receipt(&self) -> Markup {
        let (purchase, receipt) = (self.purchase, self.receipt);
        let line = |words: &str, amount: Lovelace| html! { div.line.soft { span { (words) } (tada(amount)) } };
        let collateral = Some(receipt.collateral()).filter(|amount| *amount > Lovelace::ZERO);
        html! {
            aside.box.stack.sticky aria-labelledby="receipt" {
                h2 #receipt { "Receipt" }
                div #amounts data-part {
                    div.line { span { "Price" } (tada(receipt.price)) }
                    @if let Some(collateral) = collateral { (line("Collateral (comes back)", collateral)) }
                    @if let Some(fee) = receipt.fee { (line("Network fee", fee)) }
                    @if let Some(paid) = receipt.paid() { div.line.total { span { "Total paid" } (tada(paid)) } }
                    @if let Some(locked) = receipt.locked.filter(|_| self.is_open()) { (line("Held by the contract", locked)) }
                    @if let Some(back) = receipt.returned(purchase.status).filter(|back| *back > Lovelace::ZERO) {
                        div.line.good { span { "Paid back" } (tada(back)) }
                    }
                }
                div #standing data-part {
                    div.line.soft { span { "Protection" } span { (if purchase.escrow.is_some() { "Protected" } else { "Instant" }) } }
                    @if let Some(paid) = purchase.events.first() { div.line.soft { span { "Paid" } (on(paid.at)) } }
                    div.line.soft { span { "Status" } span.status.(told::tone(purchase)) { (told::standing(purchase)) } }
                }
                p.small.soft { "Transaction " (parts::transaction(self.explorer, &purchase.id)) }
                p.small #signed-receipt hidden { a download={ "receipt-" (short(&purchase.id.to_string())) ".json" } { "Signed receipt (JSON)" } }
            }
        }
    }
}

/// Returns a text that changes whenever an event on the chain changes the page. The script computes the same text from
/// the API's JSON.
fn version(Purchase { status, events, decision, .. }: &Purchase) -> String {
    let winner = decision.as_ref().map_or("", |decision| &decision.winner);
    format!("{}.{}.{winner}", status.name(), events.len())
}

/// Returns a verdict in words.
const fn said(verdict: Verification) -> &'static str {
    match verdict {
        Verification::Ok => "it is what was listed",
        Verification::Mismatch => "it is not what was listed",
        Verification::NoResultYet => "nothing came yet",
    }
}
