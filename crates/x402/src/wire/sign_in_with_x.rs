//! The x402 extension `sign-in-with-x` for Cardano: an address that has paid proves itself with a signature (CIP-8, as
//! CIP-30's `signData` returns it) over a text that the wallet shows.
//!
//! ```text
//! 402: info (domain, uri, nonce, times), supportedChains: [{ chainId: "cardano:preprod", type: "cip8" }]
//!      the wallet signs the text of `Challenge::message`
//! SIGN-IN-WITH-X: base64 of { info, address, chainId, type, signature, key }
//! ```
//!
//! Challenges are not stored. Twelve of a nonce's 16 bytes are a MAC over the resource and the times, so a challenge
//! that this service did not issue, or with other times, is rejected. A signed header can be used repeatedly until its
//! challenge expires, but only for its resource.
//!
//! Source: x402's `specs/extensions/sign-in-with-x.md`, which defines EVM and Solana, and CAIP-122.

use std::sync::LazyLock;

use cardano::{
    Address, Network,
    cip8::{self, Cip8Error, DataSignature},
    keys::VerifyEd25519,
    slots::Millis,
};
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json, value::RawValue};
use sha2::Sha256;
use time::{
    OffsetDateTime, format_description::BorrowedFormatItem, format_description::well_known::Rfc3339,
    macros::format_description,
};

use super::{Extensions, decode_header, json_text};

/// Name of the extension, which is its key in the object `extensions`.
pub const NAME: &str = "sign-in-with-x";
/// Name of the header in which a request carries the signed challenge.
pub const SIGN_IN_WITH_X: &str = "SIGN-IN-WITH-X";
/// Maximum length of the header in characters. A header with the longest address and a URI of 200 characters has about
/// 3,500.
pub const MAX_HEADER: usize = 8 * 1024;
/// Lifetime of a challenge in ms: the default of the extension's specification.
pub const LIFETIME_MS: Millis = 5 * 60 * 1_000;

/// Signature type of challenges for Cardano.
const TYPE: &str = "cip8";
/// Version of CAIP-122's message.
const VERSION: &str = "1";
/// Purpose of the signature, which the wallet shows.
const STATEMENT: &str = "Get again what this address bought here. Nothing is paid.";
/// Domain separator for deriving the key for nonces from the service's secret, from which other keys are derived as
/// well.
const KEY_DOMAIN: &[u8] = b"x402:sign-in-with-x:nonce:v1";
/// Number of random bytes of a nonce. The rest of its 16 bytes is a MAC.
pub const RANDOM_BYTES: usize = 4;
const MAC_BYTES: usize = 12;
/// Time format of challenges, equal to that of JavaScript's `toISOString`.
const ISO: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");

/// The secret key with which a service authenticates its nonces.
#[derive(Clone)]
pub struct NonceKey(Hmac<Sha256>);

impl std::fmt::Debug for NonceKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NonceKey(..)")
    }
}

impl NonceKey {
    /// Derives the key from a secret of the service. A new secret invalidates all open challenges. Returns `None` if
    /// the secret is shorter than 32 bytes.
    #[must_use]
    pub fn derive(secret: &[u8]) -> Option<Self> {
        let mut key = [0; 32];
        let enough = secret.len() >= key.len();
        Hkdf::<Sha256>::new(None, secret).expand(KEY_DOMAIN, &mut key).ok()?;
        Hmac::new_from_slice(&key).ok().filter(|_| enough).map(Self)
    }

    /// Returns the MAC of a challenge's parts. The texts are separated by line feeds, which they do not contain.
    fn mac(&self, uri: &str, issued_at: &str, expiration_time: &str, random: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        for line in [uri, issued_at, expiration_time] {
            mac.update(line.as_bytes());
            mac.update(b"\n");
        }
        mac.update(random);
        mac
    }
}

/// A paid resource that its earlier buyers can get again by signing in.
#[derive(Clone, Copy, Debug)]
pub struct Resource<'a> {
    /// Scheme, host and port of the service, without a path.
    pub origin: &'a str,
    /// URI of the resource, which begins with the origin.
    pub uri: &'a str,
    /// Network of the addresses that sign in.
    pub network: Network,
    /// Key that authenticates the nonces.
    pub key: &'a NonceKey,
}

/// A challenge, as the extension's `info` contains it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Challenge {
    domain: String,
    uri: String,
    version: String,
    statement: String,
    nonce: String,
    issued_at: String,
    expiration_time: String,
}

/// The extension in a 402.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Offered {
    info: Challenge,
    supported_chains: [SupportedChain; 1],
    schema: &'static RawValue,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SupportedChain {
    chain_id: &'static str,
    r#type: &'static str,
}

