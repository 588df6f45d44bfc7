//! `surety sell` and `surety edit`.

mod text;

use std::path::{Path, PathBuf};

use api_types::{Listing, ListingChanges, MAX_DESCRIPTION, MAX_TITLE, NewListing};
use cardano::{ContentHash, Lovelace};
use clap::Args;
use market::{
    DeliveryMode, ListingId,
    listing::reveal::{MOST_SHOWN, shown_percent},
};
use serde_json::json;

use text::{Decoded, Introduction};

use crate::{
    Shop,
    catalogue::{listing_id, mode},
    failure::Failure,
    proof, read_file,
    service::Ask,
    tell::plain,
    wallet::{ada, fits},
};

/// Arguments of `sell`.
#[derive(Args)]
pub struct SellArguments {
    /// A text file with the content for buyers.
    file: PathBuf,
    /// Price in ADA: at least 1, with protection at least 5.
    #[arg(long, value_parser = ada)]
    price: Lovelace,
    /// Title; by default that of the YAML front matter, the text's first heading, or the file's name.
    #[arg(long)]
    title: Option<String>,
    /// Public description; by default that of the YAML front matter, or the paragraph with which the text begins.
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
    /// Part of the text to show to everyone, at most 500 characters. The service checks that the text contains it.
    #[arg(long)]
    excerpt: Option<String>,
}

/// Maximum percentage of the content that title and description may reveal together if the content's first paragraph
/// serves as the description.
const MAX_DERIVED_PERCENT: usize = 25;

/// Returns the title and the description of an offer. Each comes from its argument if that is given, and otherwise from
/// the text; the title may also come from the file's name.
///
/// # Errors
/// Returns an error that names the missing argument if the text has no title or description that may be public.
fn described(arguments: &SellArguments, content: &str) -> Result<(String, String), Failure> {
    let SellArguments { file, title, description, .. } = arguments;
    let ask = |option, why: &str| Failure::Usage(format!("{} {why}: {option}", file.display()));
    let introduction = match (title, description) {
        (Some(_), Some(_)) => Introduction::default(),
        _ => Introduction::of(content).map_err(|invalid| Failure::Usage(format!("{} {invalid}", file.display())))?,
    };
    let name = || Some(file.file_stem()?.to_string_lossy().into_owned());
    let title = match title.clone() {
        Some(title) => title,
        None => introduction
            .title
            .or_else(name)
            .filter(|title| title.chars().count() <= MAX_TITLE && shown_percent(content, title) <= MOST_SHOWN)
            .ok_or_else(|| ask("say it with --title", "has no heading that can be the public title"))?,
    };
    let description = match description.clone().or(introduction.description) {
        Some(description) => description,
        None => derived(&title, introduction.paragraph, content)
            .map_err(|why| ask("say with --description what a buyer gets", why))?,
    };
    Ok((title, description))
}

/// Returns the introductory paragraph for use as the description, or the reason why the paragraph cannot be public.
fn derived(title: &str, paragraph: Option<String>, content: &str) -> Result<String, &'static str> {
    let Some(text) = paragraph else {
        return Err("has no description in YAML front matter, and does not begin with a paragraph after its title");
    };
    if text.chars().count() > MAX_DESCRIPTION {
        return Err("begins with a paragraph that is too long for a description");
    }
    if shown_percent(content, &format!("{title}\n{text}")) > MAX_DERIVED_PERCENT {
        return Err("begins with a paragraph that cannot be public without giving away what is sold");
    }
    Ok(text)
}

/// Reads the text of a file that is to be sold.
fn read_text(shop: &Shop, file: &Path) -> Result<String, Failure> {
    let decoded = text::decode(read_file(file)?);
    let Decoded { text, exact } = decoded.map_err(|error| Failure::Usage(format!("{} {error}", file.display())))?;
    if !exact {
        shop.tell
            .progress("the file is UTF-16: its text is sold as UTF-8, so its contentHash is not the file's SHA-256");
    }
    Ok(text)
}

