//! `/sell`: the form for a listing, which the seller's wallet signs, with a preview of its card.

use cardano::Lovelace;
use market::{
    fees::MIN_FEE,
    listing::{CATEGORIES, MAX_DESCRIPTION, MAX_EXCERPT, MAX_PREVIEW_URL, MAX_TITLE, MIN_PRICE, MIN_PROTECTED_PRICE},
};
use maud::{Markup, html};

use crate::{
    asset::SELL,
    layout::{Card, Page, Section},
    parts::{self, field},
};

const WHAT: &str = "List a prompt with your wallet. No account, no fee to list.";

const SHARE: &str =
    "Instant pays you the whole price, protected the price less 1.5 tADA or 10\u{a0}%, whichever is more.";

/// Returns the content security policy of the page on which a seller creates a listing. In contrast to `usual`, the
/// policy of other pages, it allows media from any host, because the page loads the seller's recording to test its URL.
#[must_use]
pub fn policy(usual: &str) -> String {
    usual.replacen("img-src 'self' data:", "img-src 'self' data: https:; media-src https:", 1)
}

/// Renders the page with the form. `origin` is the service's address.
#[must_use]
pub fn page(origin: &str) -> String {
    let main = html! {
        main #main.two {
            div {
                h1 { "Sell a prompt" }
                p.soft { (WHAT) }
                noscript { p.warning { "Listing needs JavaScript, because your wallet is asked to sign the offer." } }
                form #offer novalidate { (description()) (terms()) }
                (parts::wallets("Sign the offer and list it"))
                (parts::progress())
            }
            aside.stack.sticky aria-label="Preview" {
                h2 { "What a buyer sees" }
                // Filled in by the script while the seller types.
                div.card #card {
                    div.picture { div class="cover tone-0 pattern-0" aria-hidden="true" { span data-shows="category" { "Prompt" } b data-shows="title" { "Your title" } } }
                    div.row {
                        h3 data-shows="title" { "Your title" }
                        span.amount { span data-shows="priceTada" { "0" } " tADA" }
                    }
                    p.small.soft #card-modes { "New seller" }
                    p.small.description data-shows="description" { "What it builds" }
                }
                section.box aria-labelledby="fees" {
                    h2 #fees { "What you get" }
                    p.small { b { "Instant: " } "the whole price, at once, straight to your wallet." }
                    p.small {
                        b { "Protected: " } "the price less 1.5 tADA or 10\u{a0}%, whichever is more, about half an hour after the sale."
                    }
                }
            }
        }
    };
    let card = Card { url: format!("{origin}/sell"), description: WHAT.into(), ..Card::default() };
    Page { title: "Sell a prompt", section: Section::Sell, script: Some(SELL), card: Some(card) }.around(&main)
}

/// Renders the form's fields for the public part of a listing.
fn description() -> Markup {
    let category = html! {
        select #category name="category" {
            option value="" { "None" }
            @for category in CATEGORIES { option { (category) } }
        }
    };
    let preview = html! {
        input #previewMedia name="previewMedia" type="url" maxlength=(MAX_PREVIEW_URL) placeholder="https://…/recording.mp4"
            pattern="https://.+\\.([mM][pP]4|[wW][eE][bB][mMpP]|[gG][iI][fF])" aria-describedby="preview-note"
            data-wrong="An https address that ends in .mp4, .webm, .webp or .gif.";
        span.note #preview-note {
            "The https address of a recording of what it builds: .mp4, .webm, .webp or .gif. Without one, a cover with \
             your title is drawn."
         }
        span.note #recording role="status" {}
    };
    html! {
        (field("title", "Title", &html! { input #title name="title" required data-most=(MAX_TITLE); }))
        (field("description", "What it builds", &html! {
            textarea #description name="description" rows="4" required data-most=(MAX_DESCRIPTION) {}
        }))
        (field("category", "Category", &category))
        (field("previewMedia", "Recording: MP4, WebM, WebP or GIF (optional)", &preview))
    }
}

/// Renders the form's fields for content, price and delivery modes.
fn terms() -> Markup {
    let content = html! {
        textarea #content name="content" rows="8" required aria-describedby="content-note" {}
        span.note #content-note { "Only buyers see it. Its fingerprint, a number computed from the text, is public, so every delivery can be checked." }
    };
    let price = html! {
        input #priceTada name="priceTada" type="number" required min="1" max=(Lovelace::MAX.get() / 1_000_000) step="0.000001" inputmode="decimal"
            data-protected=(MIN_PROTECTED_PRICE.get() / 1_000_000) aria-describedby="price-note";
        span.note #price-note {
            "At least " (MIN_PRICE.display_tada()) ", with protection " (MIN_PROTECTED_PRICE.display_tada()) "."
        }
        span.note #gets data-fee=(MIN_FEE) data-empty=(SHARE) { (SHARE) }
    };
    let modes = html! {
        select #modes name="modes" {
            option value="both" { "Protected or instant, as they like" }
            option value="protected" { "Protected only" }
            option value="instant" { "Instant only" }
        }
    };
    html! {
        (field("content", "The prompt itself", &content))
        (field("file", "Or take it from a file", &html! {
            input #file type="file" accept=".txt,.md,text/*" aria-describedby="file-note";
            span.note #file-note { "Text in UTF-8, sold byte for byte, or in UTF-16. At most 1 MiB." }
        }))
        (field("excerpt", "An excerpt for everyone (optional)", &html! {
            textarea #excerpt name="excerpt" rows="3" data-most=(MAX_EXCERPT) aria-describedby="excerpt-note" {}
            span.note #excerpt-note {
                "Copied from the prompt, at most " (MAX_EXCERPT) " characters. The listing shows it as checked by Surety, \
                 with the length of the whole."
            }
        }))
        (field("priceTada", "Price (tADA)", &price))
        (field("modes", "Buyers may pay", &modes))
    }
}
