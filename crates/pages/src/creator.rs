//! `/creators/{address}`: a seller's listings and record of protected sales.

use maud::html;

use crate::{
    format::{count, short},
    layout::{Card, Page, Section},
    parts,
    view::{Listing, Seller},
};

/// Renders a seller's page with the newest listings, or those after a cursor. `next` is the cursor of the next page,
/// `None` on the last.
#[must_use]
pub fn page(origin: &str, address: &str, seller: &Seller, listings: &[Listing], next: Option<&str>) -> String {
    let title = format!("Prompts by {}", short(address));
    let main = html! {
        main #main {
            section.person {
                h1 { (title) }
                p.facts.soft { (parts::standing(seller)) span { (count(seller.sales, "sale")) } }
                details.quietly {
                    summary { "Seller's address" }
                    (parts::copyable("Seller's address", address))
                    p.small { a href={ "/feed.xml?seller=" (address) } { "New prompts of this seller (feed)" } }
                }
            }
            section aria-labelledby="offers" {
                h2 #offers { "For sale" }
                @if listings.is_empty() { div.empty { p { "Nothing is for sale here now." } } } @else { (parts::cards(listings)) }
                @if let Some(cursor) = next {
                    nav.pager aria-label="Pages" {
                        a.button.quiet rel="next" href={ "/creators/" (address) "?cursor=" (cursor) } { "Next page" }
                    }
                }
            }
        }
    };
    let description = format!("{}: {} on Surety.", title, count(seller.sales, "sale"));
    let card = Card { url: format!("{origin}/creators/{address}"), description, ..Card::default() };
    Page { title: &title, section: Section::Elsewhere, script: None, card: Some(card) }.around(&main)
}
