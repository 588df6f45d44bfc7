//! Components that several pages use.

use cardano::{Address, TxHash};
use market::DeliveryMode;
use maud::{Markup, html};

use crate::{
    format::{count, short, tada},
    preview::{self, Size},
    view::{Listing, Reputation, Seller},
};

/// Renders a text with a button that copies it. The button is visible only if scripts run.
pub fn copyable(label: &str, text: &str) -> Markup {
    html! {
        div.code {
            pre tabindex="0" aria-label=(label) { code { (text) } }
            button.copy type="button" hidden data-copy=(text) aria-label={ "Copy: " (label) } { "Copy" }
        }
    }
}

/// Renders a link to a creator's page.
pub fn creator(address: &Address) -> Markup {
    let address = address.to_string();
    html! { a.hash href={ "/creators/" (address) } title=(address) { (short(&address)) } }
}

/// Renders a listing's seller: the name if there is one, and the link to the seller's page.
pub fn seller(listing: &Listing) -> Markup {
    html! {
        @if let Some(name) = &listing.seller_name { (self::name(name)) " " }
        (creator(&listing.seller_address))
    }
}

/// Renders a seller's name, isolated from the writing direction of the text around it. The shortened address must stand
/// beside it.
pub fn name(name: &str) -> Markup {
    html! { bdi.name { (name) } }
}

/// Renders a link to a transaction. `explorer` is an address to which the id is appended.
pub fn transaction(explorer: &str, id: &TxHash) -> Markup {
    let id = id.to_string();
    html! { a.hash href={ (explorer) (id) } rel="noreferrer" title=(id) { (short(&id)) } }
}

/// Renders a message for an empty list, with a link.
pub fn empty(words: &str, to: &str, label: &str) -> Markup {
    html! { div.empty { p { (words) } p { a.button.quiet href=(to) { (label) } } } }
}

/// Renders a form control with its label.
pub fn field(id: &str, label: &str, control: &Markup) -> Markup {
    html! { p.field { label for=(id) { (label) } (control) } }
}

/// Renders the list of wallets, in which the script shows a button for each installed wallet, or a hint if there is
/// none.
#[must_use]
pub fn wallets(legend: &str) -> Markup {
    html! {
        fieldset.wallets {
            legend { (legend) }
            div.offered #wallets {}
            (no_wallet())
        }
    }
}

/// Renders a hint that scripts show if no wallet is installed.
#[must_use]
pub fn no_wallet() -> Markup {
    html! {
        div.no-wallet.note hidden {
            p { "No Cardano wallet was found in this browser." }
            ul {
                li {
                    "On a computer: install " a href="https://www.lace.io" rel="noreferrer" { "Lace" } " or "
                    a href="https://eternl.io" rel="noreferrer" { "Eternl" } ", switch it to preprod, and reload this page."
                }
                li {
                    "On a phone: open this page in the browser inside your wallet's app, as "
                    a href="https://eternl.io" rel="noreferrer" { "Eternl" } " and "
                    a href="https://vespr.xyz" rel="noreferrer" { "Vespr" } " have one. "
                    a data-wallet-app hidden { "Open this page in your wallet's app" } " "
                    button.copy.plain type="button" hidden data-copy="" { "Copy this page's address" }
                }
            }
        }
    }
}

/// Renders the empty element in which scripts describe what the wallet is asked to sign.
#[must_use]
pub fn draft() -> Markup {
    html! {
        section #draft hidden aria-labelledby="signs" {
            h2 #signs { "Your wallet signs this" }
            ul #words {}
        }
    }
}

/// Renders the empty element in which scripts report progress.
#[must_use]
pub fn progress() -> Markup {
    html! {
        p #status role="status" aria-live="polite" {}
        p.acts #waiting-for { button.quiet #cancel type="button" hidden { "Cancel" } }
        p #problem role="alert" {}
    }
}

/// Renders a seller's record of protected sales, as `3 of 3 protected sales paid out`.
pub fn paid_out(Reputation { score, basis }: Reputation) -> Markup {
    // Below this number of sales, the rounded score still yields the exact number.
    const EXACT: u64 = 100;
    let sales = count(basis, "protected sale");
    let paid = basis.saturating_mul(u64::from(score)).saturating_add(50) / 100;
    html! {
        span.good { @if basis < EXACT { (paid) " of " (sales) " paid out" } @else { (score) " % of " (sales) " paid out" } }
    }
}

/// Renders a seller's record of protected sales, or a note that the seller has none.
pub fn standing(seller: &Seller) -> Markup {
    html! {
        @match seller.seller_reputation {
            Some(known) => { (paid_out(known)) }
            None if seller.sales == 0 => { span { "New seller" } }
            None => { span { "No protected sale has ended yet" } }
        }
        @if let Some(disputes) = seller.disputes {
            span { (count(disputes.decided, "dispute")) " decided, " (disputes.lost) " against the seller" }
        }
    }
}

/// Renders the line below the title and the price on a listing's card.
fn remarks(listing: &Listing) -> Markup {
    let sold = listing.sales.filter(|sold| *sold > 0).map(|sold| format!("{sold} sold"));
    html! {
        p.small.soft {
            @if !listing.offers(DeliveryMode::Protected) {
                "Instant only" @if sold.is_some() { " · " }
            } @else if let Some(known) = listing.seller_reputation {
                (paid_out(known)) @if sold.is_some() { " · " }
            } @else if sold.is_none() { "Not sold yet" }
            @if let Some(sold) = sold { (sold) }
        }
    }
}

/// Renders listings as cards.
pub fn cards(listings: &[Listing]) -> Markup {
    html! {
        ul.cards {
            @for listing in listings {
                li.card {
                    (preview::picture(listing, Size::Small))
                    div.row {
                        h3 { a href={ "/listings/" (listing.id) } { (listing.title) } }
                        (tada(listing.price_lovelace))
                    }
                    (remarks(listing))
                    @if let Some(name) = &listing.seller_name {
                        p.small.soft { "by " (self::name(name)) " " span.hash { (short(&listing.seller_address.to_string())) } }
                    }
                }
            }
        }
    }
}
