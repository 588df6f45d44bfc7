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
    let path = media.split(['?', '#']).next().unwrap_or_default();
    path.ends_with(".mp4") || path.ends_with(".webm")
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

/// The cover. The last characters of an id are random: so are colours and patterns.
pub(crate) fn cover(listing: &Listing, words: &Markup) -> Markup {
    html! { div class={ "cover tone-" (tone(listing)) " pattern-" (pattern(listing)) } aria-hidden="true" { (words) } }
}

/// Colours and patterns of covers in the stylesheet.
pub(crate) const TONES: usize = 6;
const PATTERNS: usize = 5;

fn sum(listing: &Listing) -> usize {
    listing.id.bytes().fold(0, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)))
}

/// Which colours a listing's cover has.
pub(crate) fn tone(listing: &Listing) -> usize {
    sum(listing) % TONES
}

/// Which pattern a listing's cover has.
pub(crate) fn pattern(listing: &Listing) -> usize {
    (sum(listing) / TONES) % PATTERNS
}
