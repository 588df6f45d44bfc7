//! `/listings/{id}`: a listing, its seller, and the ways to buy it.

use market::DeliveryMode;
use maud::{Markup, html};

use crate::{
    format::{count, on, tada},
    guide,
    layout::{Card, Page, Section},
    markdown, parts,
    preview::{self, Size},
    view::{Listing, Seller},
};

/// Renders a listing's page. `origin` is the service's address.
#[must_use]
pub fn page(origin: &str, listing: &Listing, seller: &Seller) -> String {
    let url = format!("{origin}/listings/{}", listing.id);
    let main = html! {
        main #main.two.product {
            div.stack {
                div {
                    p.small.soft {
                        a href="/" { "Browse" }
                        @if let Some(category) = &listing.category { " › " a href={ "/?category=" (category) } { (category) } }
                    }
                    h1 { (listing.title) }
                    p.facts.soft {
                        span { "by " (parts::seller(listing)) }
                        (parts::standing(seller))
                        @if let Some(sold @ 1..) = listing.sales { span { (sold) " sold" } }
                        @if let Some(at) = listing.created_at { span { "listed " (on(at)) } }
                    }
                }
                (preview::picture(listing, Size::Large))
            }
            (buy_box(listing))
            div.stack {
                div #yours data-listing=(listing.id) data-seller=(listing.seller_address) {
                    p #bought hidden {
                        "You bought this. " a href="/me" { "Open your purchase" } " · "
                        a href={ "/listings/" (listing.id) "/unlock" } { "Buy it with another wallet" }
                    }
                    p #sold hidden { "This is your own listing. " a href="/me" { "Open your account" } " to take it off sale." }
                }
                section aria-labelledby="about" {
                    h2 #about { "About this prompt" }
                    div.description { (markdown::render(&listing.description)) }
                    (excerpt(listing))
                }
                details {
                    summary { "Verify what you receive (fingerprint)" }
                    p.small.soft {
                        "A fingerprint is a number computed from the text (SHA-256): the same text always has the same one, and no other text \
                         has it. This shop checks it when it delivers; you can check it yourself."
                    }
                    (parts::copyable("Fingerprint of the text", &listing.content_hash.to_string()))
                }
                (other_ways(origin, listing))
                div.acts {
                    button.copy.quiet type="button" hidden data-copy=(url) { "Copy link" }
                }
            }
        }
        p.buybar { (buy(listing)) }
    };
    let card = Card {
        description: format!("{} · {}", listing.price_lovelace.display_tada(), listing.description),
        image: Some(format!("{url}/picture.png")),
        video: listing.preview_media.clone().filter(|media| preview::is_video(media)),
        url,
    };
    Page { title: &listing.title, section: Section::Elsewhere, script: None, card: Some(card) }.around(&main)
}

/// Renders the page of a listing that its seller has taken off sale.
#[must_use]
pub fn off_sale(listing: &Listing) -> String {
    let main = html! {
        main #main.narrow {
            h1 { (listing.title) }
            p role="alert" { "Off sale: its seller no longer offers this prompt." }
            p { "Did you buy it? It stays yours: open the purchase in your account and read it again, free." }
            p.acts {
                a.button href="/me" { "Open your account" }
                a.button.quiet href={ "/creators/" (listing.seller_address) } { "Other prompts of this seller" }
                a.button.quiet href="/" { "Browse prompts" }
            }
        }
    };
    Page { title: &listing.title, section: Section::Elsewhere, script: None, card: None }.around(&main)
}

/// Renders the excerpt from the content, with the length of the whole.
fn excerpt(listing: &Listing) -> Markup {
    html! {
        @if let (Some(excerpt), Some(stats)) = (&listing.excerpt, listing.content_stats) {
            figure.excerpt {
                blockquote { (excerpt) }
                figcaption.small.soft {
                    "From the text, checked by Surety. The whole text has " (count(stats.words, "word")) ", "
                    (count(stats.characters, "character")) "."
                }
            }
        }
    }
}

fn buy(listing: &Listing) -> Markup {
    html! {
        a.button.wide data-buy href={ "/listings/" (listing.id) "/unlock" } { "Buy for " (listing.price_lovelace.display_tada()) }
    }
}

fn buy_box(listing: &Listing) -> Markup {
    let protected = listing.offers(DeliveryMode::Protected);
    html! {
        aside.box.sticky.stack aria-label="Buy" {
            p.price { (tada(listing.price_lovelace)) }
            (buy(listing))
            p.small.soft { "Plain text (Markdown), shown 20 to 60 seconds after you pay. Yours to keep." }
            @if protected { (protection(listing)) }
            @if listing.offers(DeliveryMode::Instant) {
                p.small.soft {
                    (if protected { "Or pay instantly: the seller is paid at once. No protection, no refund." }
                     else { "Instant only: the seller is paid at once. No protection, no refund." })
                }
            }
        }
    }
}

