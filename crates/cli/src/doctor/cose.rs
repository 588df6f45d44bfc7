//! CIP-8 signatures in the layouts that wallets have.

use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::{hash::blake2b, keys::SigningKey};
use market::proof::digest;
use serde_json::json;

use crate::now_ms;

/// What one wallet writes and another does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Algorithm and address.
    Plain,
    /// Under COSE_Sign1's tag, 18.
    Tagged,
    /// With the public key as key id.
    PublicKeyId,
    /// With the address as key id, there and in the key.
    AddressId,
    /// With a hash of the payload, as hardware wallets sign.
    Hashed,
}

impl Layout {
    pub(super) const ALL: [Self; 5] = [Self::Plain, Self::Tagged, Self::PublicKeyId, Self::AddressId, Self::Hashed];
}

/// A byte string of at most 255 bytes.
fn bytes(of: &[u8]) -> Vec<u8> {
    let length = u8::try_from(of.len()).unwrap_or(u8::MAX);
    let head: &[u8] = if length < 24 { &[0x40 | length] } else { &[0x58, length] };
    [head, of].concat()
}

/// `X-Service-Proof` that the key bought this listing.
pub(super) fn proof(key: &SigningKey, listing: &str, layout: Layout) -> String {
    let (address, timestamp) = (key.address(), now_ms());
    let digest = digest(&["service:unlock:v1", listing, &address.to_string(), &timestamp.to_string()]);
    let raw = address.to_bytes();
    let id = match layout {
        Layout::PublicKeyId => Some(key.public_key().to_vec()),
        Layout::AddressId => Some(raw.to_vec()),
        Layout::Plain | Layout::Tagged | Layout::Hashed => None,
    };
    let labelled = id.as_ref().map(|id| [&[0x04][..], &bytes(id)].concat()).unwrap_or_default();
    // {1: -8, 4: id, "address": address}
    let size = if id.is_some() { 0xa3 } else { 0xa2 };
    let protected = [&[size, 0x01, 0x27][..], &labelled, b"\x67address", &bytes(&raw)].concat();
    let hashed = layout == Layout::Hashed;
    let payload = if hashed { blake2b::<28>(digest.as_bytes()).to_vec() } else { digest.as_bytes().to_vec() };
    let signed = [&b"\x84\x6aSignature1"[..], &bytes(&protected), &[0x40], &bytes(&payload)].concat();
    let tag: &[u8] = if layout == Layout::Tagged { &[0xd2] } else { &[] };
    let unprotected = [&b"\xa1\x66hashed"[..], &[if hashed { 0xf5 } else { 0xf4 }]].concat();
    let signature =
        [tag, &[0x84], &bytes(&protected), &unprotected, &bytes(&payload), &bytes(&key.sign(&signed))].concat();
    // {1: 1, 2: id, 3: -8, -1: 6, -2: public key}
    let named = if layout == Layout::AddressId { [&[0x02][..], &bytes(&raw)].concat() } else { Vec::new() };
    let size = if named.is_empty() { 0xa4 } else { 0xa5 };
    let cose_key =
        [&[size, 0x01, 0x01][..], &named, &[0x03, 0x27, 0x20, 0x06, 0x21], &bytes(&key.public_key())].concat();
    let proof = json!({
        "address": address, "timestamp": timestamp, "key": hex::encode(cose_key), "signature": hex::encode(signature),
    });
    STANDARD.encode(proof.to_string())
}

#[cfg(test)]
mod tests {
    use cardano::keys::Native;
    use futures_lite::future::block_on;
    use market::proof::Proof;

    use super::*;

    #[test]
    fn every_layout_is_a_valid_signature() {
        let key = SigningKey::from_seed(&[5; 32]).unwrap();
        for layout in Layout::ALL {
            let made = Proof::from_header(&proof(&key, "lst_A", layout)).unwrap();
            assert_eq!(block_on(made.check(&Native, &made.unlock_digest("lst_A"), now_ms())), Ok(()), "{layout:?}");
        }
    }
}
