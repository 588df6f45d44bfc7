//! `surety sell`

use std::path::PathBuf;

use api_types::{Listing, NewListing};
use cardano::{ContentHash, Lovelace};
use clap::Args;
use market::DeliveryMode;
use serde_json::json;

use crate::{Shop, failure::Failure, proof, read_file, service::Ask, tell::plain, wallet::ada};

/// Arguments of `sell`.
#[derive(Args)]
pub struct SellArguments {
    /// A text file with the content for buyers.
    file: PathBuf,
    /// Price in ADA: at least 1, with protection at least 5.
    #[arg(long, value_parser = ada)]
    price: Lovelace,
    /// Title; by default the text's first heading, or the file's name.
    #[arg(long)]
    title: Option<String>,
    /// Public description; by default the text's first line that is not a heading.
    #[arg(long)]
    description: Option<String>,
    /// A category of the catalogue, such as Hero or Portfolio.
    #[arg(long)]
    category: Option<String>,
    /// Ways to pay: instant, protected.
    #[arg(long, value_delimiter = ',', default_value = "instant,protected", value_parser = mode)]
    modes: Vec<DeliveryMode>,
    /// An https URL of a recording (.mp4, .webm, .webp, .gif).
    #[arg(long)]
    preview: Option<String>,
}

/// Parses a delivery mode.
pub fn mode(text: &str) -> Result<DeliveryMode, &'static str> {
    text.parse().map_err(|()| "instant or protected")
}

/// Lists a text, signed by the wallet, which receives the payments.
pub fn run(shop: &Shop, arguments: &SellArguments) -> Result<(), Failure> {
    let SellArguments { file, price, title, description, category, modes, preview } = arguments;
    let key = shop.home.key()?;
    let address = key.address();
    let content = String::from_utf8(read_file(file)?);
    let content = content.map_err(|error| Failure::Usage(format!("{} is no text: {error}", file.display())))?;
    let lines = || content.lines().map(str::trim).filter(|line| !line.is_empty());
    let named = file.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let heading = lines().find_map(|line| line.strip_prefix("# ")).map_or(named, str::to_owned);
    let said = lines().find(|line| !line.starts_with('#')).unwrap_or("A text").to_owned();
    let hash = ContentHash::of(content.as_bytes());
    let proof = proof::of_offer(&key, &hash, &price.to_string())?;
    let offer = NewListing {
        title: title.clone().unwrap_or(heading),
        description: description.clone().unwrap_or(said),
        price_lovelace: *price,
        seller_address: address.to_string(),
        modes: modes.clone(),
        content,
        preview_media: preview.clone(),
        category: category.clone(),
    };
    let ask = Ask { headers: vec![(proof::HEADER, &proof)], ..Ask::json(&json!(offer)) };
    let listing: Listing = shop.service.post("/listings", ask)?;
    if listing.content_hash != hash {
        return Err(Failure::Refused("the service listed something else: its contentHash is another".into()));
    }
    let id = plain(&listing.id);
    shop.tell.progress(&format!("for sale at {}/listings/{id}", shop.service.base()));
    shop.tell.result(&json!(listing), &id)
}
