//! Signatures that authorize requests without a session, such as offers and proofs of a purchase (`X-Service-Proof`).

use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::{Address, ContentHash, cip8, keys::SigningKey, slots::Millis};
use market::proof::digest;
use serde_json::json;

use crate::{failure::Failure, now_ms};

/// Name of the header that carries a proof of a purchase.
pub const HEADER: &str = "x-service-proof";

/// Signs a proof that the wallet bought a listing. Returns the header's value.
///
/// # Errors
/// Never returns an error in practice for a wallet's key.
pub fn of_purchase(key: &SigningKey, listing: &str) -> Result<String, Failure> {
    signed(key, |address, timestamp| digest(&["service:unlock:v1", listing, address, timestamp]))
}

/// Signs an offer to sell this content at this price. Returns the header's value.
///
/// # Errors
/// Never returns an error in practice for a wallet's key.
pub fn of_offer(key: &SigningKey, content: &ContentHash, price: &str) -> Result<String, Failure> {
    let content = content.to_string();
    signed(key, |address, timestamp| digest(&["service:listing:v1", address, &content, price, timestamp]))
}

/// Signs a seller's request to edit a listing, and returns the value of the header `X-Service-Proof`. The signature
/// covers the request's body.
///
/// # Errors
/// Never returns an error in practice for a wallet's key.
pub fn of_edit(key: &SigningKey, listing: &str, body: &[u8]) -> Result<String, Failure> {
    let body = ContentHash::of(body).to_string();
    signed(key, |address, timestamp| digest(&["service:edit:v1", listing, &body, address, timestamp]))
}

/// Signs a digest by CIP-8. Returns the COSE_Key and the COSE_Sign1 in hexadecimal, like CIP-30's `signData`.
///
/// # Errors
/// Never returns an error in practice for a wallet's key.
pub fn sign(key: &SigningKey, address: &Address, digest: &ContentHash) -> Result<(String, String), Failure> {
    let made = cip8::sign(key, address, digest.as_bytes()).map_err(|error| Failure::Refused(error.to_string()))?;
    Ok((hex::encode(made.key), hex::encode(made.signature)))
}

fn signed(key: &SigningKey, digest: impl FnOnce(&str, &str) -> ContentHash) -> Result<String, Failure> {
    let (address, timestamp) = (key.address(), now_ms());
    let digest = digest(&address.to_string(), &timestamp.to_string());
    let (key, signature) = sign(key, &address, &digest)?;
    Ok(header(&address, timestamp, &key, &signature))
}

/// Encodes the value of the `X-Service-Proof` header: an address, the time (POSIX ms), and a COSE_Key and COSE_Sign1 in
/// hexadecimal.
pub fn header(address: &Address, timestamp: Millis, key: &str, signature: &str) -> String {
    let proof = json!({ "address": address, "timestamp": timestamp, "key": key, "signature": signature });
    STANDARD.encode(proof.to_string())
}

#[cfg(test)]
mod tests {
    use cardano::keys::Native;
    use futures_lite::future::block_on;
    use market::proof::Proof;

    use super::*;

    #[test]
    fn the_service_takes_what_is_signed_here() {
        let key = SigningKey::from_seed(&[5; 32]).unwrap();
        let bought = Proof::from_header(&of_purchase(&key, "lst_A").unwrap()).unwrap();
        assert_eq!(block_on(bought.check(&Native, &bought.unlock_digest("lst_A"), now_ms())), Ok(()));
        let content = ContentHash::of(b"text");
        let offered = Proof::from_header(&of_offer(&key, &content, "5000000").unwrap()).unwrap();
        let edited = Proof::from_header(&of_edit(&key, "lst_A", b"{}").unwrap()).unwrap();
        assert_eq!(block_on(edited.check(&Native, &edited.edit_digest("lst_A", b"{}"), now_ms())), Ok(()));
        assert_eq!(block_on(offered.check(&Native, &offered.listing_digest(&content, "5000000"), now_ms())), Ok(()));
    }
}
