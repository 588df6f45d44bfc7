//! `/creators/{address}`: what somebody sells, and how their sales ended.

use maud::html;

use crate::{
    format::{count, short},
    layout::{Card, Page, Place},
    parts,
    view::{Listing, Seller},
};

/// The page, with the newest listings or those after a cursor.
#[must_use]
pub fn page(origin: &str, address: &str, seller: &Seller, listings: &[Listing], next: Option<&str>) -> String {
    let title = format!("Sold by {}", short(address));
    let main = html! {
        main #main {
            section.person {
                h1 { "Seller" }
                code.whole { (address) }
                dl.figures {
                    div { dt { "Sales" } dd { (seller.sales) } }
                    div {
                        dt { "Reputation" }
                        dd {
                            @match seller.seller_reputation {
                                Some(known) => { (known.score) " %" small { "of " (count(known.basis, "closed escrow")) " paid out to the seller" } }
                                None => { "None yet" small { "no escrow of this seller has closed" } }
                            }
                        }
                    }
                }
            }
            section aria-labelledby="offers" {
                h2 #offers { "For sale" }
                @if listings.is_empty() { div.empty { p { "Nothing here." } } } @else { (parts::cards(listings)) }
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
    Page { title: &title, place: Place::Elsewhere, script: None, card: Some(card) }.around(&main)
}
