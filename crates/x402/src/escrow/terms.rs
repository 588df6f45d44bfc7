//! The seller's terms, and the digest that the seller signs.

use std::fmt;

use ::escrow::Deadlines;
use cardano::{Address, ContentHash, hash::to_hex};
use serde::{Deserialize, Deserializer, Serialize, de};

use super::TransferMethod;
use crate::{
    json,
    wire::{Amount, Asset, Network, PaymentRequirements, present},
};

const DOMAIN: &str = "masumi:x402:terms:v1\n";
const VERSION: &str = "1";
/// Name of the contract and its version, as part of the signed terms.
const PAYMENT_TYPE: &str = "Web3CardanoV2";
/// Allowed length of the buyer's nonce in bytes, unless the nonce is empty (scheme document, "Constraints for
/// `terms`").
const BUYER_NONCE_BYTES: std::ops::RangeInclusive<usize> = 7..=13;
/// Maximum length of an agent identifier in bytes: a policy id of 28 bytes and an asset name of 32.
const MAX_AGENT_IDENTIFIER_BYTES: usize = 60;
/// Maximum number of digits of a time in milliseconds. The largest time that this service accepts in a datum, 2^53 ms,
/// has 16.
const MAX_TIME_DIGITS: usize = 16;

/// The seller's terms. Further terms, such as the price, are in other fields of the 402.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "TermsJson", into = "TermsJson")]
pub struct SellerTerms {
    /// The seller's address, whose key signs the terms.
    pub seller: Address,
    /// Address at which the seller must be paid; `None` for the address in `seller`.
    pub seller_return: Option<Address>,
    /// The seller's random nonce, new for every quote.
    pub seller_nonce: [u8; 32],
    /// The buyer's nonce of 7 to 13 bytes; empty if there is none.
    pub buyer_nonce: Vec<u8>,
    /// Identifier of the seller's asset in the Masumi registry, if the seller is registered.
    pub agent_identifier: AgentIdentifier,
    /// Digest of the commitment to the purchased listing
    /// ([`InputCommitment::input_hash`](super::InputCommitment::input_hash)).
    pub input_hash: ContentHash,
    /// Deadlines of the escrow.
    pub deadlines: Deadlines,
}

/// Identifier of a registered agent, as in the JSON of the terms. For an unregistered seller, the field may be absent,
/// null or empty. The three forms are distinguished, because each gives the terms a different digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentIdentifier {
    /// The field is absent.
    Omitted,
    /// The field is `null`.
    Null,
    /// The identifier's bytes; empty for an unregistered seller.
    Bytes(Vec<u8>),
}

impl AgentIdentifier {
    /// Returns the bytes with which the datum identifies the agent; empty for an unregistered seller.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Omitted | Self::Null => &[],
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// SHA-256 of the terms that the seller signs. The digest identifies the payment (the scheme's *logical replay key*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TermsDigest(pub ContentHash);

impl fmt::Display for TermsDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The JSON that the seller signs: the terms, and other fields of the entry of `accepts`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SignedTermsJson<'a> {
    #[serde(flatten)]
    terms: TermsJson,
    scheme: &'a str,
    asset_transfer_method: TransferMethod,
    network: Network,
    contract_address: &'a str,
    amount: Amount,
    asset: &'a Asset,
    max_timeout_seconds: u32,
}

impl SellerTerms {
    /// Computes the digest that the seller signs for these terms in this entry of `accepts`, with the name of this
    /// transfer method. The entry's own `extra` is ignored. Returns `None` only if the terms have no canonical JSON,
    /// which cannot happen.
    #[must_use]
    pub fn digest(&self, entry: &PaymentRequirements, method: TransferMethod) -> Option<TermsDigest> {
        self.signed(entry, method).map(|text| TermsDigest(ContentHash::of(&text)))
    }