/// A signed challenge, as the header contains it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Signed {
    #[serde(flatten)]
    challenge: Challenge,
    address: Address,
    chain_id: String,
    r#type: String,
    /// COSE_Sign1 in hexadecimal.
    signature: String,
    /// COSE_Key in hexadecimal.
    key: String,
}

/// Reason why a sign-in is rejected, worded for the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignInError {
    /// The header is too long, or not base64 of JSON with the documented fields.
    #[error(
        "SIGN-IN-WITH-X must be base64 of JSON with the challenge's fields, address, chainId, type, signature and key: {0}"
    )]
    Malformed(String),
    /// A field of the header differs from the same field of this resource's challenges. Contains the field's name.
    #[error("{0} in SIGN-IN-WITH-X is not that of this resource's challenge: sign the challenge of a new 402")]
    OtherChallenge(&'static str),
    /// The service did not issue a challenge with this nonce for this resource and these times.
    #[error(
        "the nonce in SIGN-IN-WITH-X is not one that this service issued for these times: sign the challenge of a new 402"
    )]
    Nonce,
    /// The challenge has expired.
    #[error("the challenge in SIGN-IN-WITH-X has expired: sign the challenge of a new 402")]
    Expired,
    /// The address did not sign the challenge.
    #[error("the signature in SIGN-IN-WITH-X is not valid: {0}")]
    Signature(#[from] Cip8Error),
}

/// Formats POSIX ms as ISO 8601; `None` if the time is out of range.
fn iso(ms: Millis) -> Option<String> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(ms).checked_mul(1_000_000)?).ok()?.format(ISO).ok()
}

