//! `surety browse` and `show`.

use api_types::{ContentStats, Listing};
use clap::Args;
use market::{DeliveryMode, ListingId};
use serde_json::json;
use url::form_urlencoded::Serializer;

use crate::{
    Shop,
    failure::Failure,
    tell::{counted, plain},
};

/// Arguments of `browse`.
#[derive(Args)]
pub struct BrowseArguments {
    /// Words to find in the title or the description.
    words: Vec<String>,
    /// Only listings of this category.
    #[arg(long)]
    category: Option<String>,
    /// Only listings sold in this mode: instant or protected.
    #[arg(long, value_parser = mode)]
    mode: Option<DeliveryMode>,
    /// Order of the listings: newest, popular, price_asc, price_desc or reputation.
    #[arg(long, default_value = "newest")]
    sort: String,
    /// Maximum number of listings, at most 200.
    #[arg(long, default_value_t = 20)]
    limit: u8,
}

/// Parses a listing id.
pub fn listing_id(text: &str) -> Result<ListingId, &'static str> {
    text.parse().map_err(|_| "a listing's id begins with lst_: `surety browse` shows them")
}

/// Parses a delivery mode.
pub fn mode(text: &str) -> Result<DeliveryMode, &'static str> {
    text.parse().map_err(|()| "instant or protected")
}

/// Prints a page of the catalogue.
pub fn browse(shop: &Shop, arguments: &BrowseArguments) -> Result<(), Failure> {
    let BrowseArguments { words, category, mode, sort, limit } = arguments;
    let mut query = Serializer::new(String::new());
    query.append_pair("sort", sort).append_pair("limit", &limit.to_string());
    let words = words.join(" ");
    let words = Some(words.as_str()).filter(|words| !words.is_empty());
    let wanted = [("q", words), ("category", category.as_deref()), ("mode", mode.map(DeliveryMode::as_str))];
    query.extend_pairs(wanted.into_iter().filter_map(|(name, value)| Some((name, value?))));
    let listings: Vec<Listing> = shop.service.get(&format!("/listings?{}", query.finish()))?;
    let table: Vec<String> = listings.iter().map(line).collect();
    let nothing = "nothing is for sale like this; `surety sell FILE --price 6` sells";
    let table = if table.is_empty() { nothing.to_owned() } else { table.join("\n") };
    shop.tell.result(&json!(listings), &table)
}

/// Prints one listing.
pub fn show(shop: &Shop, id: &ListingId) -> Result<(), Failure> {
    let listing = shop.service.listing(id)?;
    let excerpt = listing.excerpt.as_deref().zip(listing.content_stats).map(|(excerpt, stats)| {
        let ContentStats { words, characters } = stats;
        format!(
            "\n\nfrom the text, checked by Surety ({}, {} in all):\n{}",
            counted(words, "word"),
            counted(characters, "character"),
            plain(excerpt)
        )
    });
    let words = format!(
        "{}\n{}{}\n\nseller   {}{}\ncontent  SHA-256 {}\nbuy it   `surety buy {id}`",
        line(&listing),
        plain(&listing.description),
        excerpt.unwrap_or_default(),
        listing.seller_name.as_deref().map(|name| format!("{}, ", plain(name))).unwrap_or_default(),
        listing.seller_address,
        listing.content_hash,
    );
    shop.tell.result(&json!(listing), &words)
}

/// Formats a listing as one line.
fn line(listing: &Listing) -> String {
    let modes: Vec<&str> = listing.modes.iter().map(|mode| mode.as_str()).collect();
    format!(
        "{}  {:>12}  {:<18}  {} sold  {}",
        plain(&listing.id),
        listing.price_lovelace.display_tada(),
        modes.join(","),
        listing.sales.unwrap_or_default(),
        plain(&listing.title)
    )
}
