//! HTML pages for browsers, at the same paths as the API's JSON.
//!
//! ```text
//! JSON of market ── view ──> page ── layout ──> HTML        web/*.css, web/*.js ── asset ──> /assets/HASH/NAME
//! ```
//!
//! Pages are rendered from the API's types and escaped by maud. Nothing is inline, because the policy in [`HEADERS`]
//! forbids it. Scripts are needed only to sign with a wallet; they read their parameters from `data-` attributes.

#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

pub mod accept;
pub mod account;
pub mod asset;
pub mod creator;
pub mod feed;
mod format;
pub mod guide;
pub mod home;
pub mod layout;
pub mod listing;
pub mod markdown;
pub mod parts;
pub mod paywall;
pub mod picture;
pub mod preview;
pub mod problem;
pub mod purchase;
pub mod sell;
pub mod test_wallet;
pub mod view;

/// Name of the response header that restricts the sources of a page's scripts, styles and pictures.
pub const POLICY: &str = "content-security-policy";

/// Response headers of every page. They allow our own scripts and styles, wallets' icons from data URLs, and previews
/// in frames of this service (`preview`). Other sites cannot show the pages in frames, and links send no referrer.
pub const HEADERS: [(&str, &str); 5] = [
    ("content-type", "text/html; charset=utf-8"),
    (
        POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
         frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    ("x-frame-options", "DENY"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
];
