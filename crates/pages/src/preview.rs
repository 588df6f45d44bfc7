//! A listing's cover, and on the listing's page on top of it the recording, which is loaded from another server.
//!
//! The recording is loaded lazily in a sandboxed frame, in which it can neither run scripts nor reach the page or learn
//! its address. The video has no browser controls, which would show a black box if the recording does not load. Without
//! them, the cover remains visible. A checkbox pauses the video; readers who prefer reduced motion start it by the same
//! checkbox.

use maud::{DOCTYPE, Markup, html};

use crate::{asset::STYLE, view::Listing};

/// Response headers of a preview's frame, which may show one picture or video and nothing else. No script may be
/// loaded. `allow-scripts` is set because browsers autoplay a video only in frames that have it.
pub const HEADERS: [(&str, &str); 4] = [
    ("content-type", "text/html; charset=utf-8"),
    (
        "content-security-policy",
        "default-src 'none'; style-src 'self'; img-src https:; media-src https:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'self'; sandbox allow-scripts",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
];

/// Size at which a preview is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// Small, on a listing's card: the cover, with a mark if there is a recording.
    Small,
    /// Large, on the listing's page: the recording plays.
    Large,
}

/// Returns whether a preview's URL is that of a video, by its extension.
#[must_use]
pub fn is_video(media: &str) -> bool {
    let media = media.to_ascii_lowercase();
    media.ends_with(".mp4") || media.ends_with(".webm")
}

/// Renders the document in a preview's frame.
#[must_use]
pub fn page(media: &str) -> String {
    let page = html! {
        (DOCTYPE)
        html.preview lang="en" {
            head {
                meta charset="utf-8";
                title { "Preview" }
                link rel="stylesheet" href=(STYLE);
            }
            body {
                input type="checkbox" aria-label="Play or pause the recording";
                @if is_video(media) {
                    video.moving src=(media) autoplay muted loop playsinline {}
                    video.still src=(media) muted playsinline preload="metadata" {}
                } @else {
                    img.moving src=(media) alt="";
                }
            }
        }
    };
    page.into_string()
}

/// Renders a listing's cover with its title. A recording plays on top of the large cover, and is only marked on the
/// small one.
pub(crate) fn picture(listing: &Listing, size: Size) -> Markup {
    html! {
        div.picture {
            (cover(listing, &html! { span { (listing.category.as_deref().unwrap_or("Prompt")) } b { (listing.title) } }))
            @if listing.preview_media.is_some() {
                @match size {
                    Size::Small => { span.mark { "▶ Recording" } }
                    Size::Large => {
                        iframe src={ "/listings/" (listing.id) "/preview" } title="Recording of what the prompt builds" loading="lazy"
                            sandbox="allow-scripts" {}
                    }
                }
            }
        }
    }
}

pub(crate) fn cover(listing: &Listing, words: &Markup) -> Markup {
    let (tone, pattern) = look(listing);
    html! { div class={ "cover tone-" (tone) " pattern-" (pattern) } aria-hidden="true" { (words) } }
}

/// Number of colour pairs for covers in the stylesheet.
pub(crate) const TONES: usize = 6;
const PATTERNS: usize = 5;

/// Derives a cover's colours and pattern from the listing's id.
pub(crate) fn look(listing: &Listing) -> (usize, usize) {
    let sum = listing.id.bytes().fold(0, |sum: usize, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    (sum % TONES, (sum / TONES) % PATTERNS)
}
