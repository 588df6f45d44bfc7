//! `/creators/{address}`: a seller's listings and record of protected sales; `/purchases?seller=`: a seller's sales.

use cardano::Address;
use market::catalogue::Title;
use maud::html;

use crate::{
    account::MAX_PURCHASES_AND_LISTINGS,
    format::{count, on, short},
    layout::{Card, Page, Section},
    parts,
    view::{Listing, Purchase, Seller},
};

/// Renders a seller's newest sales. Buyers' addresses are abbreviated, because nobody needs to copy them from here.
#[must_use]
pub fn sales(seller: &Address, sales: &[Purchase], titles: &[Title]) -> String {
    let title_of = |sale: &Purchase| {
        let known = titles.iter().find(|known| known.id == sale.listing_id);
        known.map_or("A prompt that is no longer for sale", |known| known.title.as_str()).to_owned()
    };
    let main = html! {
        main #main {
            h1 { "Sales of " (parts::creator(seller)) }
            @if sales.is_empty() { div.empty { p { "No sales here." } } }
            ul.rows {
                @for sale in sales.iter().take(MAX_PURCHASES_AND_LISTINGS) {
                    li {
                        a href={ "/purchases/" (sale.id) } { (title_of(sale)) }
                        span.status.(sale.status.name()) { (sale.status.words()) }
                        @if let Some(event) = sale.events.first() { span.soft { (on(event.at)) } }
                        span.soft { "to " span.hash { (short(&sale.buyer_address.to_string())) } }
                    }
                }
            }
        }
    };
    Page { title: "Sales", section: Section::Elsewhere, script: None, card: None }.around(&main)
}

/// Renders a seller's page with one page of listings. `next` is the cursor of the next page, or `None` on the last
/// page.
#[must_use]
pub fn page(origin: &str, address: &str, seller: &Seller, listings: &[Listing], next: Option<&str>) -> String {
    let name = seller.seller_name.as_deref();
    let title = match name {
        Some(name) => format!("Prompts by {name} ({})", short(address)),
        None => format!("Prompts by {}", short(address)),
    };
    let main = html! {
        main #main {
            section.person {
                h1 {
                    "Prompts by "
                    @if let Some(name) = name { (parts::name(name)) " " small.hash { (short(address)) } } @else { (short(address)) }
                }
                p.facts.soft { (parts::standing(seller)) span { (count(seller.sales, "sale")) } }
                @if name.is_some() {
                    p.note { "The seller chose this name. Names are not unique and prove nothing: the address tells sellers apart." }
                }
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
