//! The part of the account's page with the owner's listings, and sales with amount and transaction.

use std::collections::BTreeMap;

use api_types::MAX_SELLER_NAME;
use cardano::Lovelace;
use market::listing::{CATEGORIES, MAX_DESCRIPTION, MAX_EXCERPT, MAX_PREVIEW_URL, MAX_TITLE};
use maud::{Markup, html};

use super::{Account, MAX_PURCHASES_AND_LISTINGS};
use crate::{
    format::{count, date, tada},
    parts::{self, field},
    view::{Listing, Seller},
};

fn action_button(action: &str, words: &str, listing: &Listing) -> Markup {
    html! {
        div.acts {
            button.quiet type="button" data-action=(action) data-listing=(listing.id) aria-label={ (words) ": " (listing.title) } { (words) }
        }
    }
}

/// Renders the form that edits a listing. The form sends only the fields that were changed.
fn edit(listing: &Listing) -> Markup {
    let id = |name: &str| format!("{name}-{}", listing.id);
    let price = listing.price_lovelace.display_tada();
    let price = price.trim_end_matches(" tADA");
    let category = listing.category.as_deref().unwrap_or_default();
    let preview = listing.preview_media.as_deref().unwrap_or_default();
    let excerpt = listing.excerpt.as_deref().unwrap_or_default();
    html! {
        details.edit {
            summary aria-label={ "Edit: " (listing.title) } { "Edit" }
            form {
                (field(&id("title"), "Title", &html! {
                    input id=(id("title")) name="title" required maxlength=(MAX_TITLE) value=(listing.title) data-was=(listing.title);
                }))
                (field(&id("description"), "What it builds", &html! {
                    textarea id=(id("description")) name="description" rows="4" required maxlength=(MAX_DESCRIPTION)
                        data-was=(listing.description) { (listing.description) }
                }))
                (field(&id("price"), "Price (tADA)", &html! {
                    input id=(id("price")) name="priceLovelace" type="number" required min="1" step="0.000001" inputmode="decimal"
                        value=(price) data-was=(price);
                }))
                (field(&id("category"), "Category", &html! {
                    select id=(id("category")) name="category" data-was=(category) {
                        option value="" { "None" }
                        @for each in CATEGORIES { option selected[each == category] { (each) } }
                    }
                }))
                (field(&id("preview"), "Recording (.mp4, .webm, .webp or .gif)", &html! {
                    input id=(id("preview")) name="previewMedia" type="url" maxlength=(MAX_PREVIEW_URL) value=(preview) data-was=(preview);
                }))
                (field(&id("excerpt"), "An excerpt for everyone, copied from the text", &html! {
                    textarea id=(id("excerpt")) name="excerpt" rows="3" maxlength=(MAX_EXCERPT) data-was=(excerpt) { (excerpt) }
                }))
                p.note.small { "The text itself never changes. Who was told the old price may still pay it for a few minutes." }
                button.quiet type="button" data-action="edit" data-listing=(listing.id) { "Save changes" }
            }
        }
    }
}

fn figures(listing: &Listing) -> Markup {
    html! { (tada(listing.price_lovelace)) span.soft { (listing.sales.unwrap_or_default()) " sold" } }
}

impl Account {
    pub(super) fn selling(&self) -> Markup {
        let figures = Seller {
            seller_name: None,
            sales: self.me.sales,
            seller_reputation: self.me.seller_reputation,
            disputes: self.me.disputes,
        };
        html! {
            section aria-labelledby="selling" {
                h2 #selling { "Selling" }
                @if self.me.listings.is_empty() && self.taken_off.is_empty() && self.sales.is_empty() {
                    (parts::empty("You sell nothing yet.", "/sell", "Sell a prompt"))
                } @else {
                    p.facts.soft { (parts::standing(&figures)) span { (count(figures.sales, "sale")) } }
                    (self.offers())
                    (self.sold())
                }
                (self.name())
            }
        }
    }

    /// Renders the form that sets the owner's display name as a seller.
    fn name(&self) -> Markup {
        let name = self.me.seller_name.as_deref().unwrap_or_default();
        html! {
            details.edit {
                summary { @if name.is_empty() { "Set your name as a seller" } @else { "Your name as a seller: " (parts::name(name)) } }
                div {
                    (field("seller-name", "Name", &html! { input #seller-name value=(name) autocomplete="off"; }))
                    p.note.small {
                        "At most " (MAX_SELLER_NAME) " characters, shown with your listings, always beside your shortened address. Names are \
                         not unique and prove nothing. An empty field removes the name."
                    }
                    button.quiet type="button" data-action="name" { "Save name" }
                }
            }
        }
    }

    fn offers(&self) -> Markup {
        html! {
            ul.rows {
                @for listing in self.me.listings.iter().take(MAX_PURCHASES_AND_LISTINGS) {
                    li {
                        a href={ "/listings/" (listing.id) } { (listing.title) }
                        (figures(listing))
                        (action_button("off", "Take off sale", listing))
                        (edit(listing))
                    }
                }
                @for listing in &self.taken_off {
                    li {
                        span { (listing.title) }
                        (figures(listing))
                        span.badge { "Off sale" }
                        (action_button("relist", "Put back on sale", listing))
                        (edit(listing))
                    }
                }
            }
            p { a.button.quiet href="/sell" { "Sell another prompt" } }
        }
    }

    fn sold(&self) -> Markup {
        if self.sales.is_empty() {
            return html! {};
        }
        html! {
            h3 { "Sales and payouts" }
            p.facts.soft {
                @for (month, (number, sum)) in self.months().into_iter().rev() { span { (month) ": " (count(number, "sale")) ", " (tada(sum)) } }
            }
            table #sales.folds {
                thead { tr { th { "Sold" } th { "Prompt" } th { "Status" } th { "Payout" } th { "You get" } } }
                tbody {
                    @for sale in self.sales.iter().take(MAX_PURCHASES_AND_LISTINGS) {
                        tr {
                            td.brief data-name="Sold" { (date(sale.sold_at)) }
                            td data-name="Prompt" { a href={ "/purchases/" (sale.id) } { (sale.title) } }
                            td.brief data-name="Status" { (sale.status.words()) }
                            td data-name="Payout" {
                                @match sale.paid_at.zip(sale.paid_by) {
                                    Some((at, tx)) => { span.brief { (date(at)) } " · " (parts::transaction(&self.explorer, &tx)) }
                                    None => { "–" }
                                }
                            }
                            td.brief data-name="You get" { (tada(sale.amount)) }
                        }
                    }
                }
            }
            p { a #csv hidden download="surety-sales.csv" { "Download as CSV" } }
        }
    }

    /// Returns the number of payouts and their sum for each month (UTC), by month as `2026-11`.
    fn months(&self) -> BTreeMap<String, (u64, Lovelace)> {
        let mut months = BTreeMap::new();
        for sale in &self.sales {
            if let Some(at) = sale.paid_at {
                let month = date(at).get(..7).unwrap_or_default().to_owned();
                let (number, sum): &mut (u64, Lovelace) = months.entry(month).or_default();
                *number = number.saturating_add(1);
                *sum = [*sum, sale.amount].into_iter().sum();
            }
        }
        months
    }
}
