//! `/sell`: an offer, signed by the seller's wallet.

use market::listing::{CATEGORIES, MAX_DESCRIPTION, MAX_PREVIEW_URL, MAX_TITLE, MIN_PRICE, MIN_PROTECTED_PRICE};
use maud::{Markup, html};

use crate::{
    asset::SELL,
    layout::{Card, Page, Place},
    parts,
};

const WHAT: &str = "List a prompt with your wallet. No account, no fee to list.";

/// The page.
#[must_use]
pub fn page(origin: &str) -> String {
    let main = html! {
        main #main.narrow {
            h1 { "Sell a prompt" }
            p { (WHAT) }
            noscript { p.warning { "Listing needs JavaScript, because your wallet is asked to sign the offer." } }
            form #offer { (words()) (content()) (price()) }
            (parts::wallets("Sign the offer"))
            (parts::progress())
            (fees())
        }
    };
    let card = Card { url: format!("{origin}/sell"), description: WHAT.into(), ..Card::default() };
    Page { title: "Sell a prompt", place: Place::Sell, script: Some(&SELL), card: Some(card) }.around(&main)
}

fn words() -> Markup {
    html! {
        p.field {
            label for="title" { "Title" }
            input #title name="title" required maxlength=(MAX_TITLE);
        }
        p.field {
            label for="description" { "What it builds" }
            textarea #description name="description" rows="4" required maxlength=(MAX_DESCRIPTION) {}
        }
        p.field {
            label for="category" { "Category" }
            select #category name="category" {
                option value="" { "None" }
                @for category in CATEGORIES { option { (category) } }
            }
        }
        p.field {
            label for="previewMedia" { "Preview (optional)" }
            input #previewMedia name="previewMedia" type="url" maxlength=(MAX_PREVIEW_URL) placeholder="https://…/recording.mp4"
                aria-describedby="preview-note";
            span.note #preview-note { "The https address of a recording of what it builds: .mp4, .webm, .webp or .gif." }
        }
    }
}

fn content() -> Markup {
    html! {
        p.field {
            label for="content" { "The prompt itself" }
            textarea #content name="content" rows="8" required aria-describedby="content-note" {}
            span.note #content-note { "Only who pays sees it. Everybody sees its hash, so nobody can say that you delivered something else." }
        }
        p.field {
            label for="file" { "Or take it from a file" }
            input #file type="file" accept=".txt,.md,text/*";
        }
    }
}

fn price() -> Markup {
    html! {
        p.field {
            label for="priceTada" { "Price (tADA)" }
            input #priceTada name="priceTada" type="number" required min="1" step="0.000001" inputmode="decimal" aria-describedby="price-note";
            span.note #price-note {
                "At least " (MIN_PRICE.display_tada()) ", with protection " (MIN_PROTECTED_PRICE.display_tada()) "."
            }
        }
        p.field {
            label for="modes" { "Buyers may pay" }
            select #modes name="modes" {
                option value="both" { "Protected or instant, as they like" }
                option value="protected" { "Protected only" }
                option value="instant" { "Instant only" }
            }
        }
    }
}

fn fees() -> Markup {
    html! {
        section.next aria-labelledby="fees" {
            h2 #fees { "What you get" }
            p { "Instant: the whole price, at once, straight to your wallet." }
            p {
                "Protected: the price less 1.5 tADA or 10 %, whichever is more, about half an hour after the sale. We prove the \
                 delivery, collect from the contract and pay you in the same transaction."
            }
        }
    }
}
