//! `surety prove`: what was bought before, for a signature instead of money.

use std::{fs, path::PathBuf};

use cardano::{ContentHash, TxHash, keys::SigningKey};
use clap::Args;
use market::ListingId;
use serde_json::{Value, json};

use crate::{
    Shop,
    catalogue::listing_id,
    failure::Failure,
    proof,
    service::{Answer, Ask},
    wallet::signer,
};

/// Which listing, and where what was bought goes.
#[derive(Args)]
pub struct ProveArguments {
    /// The listing's id: lst_...
    #[arg(value_parser = listing_id)]
    listing: ListingId,
    /// A file for it, instead of stdout.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// What the wallet owns of a listing.
pub struct Owned {
    pub purchase: TxHash,
    pub content: Vec<u8>,
}

/// Asks for what this key bought.
///
/// # Errors
/// No answer, or no such listing.
pub fn redeliver(shop: &Shop, key: &SigningKey, listing: &ListingId) -> Result<Option<Owned>, Failure> {
    let proof = proof::of_purchase(key, listing.as_str())?;
    let ask = Ask { headers: vec![(proof::HEADER, &proof)], ..Ask::default() };
    let answer = shop.service.ask("GET", &unlock(listing), ask)?;
    match answer.status {
        200 => Ok(Some(Owned { purchase: purchase_of(&answer)?, content: answer.body })),
        402 if refusal(&answer).as_deref() == Some("not_owned") => Ok(None),
        404 => Err(Failure::Refused(format!("no listing {listing} here: `surety browse` shows what is for sale"))),
        _ => Err(answer.failure()),
    }
}

/// A listing's paywall.
pub fn unlock(listing: &ListingId) -> String {
    format!("/listings/{listing}/unlock")
}

/// The code in a 402's header.
pub fn refusal(answer: &Answer) -> Option<String> {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let json = STANDARD.decode(answer.header("payment-required")?).ok()?;
    let required: Value = serde_json::from_slice(&json).ok()?;
    Some(required.get("error")?.as_str()?.to_owned())
}

fn purchase_of(answer: &Answer) -> Result<TxHash, Failure> {
    let named = answer.header("x-service-purchase").and_then(|purchase| purchase.parse().ok());
    named.ok_or_else(|| Failure::Refused("the service does not say which purchase this is".into()))
}

/// Prints it, or writes it to a file.
///
/// # Errors
/// It cannot be written.
pub fn hand_over(shop: &Shop, mut told: Value, content: &[u8], out: Option<&PathBuf>) -> Result<(), Failure> {
    if let Some(path) = out {
        let written = fs::write(path, content);
        written.map_err(|error| Failure::Refused(format!("cannot write {}: {error}", path.display())))?;
        shop.tell.progress(&format!("it is in {}", path.display()));
    }
    if shop.tell.json {
        if let Some(fields) = told.as_object_mut().filter(|_| out.is_none()) {
            fields.insert("content".into(), json!(String::from_utf8_lossy(content)));
        }
        return shop.tell.result(&told, "");
    }
    if out.is_none() { shop.tell.content(content) } else { Ok(()) }
}

/// What was bought before, held against what was listed.
///
/// # Errors
/// It is something else, or cannot be written.
pub fn hand_over_again(
    shop: &Shop,
    (listing, listed): (&ListingId, &ContentHash),
    Owned { purchase, content }: &Owned,
    out: Option<&PathBuf>,
) -> Result<(), Failure> {
    let as_listed = ContentHash::of(content) == *listed;
    let told = json!({
        "listing": listing, "purchase": purchase, "alreadyOwned": true, "contentHash": listed, "asListed": as_listed,
    });
    hand_over(shop, told, content, out)?;
    if as_listed { Ok(()) } else { Err(not_as_listed(&format!("`surety status {listing}` tells what can be done"))) }
}

/// Why what was delivered will not do.
pub fn not_as_listed(advice: &str) -> Failure {
    Failure::Refused(format!("what was delivered is not what was listed (its SHA-256 is another): {advice}"))
}

/// Proves, and prints.
pub fn run(shop: &Shop, ProveArguments { listing, out }: &ProveArguments) -> Result<(), Failure> {
    let (key, address) = signer(shop)?;
    let Some(Owned { purchase, content }) = redeliver(shop, &key, listing)? else {
        return Err(Failure::Refused(format!("{address} has not bought {listing}: `surety buy {listing}` does")));
    };
    shop.tell.progress(&format!("bought before, in {purchase}"));
    hand_over(shop, json!({ "listing": listing, "purchase": purchase }), &content, out.as_ref())
}