impl Resource<'_> {
    /// Returns the host of the service, with its port if the origin contains one.
    fn domain(&self) -> &str {
        self.origin.split_once("://").map_or(self.origin, |(_, host)| host)
    }

    /// Returns this extension's entry in the `extensions` of a 402, with a new challenge. Returns no entry if the time
    /// is out of range.
    #[must_use]
    pub fn offered(&self, random: [u8; RANDOM_BYTES], now: Millis) -> Extensions {
        let Some(info) = self.challenge(random, now) else { return Extensions::default() };
        let supported_chains = [SupportedChain { chain_id: self.network.name(), r#type: TYPE }];
        Extensions::of(NAME, &Offered { info, supported_chains, schema: &SCHEMA })
    }

    fn challenge(&self, random: [u8; RANDOM_BYTES], now: Millis) -> Option<Challenge> {
        let (issued_at, expiration_time) = (iso(now)?, iso(now.saturating_add(LIFETIME_MS))?);
        let tag = self.key.mac(self.uri, &issued_at, &expiration_time, &random).finalize().into_bytes();
        let nonce = [&random[..], tag.get(..MAC_BYTES)?].concat();
        Some(Challenge {
            domain: self.domain().to_owned(),
            uri: self.uri.to_owned(),
            version: VERSION.to_owned(),
            statement: STATEMENT.to_owned(),
            nonce: hex::encode(nonce),
            issued_at,
            expiration_time,
        })
    }

    /// Verifies a `SIGN-IN-WITH-X` header for this resource, and returns the address that signed it.
    ///
    /// # Errors
    /// Returns the error of the first check that fails.
    pub async fn check(&self, port: &impl VerifyEd25519, header: &str, now: Millis) -> Result<Address, SignInError> {
        let malformed = |why: &dyn std::fmt::Display| SignInError::Malformed(why.to_string());
        if header.len() > MAX_HEADER {
            return Err(malformed(&format_args!("it is longer than {MAX_HEADER} characters")));
        }
        let Signed { challenge, address, chain_id, r#type, signature, key } =
            decode_header(header.trim()).map_err(|error| malformed(&error))?;
        for (name, sent, own) in [
            ("domain", &*challenge.domain, self.domain()),
            ("uri", &challenge.uri, self.uri),
            ("version", &challenge.version, VERSION),
            ("statement", &challenge.statement, STATEMENT),
            ("chainId", &chain_id, self.network.name()),
            ("type", &r#type, TYPE),
        ] {
            if sent != own {
                return Err(SignInError::OtherChallenge(name));
            }
        }
        self.check_nonce(&challenge)?;
        // The nonce was verified, so the time is one that this service formatted.
        let expires = OffsetDateTime::parse(&challenge.expiration_time, &Rfc3339).map_err(|_| SignInError::Nonce)?;
        if expires.unix_timestamp_nanos() < i128::from(now).saturating_mul(1_000_000) {
            return Err(SignInError::Expired);
        }
        let signed = DataSignature::from_hex(&key, &signature)?;
        let message = challenge.message(&address, self.network);
        cip8::verify(port, &signed.key, &signed.signature, &address, message.as_bytes()).await?;
        Ok(address)
    }

    /// Checks that this service issued the challenge.
    fn check_nonce(&self, Challenge { nonce, issued_at, expiration_time, .. }: &Challenge) -> Result<(), SignInError> {
        let mut bytes = [0; RANDOM_BYTES + MAC_BYTES];
        hex::decode_to_slice(nonce, &mut bytes).map_err(|_| SignInError::Nonce)?;
        let (random, tag) = bytes.split_at(RANDOM_BYTES);
        let mac = self.key.mac(self.uri, issued_at, expiration_time, random);
        mac.verify_truncated_left(tag).map_err(|_| SignInError::Nonce)
    }
}

impl Challenge {
    /// Returns the text that a wallet signs: CAIP-122's message. The chain id in the message is the part of the CAIP-2
    /// name after the colon, as for other chains.
    fn message(&self, address: &Address, network: Network) -> String {
        let Self { domain, uri, version, statement, nonce, issued_at, expiration_time } = self;
        let chain = network.name().split_once(':').map_or("", |(_, reference)| reference);
        format!(
            "{domain} wants you to sign in with your Cardano account:\n{address}\n\n{statement}\n\nURI: {uri}\n\
             Version: {version}\nChain ID: {chain}\nNonce: {nonce}\nIssued At: {issued_at}\n\
             Expiration Time: {expiration_time}"
        )
    }
}

/// JSON Schema of a header's JSON.
static SCHEMA: LazyLock<Box<RawValue>> = LazyLock::new(|| {
    const FIELDS: [&str; 12] = [
        "domain",
        "address",
        "statement",
        "uri",
        "version",
        "chainId",
        "type",
        "nonce",
        "issuedAt",
        "expirationTime",
        "signature",
        "key",
    ];
    let properties = FIELDS.map(|field| (field.to_owned(), json!({ "type": "string" })));
    json_text(&json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": Map::from_iter(properties),
        "required": FIELDS,
    }))
});

#[cfg(test)]
mod tests {
    use cardano::keys::{Native, SigningKey};
    use futures_lite::future::block_on;
    use serde_json::Value;

    use super::*;

    const NOW: Millis = 1_790_000_000_123;
    const ORIGIN: &str = "https://surety.example.com:8443";
    const URI: &str = "https://surety.example.com:8443/listings/lst_1/unlock";

    fn key(byte: u8) -> NonceKey {
        NonceKey::derive(&[byte; 32]).unwrap()
    }

    fn resource<'a>(origin: &'a str, uri: &'a str, key: &'a NonceKey) -> Resource<'a> {
        Resource { origin, uri, network: Network::Preprod, key }
    }

    fn buyer() -> SigningKey {
        SigningKey::from_seed(&[7; 32]).unwrap()
    }

    /// Signs a changed challenge as the buyer, and returns the header's JSON.
    fn signed(challenge: &Value, change: impl FnOnce(&mut Value)) -> Value {
        let mut info = challenge.clone();
        change(&mut info);
        let (secret, address) = (buyer(), buyer().enterprise_address());
        let challenge: Challenge = serde_json::from_value(info.clone()).unwrap();
        let message = challenge.message(&address, Network::Preprod);
        let DataSignature { key, signature } = cip8::sign(&secret, &address, message.as_bytes()).unwrap();
        let added = json!({
            "address": address, "chainId": "cardano:preprod", "type": "cip8", "signature": hex::encode(signature),
            "key": hex::encode(key), "resources": ["https://elsewhere.example.com"],
        });
        info.as_object_mut().unwrap().extend(added.as_object().unwrap().clone());
        info
    }

    fn challenge() -> Value {
        json!(resource(ORIGIN, URI, &key(1)).offered([1, 2, 3, 4], NOW))[NAME]["info"].take()
    }

    fn check(json: &Value, now: Millis) -> Result<Address, SignInError> {
        let header = super::super::encode_header(json).unwrap();
        block_on(resource(ORIGIN, URI, &key(1)).check(&Native, &header, now))
    }

    #[test]
    fn the_offered_challenge_has_the_fields_of_the_specification() {
        let offered = json!(resource(ORIGIN, URI, &key(1)).offered([1, 2, 3, 4], NOW));
        let info = &offered[NAME]["info"];
        assert_eq!((&info["domain"], &info["uri"]), (&json!("surety.example.com:8443"), &json!(URI)));
        assert_eq!(info["issuedAt"], "2026-09-21T14:13:20.123Z");
        assert_eq!(info["expirationTime"], "2026-09-21T14:18:20.123Z");
        let nonce = info["nonce"].as_str().unwrap();
        assert!(nonce.len() == 32 && nonce.starts_with("01020304"), "{nonce}");
        assert_eq!(offered[NAME]["supportedChains"], json!([{ "chainId": "cardano:preprod", "type": "cip8" }]));
        assert_eq!(offered[NAME]["schema"]["required"].as_array().unwrap().len(), 12);
        assert_eq!(json!(resource(ORIGIN, URI, &key(1)).offered([0; 4], Millis::MAX)), json!({}));
    }

    #[test]
    fn the_message_is_that_of_the_documentation() {
        let challenge: Challenge = serde_json::from_value(challenge()).unwrap();
        let message = challenge.message(&buyer().enterprise_address(), Network::Preprod);
        let expected = format!(
            "surety.example.com:8443 wants you to sign in with your Cardano account:\n{}\n\nGet again what this address \
             bought here. Nothing is paid.\n\nURI: {URI}\nVersion: 1\nChain ID: preprod\nNonce: {}\n\
             Issued At: 2026-09-21T14:13:20.123Z\nExpiration Time: 2026-09-21T14:18:20.123Z",
            buyer().enterprise_address(),
            challenge.nonce
        );
        assert_eq!(message, expected);
    }

    #[test]
    fn a_signed_challenge_is_accepted_until_it_expires() {
        let header = signed(&challenge(), |_| ());
        for now in [NOW, NOW + LIFETIME_MS] {
            assert_eq!(check(&header, now), Ok(buyer().enterprise_address()));
        }
        assert_eq!(check(&header, NOW + LIFETIME_MS + 1), Err(SignInError::Expired));
    }

    #[test]
    fn a_challenge_that_the_service_did_not_issue_is_refused_although_it_is_signed() {
        let later = json!(resource(ORIGIN, URI, &key(1)).offered([9; 4], NOW + 60_000))[NAME]["info"].take();
        let foreign = json!(resource(ORIGIN, URI, &key(2)).offered([1, 2, 3, 4], NOW))[NAME]["info"].take();
        let elsewhere = "https://surety.example.com:8443/listings/lst_2/unlock";
        let other = json!(resource(ORIGIN, elsewhere, &key(1)).offered([1, 2, 3, 4], NOW))[NAME]["info"].take();
        let cases: [(&str, Value, SignInError); 12] = [
            ("domain", json!("evil.example.com"), SignInError::OtherChallenge("domain")),
            ("uri", json!(elsewhere), SignInError::OtherChallenge("uri")),
            ("version", json!("2"), SignInError::OtherChallenge("version")),
            ("statement", json!("Win a prize"), SignInError::OtherChallenge("statement")),
            ("nonce", later["nonce"].clone(), SignInError::Nonce),
            ("nonce", foreign["nonce"].clone(), SignInError::Nonce),
            ("nonce", other["nonce"].clone(), SignInError::Nonce),
            ("nonce", json!("01020304"), SignInError::Nonce),
            ("nonce", json!("z".repeat(32)), SignInError::Nonce),
            ("issuedAt", later["issuedAt"].clone(), SignInError::Nonce),
            ("expirationTime", later["expirationTime"].clone(), SignInError::Nonce),
            ("expirationTime", json!("9999-01-01T00:00:00.000Z"), SignInError::Nonce),
        ];
        for (field, value, expected) in cases {
            let header = signed(&challenge(), |info| info[field] = value.clone());
            assert_eq!(check(&header, NOW), Err(expected), "{field} {value}");
        }
    }

    #[test]
    fn a_field_that_is_changed_after_signing_is_refused() {
        let header = signed(&challenge(), |_| ());
        let stranger = SigningKey::from_seed(&[8; 32]).unwrap().enterprise_address();
        let more = json!(resource(ORIGIN, URI, &key(1)).offered([5; 4], NOW))[NAME]["info"]["nonce"].take();
        for (field, value) in [
            ("address", json!(stranger)),
            ("chainId", json!("cardano:mainnet")),
            ("type", json!("eip191")),
            ("nonce", more),
            ("signature", json!("00")),
            ("key", json!("a0")),
            ("address", json!(7)),
            ("expirationTime", Value::Null),
        ] {
            let mut changed = header.clone();
            changed[field] = value.clone();
            assert!(check(&changed, NOW).is_err(), "{field} {value}");
            changed.as_object_mut().unwrap().remove(field);
            assert!(matches!(check(&changed, NOW), Err(SignInError::Malformed(_))), "without {field}");
        }
        let oversized = "A".repeat(MAX_HEADER + 1);
        for broken in ["", "e30", "*", "bnVsbA==", &oversized] {
            let checked = block_on(resource(ORIGIN, URI, &key(1)).check(&Native, broken, NOW));
            assert!(matches!(checked, Err(SignInError::Malformed(_))), "{broken:.20}");
        }
    }

    #[test]
    fn a_short_secret_makes_no_key() {
        assert!(NonceKey::derive(&[1; 31]).is_none());
    }
}
