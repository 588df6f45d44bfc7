//! What people see: HTML for browsers, beside the JSON that programs get from the same paths.
//!
//! ```text
//! JSON of market ── view ──> page ── layout ──> HTML        web/*.css, web/*.js ── asset ──> /assets/NAME.HASH.EXT
//! ```
//!
//! Everything is rendered here and escaped by maud; nothing is inline, for the policy in [`HEADERS`] forbids it. Scripts are
//! needed only where a wallet signs: they read what they need from the page's `data-` attributes.

#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

pub mod accept;
pub mod account;
pub mod asset;
pub mod creator;
pub mod feed;
mod format;
pub mod home;
pub mod layout;
pub mod listing;
pub mod parts;
pub mod paywall;
pub mod picture;
pub mod preview;
pub mod problem;
pub mod purchase;
pub mod sell;
pub mod test_wallet;
pub mod view;

/// The header that says what a page may load and ask.
pub const POLICY: &str = "content-security-policy";

/// The headers of every page: own scripts and styles only, wallets' icons from data URLs, previews in frames of our own
/// (`preview`). No page may frame it, and no referrer reaches others.
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
