//! `/`: the catalogue of listings, with search and filters.

use std::{borrow::Cow, collections::BTreeMap};

use cardano::Lovelace;
use market::{DeliveryMode, listing::CATEGORIES};
use maud::{Markup, html};
use url::form_urlencoded::Serializer;

use crate::{
    format::count,
    guide,
    layout::{Card, Page, Section},
    parts,
    view::Listing,
};

/// Number of listings per page, few enough to load quickly.
pub const PAGE: u32 = 12;

const TITLE: &str = "Design prompts, with protected purchases";
const WHAT: &str = "Buy a prompt, and paste it into Claude, GPT or Cursor to build a page.";

/// Sort orders other than newest first, as in [`market::catalogue::Sort`].
const SORTS: [(&str, &str); 4] = [
    ("popular", "Most sold"),
    ("price_asc", "Price: low to high"),
    ("price_desc", "Price: high to low"),
    ("reputation", "Best seller record"),
];

/// Names of the search form's fields. The value of `max` is in tADA.
const FIELDS: [&str; 5] = ["q", "category", "mode", "sort", "max"];

/// Query of the catalogue's search form.
#[derive(Clone, Debug, Default)]
pub struct SearchQuery {
    /// Values of the form's non-empty fields, by field name.
    fields: BTreeMap<&'static str, String>,
    /// Number of the page; 0 or 1 is the first.
    page: u32,
}

