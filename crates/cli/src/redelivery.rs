//! `surety prove` and `surety read`: print purchased content again, authorized by a signature or by a session.

use std::{fs, path::PathBuf};

use api_types::{Listing, Purchase, PurchaseStatus};
use cardano::{Address, ContentHash, TxHash};
use clap::Args;
use market::ListingId;
use serde_json::{Value, json};
use x402_cardano::wire::{PaymentRequired, decode_header};

use crate::{
    Shop,
    catalogue::listing_id,
    failure::Failure,
    keys::Keys,
    proof,
    service::{Answer, Ask, no_listing},
};

/// Maximum number of buyer addresses in one request for purchases.
const MAX_BUYERS: usize = 100;

/// Arguments of `prove`.
#[derive(Args)]
pub struct ProveArguments {
    /// The listing's id: lst_...
    #[arg(value_parser = listing_id)]
    listing: ListingId,
    /// Write the content to this file instead of stdout.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Content of a listing that this wallet bought earlier, with the id of the purchase.
pub struct Owned {
    pub purchase: TxHash,
    pub content: Vec<u8>,
}

/// Proves that the wallet bought a listing, and prints the content.
pub fn run(shop: &Shop, ProveArguments { listing, out }: &ProveArguments) -> Result<(), Failure> {
    let keys = shop.home.keys()?;
    let address = keys.address();
    let Some(Owned { purchase, content }) = redeliver(shop, &keys, listing.as_str())? else {
        return Err(Failure::Refused(format!("{address} has not bought {listing}: `surety buy {listing}` does")));
    };
    shop.tell.progress(&format!("bought before, in {purchase}"));
    hand_over(shop, json!({ "listing": listing, "purchase": purchase }), &content, out.as_ref())
}

/// Requests the content of a listing again. The key of the buyer's address signs the request. Returns `None` if the
/// wallet does not own the listing.
///
/// # Errors
/// Returns an error if the service does not answer, or if the listing does not exist.
pub fn redeliver(shop: &Shop, keys: &Keys, listing: &str) -> Result<Option<Owned>, Failure> {
    // A single key needs no search.
    let owner = if keys.all().count() > 1 { buyer(shop, keys, listing)? } else { None };
    let key = owner.map_or(Ok(keys.first()), |owner| keys.owner(&owner))?;
    let proof = proof::of_purchase(key, listing)?;
    let ask = Ask { headers: vec![(proof::HEADER, &proof)], ..Ask::default() };
    let answer = shop.service.ask("GET", &unlock(listing), ask)?;
    match answer.status {
        200 => {
            let named = answer.header("x-service-purchase").and_then(|purchase| purchase.parse().ok());
            let unnamed = || Failure::Refused("the service does not say which purchase this is".into());
            Ok(Some(Owned { purchase: named.ok_or_else(unnamed)?, content: answer.body }))
        }
        402 if refusal(&answer).as_deref() == Some("not_owned") => Ok(None),
        404 => Err(no_listing(listing)),
        _ => Err(answer.failure()),
    }
}

/// Returns the wallet's address that bought a listing, or `None` if no address of the wallet did or the listing is off
/// sale.
fn buyer(shop: &Shop, keys: &Keys, listing: &str) -> Result<Option<Address>, Failure> {
    let answer = shop.service.ask("GET", &format!("/listings/{listing}"), Ask::default())?;
    // The listing is off sale, so its seller is not public. The caller then tries the wallet's first address.
    if answer.status == 404 {
        return Ok(None);
    }
    let sold: Listing = answer.json()?;
    let bought = purchases_of(shop, keys, &sold.seller_address)?;
    let owned = bought.iter().find(|one| one.listing_id == listing && one.status != PurchaseStatus::Refunded);
    Ok(owned.map(|one| one.buyer_address))
}

/// Returns the wallet's purchases from one seller.
///
/// # Errors
/// Returns an error if the service does not answer.
pub fn purchases_of(shop: &Shop, keys: &Keys, seller: &Address) -> Result<Vec<Purchase>, Failure> {
    let mut bought = vec![];
    for some in keys.addresses().chunks(MAX_BUYERS) {
        let buyers: String = some.iter().map(|address| format!("&buyer={address}")).collect();
        let page: Vec<Purchase> = shop.service.get(&format!("/purchases?seller={seller}{buyers}"))?;
        bought.extend(page);
    }
    Ok(bought)
}

/// Returns the path of a listing's paid content.
pub fn unlock(listing: &str) -> String {
    format!("/listings/{listing}/unlock")
}

/// Returns the error code in the `PAYMENT-REQUIRED` header of a response; `None` if the header or the code is missing.
pub fn refusal(answer: &Answer) -> Option<String> {
    decode_header::<PaymentRequired>(answer.header("payment-required")?).ok()?.error
}

/// Prints delivered content, or writes it to the file `out`. `told` contains the other fields of the JSON output.
///
/// # Errors
/// Returns an error if the file cannot be written.
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

/// Prints delivered content like [`hand_over`], and then compares its hash with the listed one.
///
/// # Errors
/// Returns an error with `advice` for the buyer if the hash differs, and an error if the file cannot be written.
pub fn hand_over_as_listed(
    shop: &Shop,
    mut told: Value,
    (content, listed): (&[u8], &ContentHash),
    out: Option<&PathBuf>,
    advice: &str,
) -> Result<(), Failure> {
    let as_listed = ContentHash::of(content) == *listed;
    if let Some(fields) = told.as_object_mut() {
        fields.extend([("contentHash".into(), json!(listed)), ("asListed".into(), json!(as_listed))]);
    }
    hand_over(shop, told, content, out)?;
    if as_listed {
        return Ok(());
    }
    Err(Failure::Refused(format!("the delivered content is not the listed one (its SHA-256 differs): {advice}")))
}

/// Prints the content of an earlier purchase.
///
/// # Errors
/// See [`hand_over_as_listed`].
pub fn hand_over_again(
    shop: &Shop,
    (listing, listed): (&str, &ContentHash),
    Owned { purchase, content }: &Owned,
    out: Option<&PathBuf>,
) -> Result<(), Failure> {
    let told = json!({ "listing": listing, "purchase": purchase, "alreadyOwned": true });
    let advice = format!("`surety status {listing}` tells what can be done");
    hand_over_as_listed(shop, told, (content, listed), out, &advice)
}