    /// Returns the bytes whose SHA-256 is the terms' digest.
    pub(super) fn signed(&self, entry: &PaymentRequirements, method: TransferMethod) -> Option<Vec<u8>> {
        let signed = SignedTermsJson {
            terms: self.clone().into(),
            scheme: &entry.scheme,
            asset_transfer_method: method,
            network: entry.network,
            contract_address: &entry.pay_to,
            amount: entry.amount,
            asset: &entry.asset,
            max_timeout_seconds: entry.max_timeout_seconds,
        };
        json::message(DOMAIN, &signed)
    }
}

/// Parses an address written in lowercase. Capitals are rejected, because the seller signs the text of the terms, in
/// which an address must have only one spelling.
fn lowercase<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Address, D::Error> {
    let text = String::deserialize(deserializer)?;
    let address: Address = text.parse().map_err(de::Error::custom)?;
    if address.to_string() == text { Ok(address) } else { Err(de::Error::custom("an address is lowercase here")) }
}

/// Parses an address as [`lowercase`] does, for a field that may be absent but not `null`.
fn present_lowercase<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Address>, D::Error> {
    lowercase(deserializer).map(Some)
}

/// The terms in JSON: an object of strings in which unknown fields are rejected.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct TermsJson {
    version: String,
    payment_type: String,
    #[serde(deserialize_with = "lowercase")]
    seller_address: Address,
    #[serde(default, deserialize_with = "present_lowercase", skip_serializing_if = "Option::is_none")]
    seller_return_address: Option<Address>,
    seller_nonce: String,
    buyer_nonce: String,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    agent_identifier: Option<Option<String>>,
    input_hash: ContentHash,
    pay_by_time: String,
    submit_result_time: String,
    unlock_time: String,
    external_dispute_unlock_time: String,
}

