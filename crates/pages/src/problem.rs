//! Error pages.

use maud::html;

use crate::layout::{Page, Section};

/// Renders an error page. `words` is the API's error message; pages for 400, 404, 410 and 429 show a fixed text
/// instead.
#[must_use]
pub fn page(status: u16, words: &str) -> String {
    let (title, words) = match status {
        404 | 410 => (
            "Page not found",
            "There is nothing at this address. The link may have a typo, or the prompt was taken off sale.",
        ),
        400 => ("This link does not work", "A part of its address is missing or wrong. Go back and try again."),
        429 => ("Too many requests", "Wait a minute, then reload this page."),
        _ => ("Temporarily unavailable", words),
    };
    let main = html! {
        main #main.narrow {
            h1 { (title) }
            p role="alert" { (words) }
            p { a.button href="/" { "Browse prompts" } }
        }
    };
    Page { title, section: Section::Elsewhere, script: None, card: None }.around(&main)
}
