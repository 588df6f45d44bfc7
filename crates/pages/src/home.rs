//! `/`: what this is, and what is for sale.

use cardano::Lovelace;
use market::{DeliveryMode, catalogue::Sort, listing::CATEGORIES};
use maud::{Markup, html};
use url::form_urlencoded::Serializer;

use crate::{
    layout::{Card, Page, Place},
    parts,
    view::Listing,
};

/// Listings on a page: few enough that the page stays light whatever sellers write.
pub const PAGE: u32 = 12;

const WHAT: &str = "Prompts that build what their previews show, for test ADA. Paid protected, your money waits in a contract \
                    until what was listed is delivered; otherwise you take it back.";

/// What was asked for, as it was sent.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the fields of the form")]
pub struct Asked {
    pub q: String,
    pub category: String,
    pub mode: String,
    pub sort: String,
    /// In tADA.
    pub max: String,
    /// Whether this is a later page.
    pub later: bool,
}

impl Asked {
    /// What the query says, in the form's fields; everything else is ignored.
    pub fn read<'a>(pairs: impl IntoIterator<Item = (std::borrow::Cow<'a, str>, std::borrow::Cow<'a, str>)>) -> Self {
        let mut asked = Self::default();
        for (name, value) in pairs {
            let field = match &*name {
                "q" => &mut asked.q,
                "category" => &mut asked.category,
                "mode" => &mut asked.mode,
                "sort" => &mut asked.sort,
                "max" => &mut asked.max,
                "cursor" => {
                    asked.later = true;
                    continue;
                }
                _ => continue,
            };
            *field = value.into_owned();
        }
        asked
    }

    /// The fields that say something.
    pub fn said(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let fields = [
            ("q", &self.q),
            ("category", &self.category),
            ("mode", &self.mode),
            ("sort", &self.sort),
            ("max", &self.max),
        ];
        fields.into_iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| (name, value.as_str()))
    }

    /// The most that is to be paid; `None` where that is not a whole number of tADA.
    #[must_use]
    pub fn max_price(&self) -> Option<Lovelace> {
        self.max.parse().ok().map(Lovelace::from_ada)
    }

    fn narrows(&self) -> bool {
        self.said().any(|(name, _)| name != "sort")
    }

    fn path(&self, cursor: &str) -> String {
        let query = Serializer::new(String::new()).extend_pairs(self.said()).append_pair("cursor", cursor).finish();
        format!("/?{query}")
    }
}

/// The page.
#[must_use]
pub fn page(origin: &str, asked: &Asked, listings: &[Listing], next: Option<&str>) -> String {
    let main = html! {
        main #main {
            @if !asked.narrows() && !asked.later { (hero()) }
            (search(asked))
            section aria-labelledby="found" {
                h2 #found { @if asked.narrows() { "Found" } @else { "For sale" } }
                @if listings.is_empty() { (nothing(asked)) } @else { (parts::cards(listings)) }
                (pager(asked, next))
            }
        }
    };
    let card = Card { url: format!("{origin}/"), description: WHAT.into(), ..Card::default() };
    Page { title: "Prompts with buyer protection", place: Place::Catalogue, script: None, card: Some(card) }
        .around(&main)
}

fn hero() -> Markup {
    html! {
        section.hero {
            h1 { "Prompts you can return" }
            p { (WHAT) }
        }
    }
}

fn search(asked: &Asked) -> Markup {
    html! {
        form.search action="/" method="get" role="search" {
            div.line {
                label for="q" { span { "Search" } input #q type="search" name="q" value=(asked.q) maxlength="200"; }
                button { "Search" }
                @if asked.narrows() { a.button.quiet href="/" { "Clear" } }
            }
            (select("category", "Category", "Any", &asked.category, CATEGORIES.map(|name| (name, name)).into_iter()))
            (select("mode", "Payment", "Any", &asked.mode, modes()))
            label for="max" {
                span { "Up to (tADA)" }
                input #max type="number" name="max" min="1" step="1" inputmode="numeric" value=(asked.max);
            }
            (select("sort", "Sort", "Newest", &asked.sort, sorts()))
        }
    }
}

fn modes() -> impl Iterator<Item = (&'static str, &'static str)> {
    [(DeliveryMode::Protected, "Protected"), (DeliveryMode::Instant, "Instant")]
        .into_iter()
        .map(|(mode, words)| (mode.as_str(), words))
}

fn sorts() -> impl Iterator<Item = (&'static str, &'static str)> {
    let named = [
        ("popular", "Most sold"),
        ("price_asc", "Cheapest"),
        ("price_desc", "Dearest"),
        ("reputation", "Best reputation"),
    ];
    named.into_iter().filter(|(name, _)| name.parse::<Sort>().is_ok())
}

fn select<'a>(
    name: &str,
    label: &str,
    none: &str,
    chosen: &str,
    options: impl Iterator<Item = (&'a str, &'a str)>,
) -> Markup {
    html! {
        label for=(name) {
            span { (label) }
            select #(name) name=(name) {
                option value="" { (none) }
                @for (value, words) in options {
                    option value=(value) selected[value == chosen] { (words) }
                }
            }
        }
    }
}

fn nothing(asked: &Asked) -> Markup {
    html! {
        div.empty {
            @if asked.narrows() {
                p { "Nothing matches." }
                p { a.button.quiet href="/" { "Show everything" } }
            } @else {
                p { "Nothing is for sale yet." }
                p { a.button href="/sell" { "Sell the first prompt" } }
            }
        }
    }
}

fn pager(asked: &Asked, next: Option<&str>) -> Markup {
    html! {
        @if asked.later || next.is_some() {
            nav.pager aria-label="Pages" {
                @if asked.later { a.button.quiet href="/" { "First page" } }
                @if let Some(cursor) = next { a.button.quiet rel="next" href=(asked.path(cursor)) { "Next page" } }
            }
        }
    }
}