/// A field of the terms that violates the scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("terms.{0} is malformed")]
struct Malformed(&'static str);

impl TryFrom<TermsJson> for SellerTerms {
    type Error = Malformed;

    fn try_from(wire: TermsJson) -> Result<Self, Malformed> {
        if wire.version != VERSION {
            return Err(Malformed("version"));
        }
        if wire.payment_type != PAYMENT_TYPE {
            return Err(Malformed("paymentType"));
        }
        let seller_nonce = bytes(&wire.seller_nonce).and_then(|nonce| nonce.try_into().ok());
        let buyer_nonce = bytes(&wire.buyer_nonce).ok_or(Malformed("buyerNonce"))?;
        if !buyer_nonce.is_empty() && !BUYER_NONCE_BYTES.contains(&buyer_nonce.len()) {
            return Err(Malformed("buyerNonce"));
        }
        let agent_identifier = match wire.agent_identifier {
            None => AgentIdentifier::Omitted,
            Some(None) => AgentIdentifier::Null,
            Some(Some(hex)) => {
                let asset = bytes(&hex).filter(|asset| asset.len() <= MAX_AGENT_IDENTIFIER_BYTES);
                AgentIdentifier::Bytes(asset.ok_or(Malformed("agentIdentifier"))?)
            }
        };
        Ok(Self {
            seller: wire.seller_address,
            seller_return: wire.seller_return_address,
            seller_nonce: seller_nonce.ok_or(Malformed("sellerNonce"))?,
            buyer_nonce,
            agent_identifier,
            input_hash: wire.input_hash,
            deadlines: Deadlines {
                pay_by: time(&wire.pay_by_time).ok_or(Malformed("payByTime"))?,
                submit_result: time(&wire.submit_result_time).ok_or(Malformed("submitResultTime"))?,
                unlock: time(&wire.unlock_time).ok_or(Malformed("unlockTime"))?,
                external_dispute_unlock: time(&wire.external_dispute_unlock_time)
                    .ok_or(Malformed("externalDisputeUnlockTime"))?,
            },
        })
    }
}

impl From<SellerTerms> for TermsJson {
    fn from(terms: SellerTerms) -> Self {
        let deadlines = terms.deadlines;
        Self {
            version: VERSION.to_owned(),
            payment_type: PAYMENT_TYPE.to_owned(),
            seller_address: terms.seller,
            seller_return_address: terms.seller_return,
            seller_nonce: to_hex(terms.seller_nonce),
            buyer_nonce: to_hex(terms.buyer_nonce),
            agent_identifier: match terms.agent_identifier {
                AgentIdentifier::Omitted => None,
                AgentIdentifier::Null => Some(None),
                AgentIdentifier::Bytes(bytes) => Some(Some(to_hex(bytes))),
            },
            input_hash: terms.input_hash,
            pay_by_time: deadlines.pay_by.to_string(),
            submit_result_time: deadlines.submit_result.to_string(),
            unlock_time: deadlines.unlock.to_string(),
            external_dispute_unlock_time: deadlines.external_dispute_unlock.to_string(),
        }
    }
}

/// Decodes lowercase hexadecimal. Capitals are rejected, because a value with two encodings would give the signed terms
/// two digests.
pub(super) fn bytes(text: &str) -> Option<Vec<u8>> {
    if text.bytes().any(|b| b.is_ascii_uppercase()) { None } else { hex::decode(text).ok() }
}

/// Parses a time: a positive decimal number without leading zeros.
fn time(text: &str) -> Option<u64> {
    let canonical = !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    if canonical && text.len() <= MAX_TIME_DIGITS { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Extra;
    use serde_json::{Value, from_value, json, to_value};
    use sha2::{Digest, Sha256};

    const SELLER: &str = "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz";

    fn wire() -> Value {
        json!({
            "version": "1", "paymentType": "Web3CardanoV2", "sellerAddress": SELLER,
            "sellerNonce": "ab".repeat(32), "buyerNonce": "", "inputHash": "44".repeat(32),
            "payByTime": "1785756000000", "submitResultTime": "1785759600000",
            "unlockTime": "1785763200000", "externalDisputeUnlockTime": "1785766800000",
        })
    }

    fn with(field: &str, value: Value) -> Value {
        let mut wire = wire();
        wire[field] = value;
        wire
    }

    fn entry() -> PaymentRequirements {
        PaymentRequirements {
            scheme: "exact".into(),
            network: Network::Preprod,
            amount: Amount::new(5_000_000).unwrap(),
            asset: Asset::Lovelace,
            pay_to: "addr_test1w".into(),
            max_timeout_seconds: 300,
            extra: Extra::default(),
        }
    }

    fn digest_in(terms: &SellerTerms, entry: &PaymentRequirements, method: TransferMethod) -> String {
        terms.digest(entry, method).unwrap().to_string()
    }

    fn digest(wire: Value) -> String {
        digest_in(&from_value(wire).unwrap(), &entry(), TransferMethod::Escrow)
    }

    #[test]
    fn the_digest_is_the_hash_of_this_text() {
        let text = format!(
            "masumi:x402:terms:v1\n{{\"amount\":\"5000000\",\"asset\":\"lovelace\",\"assetTransferMethod\":\"escrow\",\
             \"buyerNonce\":\"\",\"contractAddress\":\"addr_test1w\",\"externalDisputeUnlockTime\":\"1785766800000\",\
             \"inputHash\":\"{}\",\"maxTimeoutSeconds\":300,\"network\":\"cardano:preprod\",\
             \"payByTime\":\"1785756000000\",\"paymentType\":\"Web3CardanoV2\",\"scheme\":\"exact\",\
             \"sellerAddress\":\"{SELLER}\",\"sellerNonce\":\"{}\",\"submitResultTime\":\"1785759600000\",\
             \"unlockTime\":\"1785763200000\",\"version\":\"1\"}}",
            "44".repeat(32),
            "ab".repeat(32)
        );
        assert_eq!(digest(wire()), hex::encode(Sha256::digest(text)));
    }

    #[test]
    fn every_signed_field_changes_the_digest() {
        let base = digest(wire());
        for changed in [
            with("sellerReturnAddress", json!(SELLER)),
            with("sellerNonce", json!("ac".repeat(32))),
            with("buyerNonce", json!("00".repeat(7))),
            with("agentIdentifier", json!(null)),
            with("agentIdentifier", json!("")),
            with("inputHash", json!("45".repeat(32))),
            with("payByTime", json!("1785756000001")),
            with("submitResultTime", json!("1785759600001")),
            with("unlockTime", json!("1785763200001")),
            with("externalDisputeUnlockTime", json!("1785766800001")),
        ] {
            assert_ne!(digest(changed.clone()), base, "{changed}");
        }
        let terms: SellerTerms = from_value(wire()).unwrap();
        assert_ne!(digest_in(&terms, &entry(), TransferMethod::Masumi), base);
        for changed in [
            PaymentRequirements { scheme: "other".into(), ..entry() },
            PaymentRequirements { network: Network::Preview, ..entry() },
            PaymentRequirements { pay_to: "addr_test1v".into(), ..entry() },
            PaymentRequirements { amount: Amount::new(5_000_001).unwrap(), ..entry() },
            PaymentRequirements { asset: Asset::Token { policy: [1; 28], name: vec![] }, ..entry() },
            PaymentRequirements { max_timeout_seconds: 301, ..entry() },
        ] {
            assert_ne!(digest_in(&terms, &changed, TransferMethod::Escrow), base, "{changed:?}");
        }
    }

    #[test]
    fn the_three_ways_to_be_unregistered_are_signed_differently() {
        let digests = [wire(), with("agentIdentifier", json!(null)), with("agentIdentifier", json!(""))].map(digest);
        assert!(digests[0] != digests[1] && digests[1] != digests[2] && digests[0] != digests[2]);
    }

    #[test]
    fn terms_are_read_and_written_the_same() {
        for terms in [
            wire(),
            with("sellerReturnAddress", json!(SELLER)),
            with("buyerNonce", json!("01".repeat(13))),
            with("agentIdentifier", json!(null)),
            with("agentIdentifier", json!("ab".repeat(60))),
        ] {
            assert_eq!(to_value(from_value::<SellerTerms>(terms.clone()).unwrap()).unwrap(), terms);
        }
    }

    #[test]
    fn every_malformed_field_is_refused() {
        let script = "addr_test1wzs4e6wc95hkwezlccjw9mdvq0r0rsgx6zk34avptga3ftgn37w4g";
        let mainnet = "addr1vx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzers66hrl8";
        for (field, value) in [
            ("version", json!("2")),
            ("version", json!(1)),
            ("paymentType", json!("Web3CardanoV1")),
            ("sellerAddress", json!(script)),
            ("sellerAddress", json!(mainnet)),
            ("sellerAddress", json!(SELLER.to_uppercase())),
            ("sellerAddress", json!(null)),
            ("sellerReturnAddress", json!(null)),
            ("sellerReturnAddress", json!(script)),
            ("sellerNonce", json!("ab".repeat(31))),
            ("sellerNonce", json!("AB".repeat(32))),
            ("buyerNonce", json!("00".repeat(6))),
            ("buyerNonce", json!("00".repeat(14))),
            ("buyerNonce", json!("0")),
            ("buyerNonce", json!(null)),
            ("agentIdentifier", json!("a")),
            ("agentIdentifier", json!("AB")),
            ("agentIdentifier", json!(7)),
            ("agentIdentifier", json!("ab".repeat(61))),
            ("inputHash", json!("44".repeat(31))),
            ("payByTime", json!(1_785_756_000_000u64)),
            ("payByTime", json!("0")),
            ("payByTime", json!("01785756000000")),
            ("submitResultTime", json!("-1")),
            ("unlockTime", json!("1e3")),
            ("externalDisputeUnlockTime", json!("9".repeat(17))),
            ("externalDisputeUnlockTime", json!("")),
            ("amount", json!("5000000")),
            ("collateralReturnLovelace", json!("0")),
        ] {
            assert!(from_value::<SellerTerms>(with(field, value.clone())).is_err(), "{field}: {value}");
        }
        for field in ["version", "sellerAddress", "sellerNonce", "buyerNonce", "inputHash", "payByTime", "unlockTime"] {
            let mut terms = wire();
            terms.as_object_mut().unwrap().remove(field);
            assert!(from_value::<SellerTerms>(terms).is_err(), "without {field}");
        }
    }
}
