//! Checks the documents that a service signs about a purchase: its statement (`GET /purchases/{id}/statement`), and the
//! receipt of a delivery (x402's extension `offer-receipt`, section 5). Both are compact JWS with EdDSA.

use api_types::PurchaseStatement;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use cardano::keys::Native;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use x402_cardano::wire::offer_receipt::DidWeb;

use super::{Evidence, Flaw, ensure, flaw, transactions_of};
use crate::redelivery::unlock;

/// A public key (Ed25519) that the verifier trusts to be the service's.
pub struct ServiceKey {
    /// Id of the key in the service's DID document; `None` for a key given on the command line, which may have any id.
    pub id: Option<String>,
    pub key: [u8; 32],
}

impl ServiceKey {
    /// Parses a key given on the command line, in the form that the DID document uses (`publicKeyJwk.x`, base64url).
    pub fn pinned(text: &str) -> Result<Self, &'static str> {
        let key = BASE64.decode(text).ok().and_then(|key| key.try_into().ok());
        let key = key.ok_or("a key is the `x` of /.well-known/did.json: 43 characters of base64url")?;
        Ok(Self { id: None, key })
    }

    /// Returns the keys in a DID document.
    pub fn published(did: &Value) -> Vec<Self> {
        let methods = did.get("verificationMethod").and_then(Value::as_array).into_iter().flatten();
        let read = |method: &Value| {
            let key = BASE64.decode(method.pointer("/publicKeyJwk/x")?.as_str()?).ok()?.try_into().ok()?;
            Some(Self { id: Some(method.get("id")?.as_str()?.to_owned()), key })
        };
        methods.filter_map(read).collect()
    }
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReceiptPayload {
    resource_url: String,
    payer: String,
    transaction: String,
}

/// Compares the file with the service's statement. Returns the statement, and whether its signature was verified
/// (`false` if `keys` is empty).
///
/// # Errors
/// Returns the part that differs, or an error if none of the keys signed the statement.
pub fn statement(file: &Evidence, jws: &str, keys: &[ServiceKey]) -> Result<(PurchaseStatement, bool), Flaw> {
    let part = "statement";
    let (said, proven): (PurchaseStatement, bool) = open(&file.service, jws, keys, part)?;
    let (listing, purchase) = (&said.listing, &said.purchase);
    ensure(said.version == 1, part, "this program reads version 1")?;
    ensure(said.service == file.service, "service", "the statement is of another")?;
    let other = "the service's statement has another";
    ensure(listing.id == file.listing.id && purchase.listing_id == listing.id, "listing.id", other)?;
    ensure(listing.content_hash == file.listing.content_hash, "listing.contentHash", other)?;
    ensure(listing.price_lovelace == file.listing.price_lovelace, "listing.priceLovelace", other)?;
    ensure(listing.seller_address == file.listing.seller_address, "listing.sellerAddress", other)?;
    ensure(purchase.id == file.purchase.id, "purchase.id", other)?;
    ensure(purchase.mode == file.purchase.mode, "purchase.mode", other)?;
    ensure(purchase.buyer_address == file.purchase.buyer_address, "purchase.buyerAddress", other)?;
    let (known, shown) = (transactions_of(&said.purchase), &file.steps);
    ensure(known.len() >= shown.len(), "statement", "it is older than the newest step")?;
    ensure(known.len() <= shown.len(), "steps", "the service's statement has a newer one")?;
    for (index, (step, (tx, at))) in shown.iter().zip(known).enumerate() {
        ensure(step.tx_hash == tx, format!("steps[{index}].txHash"), other)?;
        ensure(step.at == at, format!("steps[{index}].at"), other)?;
    }
    Ok((said, proven))
}

/// Compares the file with the receipt. Returns whether the receipt's signature was verified (`false` if `keys` is
/// empty).
///
/// # Errors
/// Returns an error if the receipt is for another purchase, or if none of the keys signed it.
pub fn receipt(file: &Evidence, jws: &str, keys: &[ServiceKey]) -> Result<bool, Flaw> {
    let part = "receipt";
    let (said, proven): (ReceiptPayload, bool) = open(&file.service, jws, keys, part)?;
    ensure(said.transaction == file.purchase.id.to_string(), part, "it is for another purchase")?;
    let resource = format!("{}{}", file.service, unlock(&file.listing.id));
    ensure(said.resource_url == resource, part, "it is for another listing")?;
    ensure(said.payer == file.purchase.buyer_address.to_string(), part, "it is for another buyer")?;
    Ok(proven)
}

/// Decodes a JWS of the service. Returns the payload, and whether the signature was verified (`false` if `keys` is
/// empty). `part` names the document in messages.
fn open<T: DeserializeOwned>(service: &str, jws: &str, keys: &[ServiceKey], part: &str) -> Result<(T, bool), Flaw> {
    let malformed = || flaw(part, "it is no compact JWS");
    let (message, signature) = jws.rsplit_once('.').ok_or_else(malformed)?;
    let (header, payload) = message.split_once('.').ok_or_else(malformed)?;
    let bytes = |text: &str| BASE64.decode(text).map_err(|_| malformed());
    let header: Header = serde_json::from_slice(&bytes(header)?).map_err(|_| malformed())?;
    let did = DidWeb::of_origin(service).ok_or_else(|| flaw("service", "it is not an origin: https://host"))?;
    let own = header.alg == "EdDSA" && header.kid.starts_with(&did.key_id(""));
    ensure(own, part, &format!("it names no key of {service}"))?;
    if !keys.is_empty() {
        let key = keys.iter().find(|key| key.id.as_ref().is_none_or(|id| *id == header.kid));
        let key = key.ok_or_else(|| flaw(part, format!("{service} publishes no key {}", header.kid)))?;
        let signature = bytes(signature)?.try_into().map_err(|_| malformed())?;
        let holds = Native::verify(&key.key, message.as_bytes(), &signature).is_ok();
        ensure(holds, part, "the service's key did not sign it")?;
    }
    let payload = serde_json::from_slice(&bytes(payload)?);
    Ok((payload.map_err(|error| flaw(part, error.to_string()))?, !keys.is_empty()))
}