impl SearchQuery {
    /// Parses the form's query. Unknown fields are ignored.
    pub fn read<'a>(pairs: impl IntoIterator<Item = (Cow<'a, str>, Cow<'a, str>)>) -> Self {
        let mut asked = Self::default();
        for (name, value) in pairs {
            match FIELDS.into_iter().find(|field| *field == name) {
                Some(field) if !value.trim().is_empty() => {
                    asked.fields.insert(field, value.trim().to_owned());
                }
                None if name == "page" => asked.page = value.parse().unwrap_or(0),
                _ => {}
            }
        }
        asked
    }

    fn field(&self, field: &str) -> &str {
        self.fields.get(field).map_or("", String::as_str)
    }

    fn is_protected_only(&self) -> bool {
        self.field("mode") == DeliveryMode::Protected.as_str()
    }

    /// Returns the maximum price, or `None` if the field is empty or not an amount of tADA with at most six decimals.
    #[must_use]
    pub fn max_price(&self) -> Option<Lovelace> {
        let max = self.field("max");
        let (whole, fraction) = max.split_once('.').unwrap_or((max, ""));
        let is_decimal = fraction.len() <= 6 && !max.is_empty();
        is_decimal.then(|| format!("{whole}{fraction:0<6}").parse().ok()).flatten()
    }

    fn narrows(&self) -> bool {
        self.fields.keys().any(|field| *field != "sort")
    }

    /// Returns the path of the catalogue's first page with one field of the query changed. `more` holds additional
    /// parameters.
    fn path(&self, (name, value): (&str, &str), more: &[(&str, &str)]) -> String {
        let mut query = Serializer::new(String::new());
        query.extend_pairs(self.fields.iter().filter(|(said, _)| **said != name));
        if !value.is_empty() {
            query.append_pair(name, value);
        }
        let query = query.extend_pairs(more).finish();
        if query.is_empty() { "/".to_owned() } else { format!("/?{query}") }
    }

    /// Describes the query in words that follow a number: `protected Hero prompts for “aurora” up to 5 tADA`. `one`
    /// selects the singular.
    fn named(&self, one: bool) -> String {
        let words = [
            self.is_protected_only().then(|| "protected".to_owned()),
            self.fields.get("category").cloned(),
            Some(if one { "prompt" } else { "prompts" }.to_owned()),
            self.fields.get("q").map(|words| format!("for “{words}”")),
            self.max_price().map(|most| format!("up to {}", most.display_tada())),
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// Page of the search results.
#[derive(Clone, Copy, Debug)]
pub struct SearchResults<'a> {
    /// Listings on this page.
    pub listings: &'a [Listing],
    /// Number of listings on all pages.
    pub total: u64,
    /// Cursor of the next page; `None` on the last page.
    pub next: Option<&'a str>,
    /// `true` if no listing matches all words of the search. The listings then match only some of the words.
    pub some_words: bool,
}

/// Renders the catalogue's page. `origin` is the service's address.
#[must_use]
pub fn page(origin: &str, asked: &SearchQuery, found: &SearchResults<'_>) -> String {
    let narrowed = asked.narrows();
    let title = if narrowed { capital(&asked.named(false)) } else { TITLE.to_owned() };
    let following = asked.page.max(1).saturating_add(1).to_string();
    let main = html! {
        main #main {
            @if narrowed {
                h1.asked { @if found.total == 0 { "No" } @else { (found.total) } " " (asked.named(found.total == 1)) }
            } @else {
                section.hero {
                    h1 { (TITLE) }
                    p { (WHAT) }
                    p.promise { b { "Protected: " } (guide::GUARANTEE) " " a href=(guide::PROTECTION) { "How protection works" } }
                    ul.trust {
                        li { "✓ Money held until delivery is proven" }
                        li { "✓ File checked by its fingerprint" }
                        li { "✓ Disputes decided within an hour of the order" }
                    }
                    p.small.soft { "You choose before you pay. Instant purchases are not protected: the seller is paid at once." }
                }
            }
            (chips(asked))
            (bar(asked, found))
            @if found.some_words {
                p.soft { "No prompt has all of these words. These have some of them, or similar ones, the best first." }
            }
            @if !found.listings.is_empty() {
                (parts::cards(found.listings))
            } @else if narrowed {
                (parts::empty("No prompt matches. Try fewer words or another category.", "/", "Show all prompts"))
            } @else {
                (parts::empty("Nothing is for sale yet.", "/sell", "Sell the first prompt"))
            }
            @if asked.page > 1 || found.next.is_some() {
                nav.pager aria-label="Pages" {
                    @if asked.page > 1 { a.button.quiet href=(asked.path(("", ""), &[])) { "First page" } }
                    @if let Some(cursor) = found.next {
                        a.button.quiet rel="next" href=(asked.path(("", ""), &[("cursor", cursor), ("page", &following)])) { "Next page" }
                    }
                }
            }
        }
    };
    let card = Card { url: format!("{origin}/"), description: WHAT.into(), ..Card::default() };
    Page { title: &title, section: Section::Catalogue, script: None, card: Some(card) }
        .after_search(asked.field("q"), &main)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn chips(asked: &SearchQuery) -> Markup {
    let chip = |value: &str, words: &str| {
        html! {
            a href=(asked.path(("category", value), &[])) aria-current=[(asked.field("category") == value).then_some("true")] { (words) }
        }
    };
    html! {
        nav.chips aria-label="Categories" {
            (chip("", "All"))
            @for category in CATEGORIES { (chip(category, category)) }
        }
    }
}

fn bar(asked: &SearchQuery, found: &SearchResults<'_>) -> Markup {
    let pages = found.total.div_ceil(u64::from(PAGE)).max(1);
    html! {
        div.bar {
            h2 {
                @if asked.narrows() { "Results" } @else { (count(found.total, "prompt")) }
                @if pages > 1 { span.soft { " · page " (u64::from(asked.page).clamp(1, pages)) " of " (pages) } }
            }
            form action="/" aria-label="Filters" {
                @for (name, value) in asked.fields.iter().filter(|(name, _)| matches!(**name, "q" | "category" | "sort")) {
                    input type="hidden" name=(name) value=(value);
                }
                label {
                    input type="checkbox" name="mode" value="protected" checked[asked.is_protected_only()];
                    " Protected only"
                }
                label { "Max " input type="number" name="max" min="0" step="any" inputmode="decimal" placeholder="tADA"
                    aria-label="Max price in tADA" value=(asked.field("max")); }
                button.quiet { "Apply" }
            }
            // Listings with only some of the words are always sorted best match first.
            @if !found.some_words {
                nav.sorts aria-label="Sort" {
                    @for (value, words) in [("", "Newest")].into_iter().chain(SORTS) {
                        a href=(asked.path(("sort", value), &[])) aria-current=[(asked.field("sort") == value).then_some("true")] { (words) }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str) -> SearchQuery {
        SearchQuery::read(url::form_urlencoded::parse(query.as_bytes()))
    }

    #[test]
    fn a_price_filter_may_have_decimals_and_an_invalid_one_is_ignored() {
        for (said, lovelace) in
            [("2.5", Some(2_500_000)), ("3", Some(3_000_000)), ("0.000001", Some(1)), ("2.", Some(2_000_000))]
        {
            assert_eq!(asked(&format!("max={said}")).max_price().map(Lovelace::get), lovelace, "{said}");
        }
        for said in ["", "-1", "2,5", "1e3", "0.0000001", "999999999999", "two"] {
            assert_eq!(asked(&format!("max={said}")).max_price(), None, "{said}");
        }
    }

    #[test]
    fn every_order_that_the_form_offers_is_one_of_the_catalogue() {
        for (name, _) in SORTS {
            assert!(name.parse::<market::catalogue::Sort>().is_ok(), "{name}");
        }
    }

    #[test]
    fn a_search_page_names_its_query() {
        assert_eq!(
            asked("q=aurora&category=Hero&mode=protected&max=5").named(false),
            "protected Hero prompts for “aurora” up to 5 tADA"
        );
        assert_eq!(asked("q=aurora").named(true), "prompt for “aurora”");
        let page = page(
            "https://shop.example",
            &asked("q=%3Cb%3E"),
            &SearchResults { listings: &[], total: 0, next: None, some_words: false },
        );
        assert!(page.contains("<title>Prompts for “&lt;b&gt;” · Surety</title>"), "{page}");
    }

    #[test]
    fn chosen_filters_stay_on_the_next_page_and_in_another_category() {
        let asked = asked("q=a&sort=price_asc&page=2&cursor=1.1");
        assert_eq!(asked.path(("category", "3D"), &[]), "/?q=a&sort=price_asc&category=3D");
        assert_eq!(asked.path(("", ""), &[("cursor", "2.2"), ("page", "3")]), "/?q=a&sort=price_asc&cursor=2.2&page=3");
    }
}
