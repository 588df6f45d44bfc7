//! The extension `offer-receipt`: a receipt that the service signs on delivery, with a published key.
//!
//! ```text
//! PAYMENT-RESPONSE.extensions["offer-receipt"].info.receipt = { format: "jws", signature }
//!     signature   compact JWS, EdDSA; kid: did:web:HOST#KEY; payload: Receipt in canonical JSON (RFC 8785)
//! https://HOST/.well-known/did.json     the keys, with which anyone can verify a receipt
//! ```
//!
//! Offers are not signed, because a server honours its prices until the offers expire, and the terms of an escrow
//! already carry the seller's signature. Source: x402-foundation/x402,
//! `specs/extensions/extension-offer-and-receipt.md`, sections 3.3 and 5; the method `did:web` (w3c-ccg).

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use cardano::keys::SigningKey;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Network;
use crate::json::canonical;

/// Name of the extension, which is its key in the object `extensions`.
pub const NAME: &str = "offer-receipt";
/// Version of the receipt's format, which is part of the signed payload.
const VERSION: u8 = 1;

/// The payload of a receipt, which the service signs.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt<'a> {
    /// Network of the payment.
    pub network: Network,
    /// URL of the purchased resource, as in the 402.
    pub resource_url: &'a str,
    /// Address of the payer.
    pub payer: &'a str,
    /// Time at which the receipt was issued, in POSIX seconds.
    pub issued_at: u64,
    /// Transaction id of the payment.
    pub transaction: &'a str,
}

#[derive(Serialize)]
struct Versioned<'a> {
    version: u8,
    #[serde(flatten)]
    receipt: &'a Receipt<'a>,
}

/// Signs the canonical JSON of a payload, and returns a compact JWS (RFC 7515) with EdDSA. `key_id` identifies the key
/// in the JWS.
///
/// `None` if the payload has no canonical JSON.
#[must_use]
pub fn jws(key_id: &str, key: &SigningKey, payload: &impl Serialize) -> Option<String> {
    let b64 = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let header = canonical(&json!({ "alg": "EdDSA", "kid": key_id }))?;
    let signed = format!("{}.{}", b64(&header), b64(&canonical(payload)?));
    let signature = b64(&key.sign(signed.as_bytes()));
    Some(format!("{signed}.{signature}"))
}

impl Receipt<'_> {
    /// Signs the receipt, and returns this extension's entry in the `extensions` of a payment's response. `key_id` is
    /// the id of the key in the DID document.
    ///
    /// Never returns `None` in practice, because a receipt contains only strings and a number.
    #[must_use]
    pub fn signed(&self, key_id: &str, key: &SigningKey) -> Option<Map<String, Value>> {
        let signature = jws(key_id, key, &Versioned { version: VERSION, receipt: self })?;
        let block = json!({
            "info": { "receipt": { "format": "jws", "signature": signature } },
            "schema": {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "properties": {
                    "receipt": {
                        "type": "object",
                        "properties": {
                            "format": { "type": "string", "const": "jws" },
                            "signature": { "type": "string" },
                        },
                        "required": ["format", "signature"],
                    },
                },
                "required": ["receipt"],
            },
        });
        Some(Map::from_iter([(NAME.to_owned(), block)]))
    }
}

/// The DID of a service, made from its origin: `did:web:HOST`, with a port encoded as `%3A8787`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DidWeb(String);

impl DidWeb {
    /// Creates the DID of an origin in ASCII form, `https://host[:port]` (`http` on loopback). Returns `None` for
    /// anything else.
    #[must_use]
    pub fn of_origin(origin: &str) -> Option<Self> {
        let (scheme, host) = origin.split_once("://")?;
        let named = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':'));
        let known = matches!(scheme, "https" | "http") && named && !host.is_empty();
        known.then(|| Self(format!("did:web:{}", host.replace(':', "%3A"))))
    }

    /// Returns the id of the key named `key` in the DID document.
    #[must_use]
    pub fn key_id(&self, key: &str) -> String {
        format!("{}#{key}", self.0)
    }

    /// Builds the DID document with these named Ed25519 public keys, each as an assertion method.
    #[must_use]
    pub fn document(&self, keys: &[(String, [u8; 32])]) -> Value {
        let method = |(name, key): &(String, [u8; 32])| {
            json!({
                "id": self.key_id(name),
                "type": "JsonWebKey2020",
                "controller": self.0,
                "publicKeyJwk": { "kty": "OKP", "crv": "Ed25519", "x": BASE64_URL_SAFE_NO_PAD.encode(key) },
            })
        };
        json!({
            "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/suites/jws-2020/v1"],
            "id": self.0,
            "verificationMethod": keys.iter().map(method).collect::<Vec<_>>(),
            "assertionMethod": keys.iter().map(|(name, _)| self.key_id(name)).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardano::keys::Native;

    #[test]
    fn a_receipt_is_a_jws_over_canonical_json() {
        let key = SigningKey::from_seed(&[7; 32]).unwrap();
        let receipt = Receipt {
            network: Network::Preprod,
            resource_url: "https://shop.example/listings/lst_1/unlock",
            payer: "addr_test1x",
            issued_at: 1_790_000_000,
            transaction: "ab",
        };
        let block = receipt.signed("did:web:shop.example#k", &key).unwrap().remove(NAME).unwrap();
        assert_eq!(block["info"]["receipt"]["format"], "jws");
        let jws = block["info"]["receipt"]["signature"].as_str().unwrap();
        let (message, signature) = jws.rsplit_once('.').unwrap();
        let (header, payload) = message.split_once('.').unwrap();
        let text = |part: &str| String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
        assert_eq!(text(header), r#"{"alg":"EdDSA","kid":"did:web:shop.example#k"}"#);
        assert_eq!(
            text(payload),
            r#"{"issuedAt":1790000000,"network":"cardano:preprod","payer":"addr_test1x","resourceUrl":"https://shop.example/listings/lst_1/unlock","transaction":"ab","version":1}"#
        );
        let signature: [u8; 64] = BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap().try_into().unwrap();
        assert_eq!(Native::verify(&key.public_key(), message.as_bytes(), &signature), Ok(()));
    }

    #[test]
    fn an_origin_has_one_identity() {
        let did = |origin| DidWeb::of_origin(origin).map(|did| did.0);
        assert_eq!(did("https://shop.example").as_deref(), Some("did:web:shop.example"));
        assert_eq!(did("http://localhost:8787").as_deref(), Some("did:web:localhost%3A8787"));
        for other in
            ["", "shop.example", "https://", "https://a/b", "ftp://a", "http://[::1]:1", "https://a#b", "https://a%b"]
        {
            assert_eq!(did(other), None, "{other}");
        }
    }

    #[test]
    fn the_did_document_names_each_receipt_key() {
        let did = DidWeb::of_origin("https://shop.example").unwrap();
        let document = did.document(&[("receipts-1".into(), [1; 32]), ("receipts-2".into(), [2; 32])]);
        assert_eq!(document["id"], "did:web:shop.example");
        assert_eq!(document["assertionMethod"][1], "did:web:shop.example#receipts-2");
        assert_eq!(document["verificationMethod"][1]["id"], document["assertionMethod"][1]);
        assert_eq!(document["verificationMethod"][0]["publicKeyJwk"]["x"], BASE64_URL_SAFE_NO_PAD.encode([1; 32]));
    }
}