/// Lists the text of a file for sale. The wallet signs the offer and is paid for it.
pub fn run(shop: &Shop, arguments: &SellArguments) -> Result<(), Failure> {
    fits(arguments.price, &arguments.modes)?;
    let SellArguments { file, price, category, modes, preview, excerpt, .. } = arguments;
    let keys = shop.home.keys()?;
    let content = read_text(shop, file)?;
    let (title, description) = described(arguments, &content)?;
    let hash = ContentHash::of(content.as_bytes());
    let proof = proof::of_offer(keys.first(), &hash, &price.to_string())?;
    let offer = NewListing {
        title,
        description,
        price_lovelace: *price,
        seller_address: keys.address().to_string(),
        modes: modes.clone(),
        content,
        preview_media: preview.clone(),
        category: category.clone(),
        excerpt: excerpt.clone(),
    };
    let ask = Ask { headers: vec![(proof::HEADER, &proof)], ..Ask::json(&json!(offer)) };
    let listing: Listing = shop.service.post("/listings", ask)?;
    if listing.content_hash != hash {
        return Err(Failure::Refused("the service listed other content: its contentHash differs".into()));
    }
    let id = plain(&listing.id);
    shop.tell.progress(&format!("for sale at {}/listings/{id}", shop.service.base()));
    shop.tell.result(&json!(listing), &id)
}

/// Arguments of `edit`.
#[derive(Args)]
pub struct EditArguments {
    /// Id of the listing: lst_...
    #[arg(value_parser = listing_id)]
    listing: ListingId,
    /// New title.
    #[arg(long)]
    title: Option<String>,
    /// New public description.
    #[arg(long)]
    description: Option<String>,
    /// New price in ADA. Offers at the old price stay valid until they expire, after at most five minutes.
    #[arg(long, value_parser = ada)]
    price: Option<Lovelace>,
    /// New category; an empty text removes it.
    #[arg(long)]
    category: Option<String>,
    /// New https URL of a recording (.mp4, .webm, .webp, .gif); an empty text removes it.
    #[arg(long)]
    preview: Option<String>,
    /// New excerpt, a part of the text; an empty one removes it.
    #[arg(long)]
    excerpt: Option<String>,
}

/// Edits a listing. The seller's wallet signs the changes.
pub fn edit(shop: &Shop, arguments: &EditArguments) -> Result<(), Failure> {
    let EditArguments { listing, title, description, price, category, preview, excerpt } = arguments;
    let changes = ListingChanges {
        title: title.clone(),
        description: description.clone(),
        price_lovelace: *price,
        preview_media: preview.clone(),
        category: category.clone(),
        excerpt: excerpt.clone(),
    };
    let ask = Ask::json(&json!(changes));
    let body = ask.body.as_ref().map_or("", |(_, text)| text);
    let proof = proof::of_edit(shop.home.keys()?.first(), listing.as_str(), body.as_bytes())?;
    let ask = Ask { headers: vec![(proof::HEADER, &proof)], ..ask };
    let changed: Listing = shop.service.ask("PATCH", &format!("/listings/{listing}"), ask)?.json()?;
    shop.tell.result(&json!(changed), &plain(&changed.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(content: &str, title: Option<&str>, description: Option<&str>) -> Result<(String, String), String> {
        let arguments = SellArguments {
            file: "hero.md".into(),
            price: Lovelace::ZERO,
            title: title.map(str::to_owned),
            description: description.map(str::to_owned),
            category: None,
            modes: vec![],
            preview: None,
            excerpt: None,
        };
        super::described(&arguments, content).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_part_of_what_is_sold_is_never_the_description() {
        let steps = "Open the second valve by a quarter, and wait until the needle is still. ".repeat(9);
        for (content, why) in [
            (format!("# Valve\n\n- Close the first.\n\nTurn it twice.\n\n{steps}"), "does not begin with a paragraph"),
            (format!("[![CI](a.svg)](b) ![npm](c.svg)\n\n- {steps}"), "does not begin with a paragraph"),
            (format!("# Valve\n\n{steps}"), "without giving away what is sold"),
            ("word ".repeat(MAX_DESCRIPTION), "too long for a description"),
            (format!("---\ntitle: [\n---\n\nA valve.\n\n{steps}"), "is not valid YAML, at line"),
        ] {
            let error = described(&content, None, None).unwrap_err();
            assert!(error.contains(why) && error.contains("--description"), "{error}");
            let told = described(&content, Some("Valve"), Some("A valve.")).unwrap();
            assert_eq!(told, ("Valve".to_owned(), "A valve.".to_owned()));
        }
        let introduced = format!("# Valve\n\n![CI](a.svg)\n\nHow to set it.\n\n{steps}");
        assert_eq!(described(&introduced, None, None).unwrap(), ("Valve".to_owned(), "How to set it.".to_owned()));
    }
}
