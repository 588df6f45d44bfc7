//! A page instead of the one that was asked for.

use maud::html;

use crate::layout::{Page, Place};

/// Why there is no page, in the API's words.
#[must_use]
pub fn page(status: u16, words: &str) -> String {
    let title = match status {
        404 | 410 => "Not here",
        400 => "That did not work",
        429 => "Too fast",
        _ => "Not now",
    };
    let main = html! {
        main #main.narrow {
            h1 { (title) }
            p role="alert" { (words) }
            p { a.button href="/" { "Browse what is for sale" } }
        }
    };
    Page { title, place: Place::Elsewhere, script: None, card: None }.around(&main)
}