/// Renders what a protected purchase guarantees, and what happens if something goes wrong.
fn protection(listing: &Listing) -> Markup {
    html! {
        div #protection {
            p.pill { "Protected purchase" }
            p.small { b { (guide::GUARANTEE) } }
            ol.steps {
                li {
                    span {
                        "A smart contract holds your " (listing.price_lovelace.display_tada())
                        ": a program on Cardano's public ledger that pays out by its own rules only."
                    }
                }
                li {
                    span {
                        "Nothing arrives? Without a proof of delivery within " (guide::PROOF_DUE) " min, " b { "you can take your money back" }
                        ". The proof is a fingerprint of the delivered text that the seller records on the ledger."
                    }
                }
                li {
                    span {
                        "The wrong file arrives? " b { "Dispute within " (guide::DISPUTE_UNTIL) " min of your order" }
                        ". The arbiter, a program of this shop's operator, compares fingerprints and decides within an hour of the order."
                    }
                }
                li { span { "The right file arrives? The seller is paid after " (guide::DISPUTE_UNTIL) " min, and you need do nothing." } }
            }
            p.small.soft {
                "Not covered: whether the prompt is good, or does what its description says. "
                a href=(guide::PROTECTION) { "How protection works" }
            }
        }
    }
}

fn other_ways(origin: &str, listing: &Listing) -> Markup {
    let id = &listing.id;
    let mode = if listing.offers(DeliveryMode::Protected) { "protected" } else { "instant" };
    html! {
        details #programs {
            summary { "Buy from a program or an AI agent" }
            h3 { "With an AI agent" }
            p.small { "Connect it once and set limits. It buys within them. " a href="/connect" { "Other agents than Claude Code" } }
            (parts::copyable("Connect Claude Code", &format!("claude mcp add --transport http surety {origin}/mcp")))
            (parts::copyable("Then say", &format!("Buy {id} from surety, {mode}, and use it here.")))
            h3 { "With an x402 client" }
            p.small { "The answer is 402, with the signed terms in its header. Pay, and send the request again with the payment." }
            (parts::copyable("Ask for the terms", &format!("curl -i {origin}/listings/{id}/unlock")))
            p.small { a href="/docs" { "The API, with every step" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::format::short;

    /// Destructures a listing without `..`, so that this test does not compile until a new field is shown or left out
    /// on purpose.
    #[test]
    fn the_page_shows_every_field_of_a_listing() {
        let listing: Listing = serde_json::from_value(json!({
            "id": "lst_01ARZ3NDEKTSV4RRFFQ69G5FAV", "title": "Aurora", "description": "A hero with northern lights",
            "priceLovelace": "12500000", "modes": ["instant", "protected"], "contentHash": "a".repeat(64),
            "sellerAddress": "addr_test1vpu5vlrf4xkxv2qpwngf6cjhtw542ayty80v8dyr49rf5eg57c2qv",
            "previewMedia": "https://media.example.com/aurora.mp4", "category": "Landing Page",
            "sellerName": "Studio <b>", "createdAt": "1790000000000", "sales": 17, "sellerReputation": { "score": 100, "basis": 9 },
            "excerpt": "Three gradients drift.", "contentStats": { "words": 248, "characters": 1051 },
        }))
        .unwrap();
        let page = page(
            "https://shop.example",
            &listing,
            &Seller { sales: 17, seller_reputation: listing.seller_reputation, ..Seller::default() },
        );
        let Listing {
            id,
            title,
            description,
            price_lovelace,
            seller_address,
            // Both modes appear in the last two texts below.
            modes: _,
            content_hash,
            preview_media,
            category,
            created_at,
            sales,
            seller_reputation,
            excerpt,
            content_stats,
            seller_name,
        } = listing;
        for shown in [
            id,
            title,
            description,
            tada(price_lovelace).into_string(),
            short(&seller_address.to_string()),
            content_hash.to_string(),
            preview_media.unwrap(),
            category.unwrap(),
            on(created_at.unwrap()).into_string(),
            format!("{} sold", sales.unwrap()),
            parts::paid_out(seller_reputation.unwrap()).into_string(),
            excerpt.unwrap(),
            parts::name(&seller_name.unwrap()).into_string(),
            count(content_stats.unwrap().words, "word"),
            "Protected purchase".to_owned(),
            "Or pay instantly".to_owned(),
        ] {
            assert!(page.contains(&shown), "{shown}");
        }
    }
}
