//! `/listings/{id}`: what it is, what it costs, who sells it, and how to buy it.

use market::DeliveryMode;
use maud::{Markup, html};

use crate::{
    format::{clipped, count, on, tada},
    layout::{Card, Page, Place},
    parts, preview,
    view::Listing,
};

/// Characters of a description in a link's card.
const CARD_DESCRIPTION: usize = 200;

/// The page; `origin` is our own address.
#[must_use]
pub fn page(origin: &str, listing: &Listing) -> String {
    let main = html! {
        main #main.product {
            div.picture { (preview::large(listing)) }
            (buy_box(listing))
            section.about aria-labelledby="about" {
                h2 #about { "What it is" }
                p.description { (listing.description) }
                (facts(listing))
            }
            (other_ways(origin, listing))
        }
    };
    Page { title: &listing.title, place: Place::Elsewhere, script: None, card: Some(card(origin, listing)) }
        .around(&main)
}

fn card(origin: &str, listing: &Listing) -> Card {
    let media = |wanted: bool| listing.preview_media.clone().filter(|media| preview::is_video(media) == wanted);
    let about = clipped(&listing.description, CARD_DESCRIPTION);
    Card {
        url: format!("{origin}/listings/{}", listing.id),
        description: format!("{} · {about}", listing.price_lovelace.display_tada()),
        image: media(false),
        video: media(true),
    }
}

fn buy_box(listing: &Listing) -> Markup {
    html! {
        section.buy aria-label="Buy" {
            h1 { (listing.title) }
            p.price { (tada(listing.price_lovelace)) }
            p { a.button.wide href={ "/listings/" (listing.id) "/unlock" } { "Buy with a wallet" } }
            (ways(listing))
            div.seller {
                p { "Sold by " (parts::creator(&listing.seller_address.to_string())) }
                p.facts {
                    (parts::reputation(listing.seller_reputation))
                    @if let Some(sales @ 1..) = listing.sales { span { (count(sales, "sale")) } }
                }
            }
        }
    }
}

/// What a buyer gets into, in a line each.
fn ways(listing: &Listing) -> Markup {
    html! {
        ul.ways {
            @if listing.offers(DeliveryMode::Protected) {
                li {
                    span.badge.protected { "Protected" }
                    " Your money waits in a contract. Nothing delivered in 16 minutes: you take it back. Something else \
                     delivered: you dispute, and an arbiter decides."
                }
            }
            @if listing.offers(DeliveryMode::Instant) {
                li { span.badge { "Instant" } " The seller is paid at once, for good." }
            }
        }
    }
}

fn facts(listing: &Listing) -> Markup {
    html! {
        dl.facts {
            @if let Some(category) = &listing.category {
                div { dt { "Category" } dd { (category) } }
            }
            @if let Some(at) = listing.created_at {
                div { dt { "Listed" } dd { (on(at)) } }
            }
            div { dt { "Delivered as" } dd { "Text, at once, once the payment is in a block (20 to 60 seconds)" } }
            div {
                dt { "SHA-256 of the content" }
                dd { code.whole { (listing.content_hash) } small { "What you receive has this hash, or it is not what was listed." } }
            }
        }
    }
}

fn other_ways(origin: &str, listing: &Listing) -> Markup {
    let id = &listing.id;
    let mode = if listing.offers(DeliveryMode::Protected) { "protected" } else { "instant" };
    html! {
        section.programs aria-labelledby="programs" {
            h2 #programs { "For programs and agents" }
            div.pair {
                div {
                    h3 { "With an x402 client" }
                    p { "The answer is 402: its header PAYMENT-REQUIRED holds the signed terms. Pay, and send the same request with PAYMENT-SIGNATURE." }
                    (parts::copyable("Ask for the terms", &format!("curl -i {origin}/listings/{id}/unlock")))
                    p { "Without a transaction builder: have the payment drafted from your wallet's outputs, and sign it." }
                    (parts::copyable("Have it drafted", &format!(
                        "curl {origin}/listings/{id}/payment-draft --json \
                         '{{\"mode\":\"{mode}\",\"utxos\":[\"8282...\"],\"changeAddress\":\"addr_test1...\"}}'"
                    )))
                }
                div {
                    h3 { "With an agent" }
                    p { "Connect it once and set limits; it buys within them." }
                    (parts::copyable("Connect Claude Code", &format!("claude mcp add --transport http surety {origin}/mcp")))
                    (parts::copyable("Then say", &format!("Buy {id} from surety, {mode}, and use it here.")))
                }
            }
        }
    }
}
