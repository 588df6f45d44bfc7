//! A listing's recording, from somebody else's server: shown in a sandboxed frame of our own, loaded when it is seen. What
//! it is cannot run, reach the page around it, or be told where it was shown.

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
                    img src=(media) alt="Preview";
                }
            }
        }
    };
    page.into_string()
}

/// The frame on a card; a coloured field where there is no recording. `place` tells frames apart.
pub(crate) fn small(listing: &Listing, place: usize) -> Markup {
    html! {
        @if listing.preview_media.is_some() {
            iframe src={ "/listings/" (listing.id) "/preview?small" } title={ "Preview " (place.saturating_add(1)) }
                loading="lazy" sandbox="" tabindex="-1" {}
        } @else { (field(listing)) }
    }
}

/// The frame on the listing's page.
pub(crate) fn large(listing: &Listing) -> Markup {
    html! {
        @if listing.preview_media.is_some() {
            iframe src={ "/listings/" (listing.id) "/preview" } title="Preview of what the prompt builds" loading="lazy"
                sandbox="" {}
        } @else { (field(listing)) }
    }
}

fn field(listing: &Listing) -> Markup {
    let category = listing.category.as_deref().unwrap_or("Prompt");
    let tone = category.bytes().fold(0_u8, u8::wrapping_add) % 6;
    html! { div class={ "field tone-" (tone) } aria-hidden="true" { (category) } }
}
