//! A listing's cover, and its recording from another server: in a sandboxed frame, loaded when it is seen. The recording
//! cannot run, reach the page around it, or learn where it was shown. Where it does not load, the cover stays.

use maud::{DOCTYPE, Markup, html};

use crate::{asset::STYLE, view::Listing};

/// The headers of a preview's frame: it shows one picture or video and does nothing else.
pub const HEADERS: [(&str, &str); 4] = [
    ("content-type", "text/html; charset=utf-8"),
    (
        "content-security-policy",
        "default-src 'none'; style-src 'self'; img-src https:; media-src https:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'self'; sandbox",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
];

/// How it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// On a card: it stands still.
    Small,
    /// On the listing's page.
    Large,
}

/// Whether this is a video, by its ending.
#[must_use]
pub fn is_video(media: &str) -> bool {
    media.ends_with(".mp4") || media.ends_with(".webm")
}

/// The frame's document.
#[must_use]
pub fn page(media: &str, size: Size) -> String {
    let page = html! {
        (DOCTYPE)
        html.preview lang="en" {
            head {
                meta charset="utf-8";
                title { "Preview" }
                link rel="stylesheet" href=(STYLE.path);
            }
            body {
                @if is_video(media) {
                    video src=(media) controls[size == Size::Large] muted loop playsinline preload="metadata" {}
                } @else {
                    img src=(media) alt="";
                }
            }
        }
    };
    page.into_string()
}

/// A listing's cover: drawn for it alone, with its title; over it the recording, where there is one and it loads.
pub(crate) fn picture(listing: &Listing, size: Size) -> Markup {
    let (query, title) = match size {
        Size::Small => ("?small", format!("Recording: {}", listing.title)),
        Size::Large => ("", "Recording of what the prompt builds".to_owned()),
    };
    html! {
        div.picture {
            (cover(listing, &html! { span { (listing.category.as_deref().unwrap_or("Prompt")) } b { (listing.title) } }))
            @if listing.preview_media.is_some() {
                iframe src={ "/listings/" (listing.id) "/preview" (query) } title=(title) loading="lazy" sandbox=""
                    tabindex=[(size == Size::Small).then_some("-1")] {}
            }
        }
    }
}

/// The cover.
pub(crate) fn cover(listing: &Listing, words: &Markup) -> Markup {
    let (tone, pattern) = look(listing);
    html! { div class={ "cover tone-" (tone) " pattern-" (pattern) } aria-hidden="true" { (words) } }
}

/// Colours and patterns of covers in the stylesheet.
pub(crate) const TONES: usize = 6;
const PATTERNS: usize = 5;

/// Which colours and which pattern a listing's cover has: as random as the last characters of its id.
pub(crate) fn look(listing: &Listing) -> (usize, usize) {
    let sum = listing.id.bytes().fold(0, |sum: usize, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    (sum % TONES, (sum / TONES) % PATTERNS)
}
