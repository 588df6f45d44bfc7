//! `/purchases/{id}`: what was bought, how it is protected, what can be done, and the receipt.

use cardano::Lovelace;
use market::{
    purchase::{Status, Verification},
    receipt::Receipt,
};
use maud::{Markup, html};

use crate::{
    asset::PURCHASE,
    format::{at, clock, file_name, on, short, tada},
    layout::{Page, Section},
    parts,
    view::{Listing, Purchase, deadlines},
};

mod next;
mod track;
mod verdict;

/// Data of a purchase's page.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// The purchase.
    pub purchase: &'a Purchase,
    /// The listing; `None` if it is hidden.
    pub listing: Option<&'a Listing>,
    /// Whether the listing is still for sale.
    pub for_sale: bool,
    /// Amounts of the purchase.
    pub receipt: Receipt,
    /// Clock for escrow deadlines, POSIX ms.
    pub now: u64,
    /// Address of a block explorer, to which a transaction's id is appended.
    pub explorer: &'a str,
}

/// Renders the page.
#[must_use]
pub fn page(shown: &Shown<'_>) -> String {
    let Shown { purchase, listing, now, .. } = *shown;
    let next = next::after(purchase, now);
    let title = listing.map_or("A prompt that is no longer for sale", |listing| &listing.title);
    let main = html! {
        main #main.two data-purchase=(purchase.id) data-listing=(purchase.listing_id) data-buyer=(purchase.buyer_address)
            data-status=(purchase.status.name()) data-verdict=[purchase.verification.map(Verification::as_str)]
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
                (shown.goods())
                section.box aria-labelledby="protection" {
                    h2 #protection { (if purchase.escrow.is_some() { "Buyer protection" } else { "Instant purchase" }) }
                    (track::steps(purchase, now))
                    p.small {
                        b #next { (next.what) } ". " (next.how)
                        @if let Some(by) = next.by { " " span.by { (at(by)) "." } }
                    }
                }
                (parts::progress())
                (shown.wrong())
                (shown.details())
            }
            (shown.receipt())
        }
    };
    Page { title, section: Section::Elsewhere, script: Some(&PURCHASE), card: None }.around(&main)
}

impl Shown<'_> {
    /// Whether the escrow has not ended.
    const fn is_open(&self) -> bool {
        let over =
            matches!(self.purchase.status, Status::Settled | Status::Withdrawn | Status::Refunded | Status::Closed);
        self.purchase.escrow.is_some() && !over
    }

    /// Renders the place of the content, which the script loads for its buyer.
    fn goods(&self) -> Markup {
        if self.purchase.status == Status::Refunded {
            return html! { p.box { "This purchase was refunded, so its text is no longer available." } };
        }
        html! {
            section.box.stack aria-label="What was bought" {
                div #closed {
                    p { span.status.(self.purchase.status.name()) { (self.purchase.status.words()) } " Only the buyer can open the text." }
                    div.acts #opening hidden { button #open type="button" { "Show the text (free)" } }
                    noscript { p.note { "Opening it needs JavaScript, because your wallet is asked to sign." } }
                }
                div.stack #goods hidden tabindex="-1" aria-label="The text" {
                    p #checked {}
                    div.acts {
                        button.copy #copy type="button" hidden data-copy="" { "Copy prompt" }
                        a.button.quiet #download {}
                        button.quiet #reading type="button" aria-pressed="false" { "Reading view" }
                    }
                    pre #content tabindex="0" aria-label="The prompt" {}
                    div #readable hidden {}
                }
            }
        }
    }

    /// Renders the buyer's possible actions and verdict, which the script fills in.
    fn wrong(&self) -> Markup {
        let Purchase { status, verification, .. } = self.purchase;
        let deadlines = deadlines(self.purchase);
        let late = deadlines.is_some_and(|deadlines| self.now >= deadlines.submit_result);
        let due = match status {
            Status::RefundRequested | Status::RefundAuthorized | Status::Disputed => true,
            Status::FundsLocked if late => true,
            _ => *verification == Some(Verification::Mismatch),
        };
        let judged = verdict::section(self.purchase);
        if !self.is_open() && judged.is_none() {
            return html! {};
        }
        html! {
            details #wrong open[due] {
                summary {
                    "Something wrong?"
                    @if let (Status::ResultSubmitted, Some(deadlines)) = (status, deadlines) {
                        " Dispute this purchase (until " (clock(deadlines.unlock)) ")"
                    }
                }
                @if self.is_open() {
                    div.stack #actions hidden {}
                }
                @if let Some(judged) = judged { (judged) }
                fieldset.options #payers { legend { "Sign with" } }
                (parts::no_wallet())
                (parts::draft())
            }
        }
    }

    fn details(&self) -> Markup {
        let purchase = self.purchase;
        let named = |name: &str, value: &str| html! { dt { (name) } dd { code { (value) } } };
        html! {
            details {
                summary { "Transactions and fingerprints" }
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
                        (named("Seller", &listing.seller_address.to_string()))
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

    /// Renders all amounts of the purchase, including what was returned.
    fn receipt(&self) -> Markup {
        let (purchase, receipt) = (self.purchase, self.receipt);
        let line = |words: &str, amount: Lovelace| html! { div.line.soft { span { (words) } (tada(amount)) } };
        let collateral = Some(receipt.collateral()).filter(|amount| *amount > Lovelace::ZERO);
        html! {
            aside.box.stack.sticky aria-labelledby="receipt" {
                h2 #receipt { "Receipt" }
                div {
                    div.line { span { "Price" } (tada(receipt.price)) }
                    @if let Some(collateral) = collateral { (line("Collateral (comes back)", collateral)) }
                    @if let Some(fee) = receipt.fee { (line("Network fee", fee)) }
                    @if let Some(paid) = receipt.paid() { div.line.total { span { "Total paid" } (tada(paid)) } }
                    @if let Some(locked) = receipt.locked.filter(|_| self.is_open()) { (line("Held by the contract", locked)) }
                    @if let Some(back) = receipt.returned(purchase.status).filter(|back| *back > Lovelace::ZERO) {
                        div.line.good { span { "Paid back" } (tada(back)) }
                    }
                }
                div {
                    div.line.soft { span { "Protection" } span { (if purchase.escrow.is_some() { "Protected" } else { "Instant" }) } }
                    @if let Some(paid) = purchase.events.first() { div.line.soft { span { "Paid" } (on(paid.at)) } }
                    div.line.soft { span { "Status" } span.status.(purchase.status.name()) { (purchase.status.words()) } }
                }
                p.small.soft { "Transaction " (parts::transaction(self.explorer, &purchase.id)) }
                p.small #signed-receipt hidden { a download={ "receipt-" (short(&purchase.id.to_string())) ".json" } { "Signed receipt (JSON)" } }
            }
        }
    }
}
