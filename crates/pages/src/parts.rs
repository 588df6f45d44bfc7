//! Parts of several pages.

use market::DeliveryMode;
use maud::{Markup, html};

use crate::{
    format::{clipped, count, short, tada},
    preview,
    view::{Listing, Reputation},
};

/// Characters of a description on a card.
const CARD_DESCRIPTION: usize = 120;

/// A text to be copied: the button appears where scripts run.
pub fn copyable(label: &str, text: &str) -> Markup {
    html! {
        div.code {
            pre tabindex="0" aria-label=(label) { code { (text) } }
            button.copy type="button" hidden data-copy=(text) aria-label={ "Copy: " (label) } { "Copy" }
        }
    }
}

/// A hash or an address, short, with the whole of it for whoever wants it.
pub fn hash(text: &str) -> Markup {
    html! { code.hash title=(text) { (short(text)) } }
}

/// A link to a creator's page.
pub fn creator(address: &str) -> Markup {
    html! { a.hash href={ "/creators/" (address) } title=(address) { (short(address)) } }
}

/// Where wallets that are found are offered, what to do without one, and where is said how it goes.
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

/// What to do without a wallet: shown by scripts that find none.
#[must_use]
pub fn no_wallet() -> Markup {
    html! {
        p.no-wallet hidden {
            "No Cardano wallet was found in this browser. Install one that offers CIP-30 (for example Lace or Eternl), \
             switch it to preprod, and reload this page."
        }
    }
}

/// Where is said what a wallet is asked to sign.
#[must_use]
pub fn draft() -> Markup {
    html! {
        section #draft hidden aria-labelledby="signs" {
            h2 #signs { "Your wallet signs this" }
            ul #words {}
        }
    }
}

/// Where scripts say how it goes.
#[must_use]
pub fn progress() -> Markup {
    html! {
        p #status role="status" aria-live="polite" {}
        p #problem role="alert" {}
    }
}

/// How a seller's escrows ended.
pub fn reputation(known: Option<Reputation>) -> Markup {
    html! {
        @match known {
            Some(Reputation { score, basis }) => {
                span.reputation title={ "Of " (count(basis, "closed escrow")) ", " (score) " % were paid out to the seller" } {
                    (score) " %" small { " of " (basis) }
                }
            }
            None => { span.reputation.new { "New seller" } }
        }
    }
}

/// How it may be bought.
pub fn modes(listing: &Listing) -> Markup {
    html! {
        @if listing.offers(DeliveryMode::Protected) { span.badge.protected { "Protected" } }
        @if listing.offers(DeliveryMode::Instant) { span.badge { "Instant" } }
    }
}

/// A listing among others; `place` tells previews apart.
pub fn card(listing: &Listing, place: usize) -> Markup {
    html! {
        li.card {
            div.picture { (preview::small(listing, place)) }
            h3 { a href={ "/listings/" (listing.id) } { (listing.title) } }
            p.about { (clipped(&listing.description, CARD_DESCRIPTION)) }
            p.facts { (modes(listing)) (reputation(listing.seller_reputation))
                @if let Some(sales @ 1..) = listing.sales { span { (count(sales, "sale")) } }
            }
            p.price { (tada(listing.price_lovelace)) }
        }
    }
}

/// Listings as cards.
pub fn cards(listings: &[Listing]) -> Markup {
    html! { ul.cards { @for (place, listing) in listings.iter().enumerate() { (card(listing, place)) } } }
}
