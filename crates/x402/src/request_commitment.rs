//! The extension `cardano-request-commitment`: a payment that commits to the request it pays for.
//!
//! ```text
//! request ──binding──> request digest ─┐
//!                                      ├─ manifest ─> h ─> metadata label 402 of the transaction: {p: "http:1", h}
//! salt, known to the payer and to us ──┘
//! ```
//!
//! The 402 contains the digest of the request that it answers. The payer adds a salt of 32 random bytes, signs a
//! transaction whose metadata contains `h`, and discloses the salt in the payment. Only `h` is on the chain, so the
//! salt proves who made the payment even if the transaction is public.
//!
//! Source: x402-foundation/x402, `specs/extensions/cardano_request_commitment.md` (draft). The binding is the profile
//! `http:1` of `specs/schemes/exact/scheme_exact_lnbtc.md` with its own domain. The manifest is that of the escrow's
//! [`InputCommitment`].

use std::sync::LazyLock;

use cardano::{ContentHash, hash::to_hex, tx::SignedTx};
use pallas_codec::minicbor::{Decoder, data::Type};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    Refusal,
    escrow::{Canonicalization, CommitmentPart, InputCommitment},
    json as canon,
    wire::{Declared, Extensions, PaymentPayload, json_text},
};

/// Name of the extension, which is its key in the object `extensions`.
pub const NAME: &str = "cardano-request-commitment";
/// Label under which the transaction's metadata contains the commitment.
pub const METADATA_LABEL: u64 = 402;
/// Name of the only profile, which defines how a request is turned into a digest.
const PROFILE: &str = "http:1";
const DOMAIN: &str = "x402:exact:cardano:request-commitment:http:1";

/// An HTTP request to be paid for, as both its sender and its receiver see it.
#[derive(Clone, Copy, Debug)]
pub struct HttpRequest<'a> {
    /// HTTP method, with its case unchanged.
    pub method: &'a str,
    /// Absolute URL with its query. A server must use its configured public origin rather than the `Host` header.
    pub url: &'a str,
    /// Body of the request, without transfer encoding.
    pub body: &'a [u8],
    /// Headers that the digest covers, in ascending order of their names. The value is `None` if the request lacks the
    /// header.
    pub headers: &'a [(&'a str, Option<&'a str>)],
}

/// Digest of the HTTP request that a payment pays for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestDigest(ContentHash);

/// A salt of 32 random bytes, which the payer chooses anew for every payment and keeps secret until paying.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Salt([u8; 32]);

/// The commitment `h`: the digest of a request and a salt, contained in the transaction's metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commitment([u8; 32]);

/// Reason why no digest of a request can be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotBindable {
    /// The URL is not absolute or not ASCII, or has a fragment or user information.
    #[error("the URL is not an absolute http(s) URL of ASCII without fragment and user information")]
    Url,
    /// Header names are out of order, or a value is not ASCII.
    #[error("a bound header has a name out of order, or a value beyond printable ASCII")]
    Header,
}

refusals! {
    /// Reason why a request commitment is invalid.
    pub enum InvalidCommitment {
        /// The transaction's body does not contain the hash of its auxiliary data.
        #[error("the transaction's auxiliary data is not what its body says: build the transaction again")]
        Unsigned => "request_commitment_unsigned",
        /// The metadata or the salt is malformed, or only one of the two is present.
        #[error("the request commitment is malformed: {0}")]
        Malformed(&'static str) => "request_commitment_malformed",
        /// The payment commits to another request, or was made with another salt.
        #[error("the payment commits to another request than this one: send it with the request that it was made for")]
        Mismatch => "request_commitment_mismatch",
        /// The payment contains no commitment, although one is required.
        #[error("the payment must commit to its request: extensions.cardano-request-commitment says how")]
        Missing => "request_commitment_missing",
    }
}

/// Whether a payment commits to the HTTP request that carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The payment contains no commitment to a request.
    No,
    /// The payment commits to this request, and the request's sender knows the salt.
    ToThisRequest,
}

/// The content of a transaction's metadata under [`METADATA_LABEL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MetadataCommitment {
    Absent,
    Unsigned,
    Malformed,
    Commitment(Commitment),
}

/// The JSON whose digest is that of a request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Binding<'a> {
    domain: &'a str,
    method: &'a str,
    url: &'a str,
    body_hash: ContentHash,
    headers: Vec<Value>,
}

impl RequestDigest {
    /// Computes the digest of an HTTP request.
    ///
    /// # Errors
    /// [`NotBindable`] if the profile cannot represent the request.
    pub fn of(request: &HttpRequest<'_>) -> Result<Self, NotBindable> {
        if !is_bindable(request.url) {
            return Err(NotBindable::Url);
        }
        let binding = Binding {
            domain: DOMAIN,
            method: request.method,
            url: request.url,
            body_hash: ContentHash::of(request.body),
            headers: bound_headers(request.headers)?,
        };
        canon::digest("", &binding).map(Self).ok_or(NotBindable::Url)
    }

    /// Returns the commitment to this request without a salt, as a 402 publishes it.
    #[must_use]
    pub fn published(&self) -> InputCommitment {
        InputCommitment::of(vec![part("request", self.0)])
    }

    /// Computes the commitment `h` to this request, for the payer's transaction.
    #[must_use]
    pub fn salted(&self, salt: &Salt) -> Commitment {
        self.salted_under(&salt.digest())
    }

    /// Computes the commitment `h` to this request, given only the digest of the salt ([`Salt::digest`]).
    #[must_use]
    pub fn salted_under(&self, salt: &ContentHash) -> Commitment {
        let parts = vec![part("request", self.0), part("salt", *salt)];
        Commitment(*InputCommitment::of(parts).digest.as_bytes())
    }

    /// Returns this extension's entry in the `extensions` of a 402 that answers the request. Payments may commit to the
    /// request, but need not.
    #[must_use]
    pub fn offered(&self) -> Extensions {
        static SCHEMA: LazyLock<Box<RawValue>> = LazyLock::new(|| {
            json_text(&json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "properties": { "salt": { "type": "string", "pattern": "^[0-9a-f]{64}$" } },
            }))
        });
        let info = Declaration {
            required: false,
            profile: PROFILE.to_owned(),
            binding_params: BindingParams { headers: vec![] },
            commitment: self.published(),
        };
        Extensions::of(NAME, &Declared { info, schema: &SCHEMA })
    }

    /// Returns whether the `extensions` of a 402 ask for a commitment to this request.
    ///
    /// # Errors
    /// [`OtherRequest`] if the 402 asks for a commitment to another request, or for a commitment in an unknown form.
    /// The client should then not pay.
    pub fn is_declared_in(&self, extensions: &Map<String, Value>) -> Result<bool, OtherRequest> {
        let Some(extension) = extensions.get(NAME) else { return Ok(false) };
        let info = extension.get("info").cloned().unwrap_or_default();
        let declared: Declaration = serde_json::from_value(info).map_err(|_| OtherRequest)?;
        let known = declared.profile == PROFILE && declared.binding_params.headers.is_empty();
        if known && declared.commitment == self.published() { Ok(true) } else { Err(OtherRequest) }
    }
}

/// Entry of the extension `cardano-request-commitment` in a 402.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Declaration {
    /// `true` if a payment without a commitment is rejected.
    #[serde(default)]
    required: bool,
    profile: String,
    binding_params: BindingParams,
    commitment: InputCommitment,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct BindingParams {
    headers: Vec<String>,
}

/// The 402 asks for a commitment to a request that the client did not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the service asks for a commitment to another request than this one")]
pub struct OtherRequest;

impl Salt {
    /// Creates a salt from random bytes.
    #[must_use]
    pub const fn new(random: [u8; 32]) -> Self {
        Self(random)
    }

    /// Returns the digest of the salt, from which the commitment `h` is computed.
    ///
    /// Whoever knows the digest can check that a transaction commits to a request, but cannot pay or claim in the
    /// payer's name, because that takes the salt itself.
    #[must_use]
    pub fn digest(&self) -> ContentHash {
        // A text always has canonical bytes. A digest of zeros would match no salt.
        canon::digest("", &to_hex(self.0)).unwrap_or(ContentHash::new([0; 32]))
    }

    /// Returns this extension's entry in the `extensions` of a payment, which discloses the salt.
    #[must_use]
    pub fn disclosed(&self) -> Map<String, Value> {
        Map::from_iter([(NAME.to_owned(), json!({ "info": { "salt": to_hex(self.0) } }))])
    }
}

impl Commitment {
    /// Returns the commitment in a transaction's metadata. Returns `None` if there is none, or if the transaction's
    /// body does not contain the hash of the metadata.
    #[must_use]
    pub fn in_tx(tx: &SignedTx) -> Option<Self> {
        if let MetadataCommitment::Commitment(commitment) = metadata_commitment(tx) { Some(commitment) } else { None }
    }

    /// Parses a commitment from 64 lowercase hexadecimal characters.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<ContentHash>().ok().map(|digest| Self(*digest.as_bytes()))
    }

    /// Formats the commitment as lowercase hex.
    #[must_use]
    pub fn to_text(self) -> String {
        to_hex(self.0)
    }

    /// Encodes auxiliary data (Conway, tag 259) that contain only this commitment.
    #[must_use]
    pub fn auxiliary_data(&self) -> Vec<u8> {
        // 259({0: {402: {"p": "http:1", "h": bytes(32)}}})
        const BEFORE: [u8; 23] = *b"\xd9\x01\x03\xa1\x00\xa1\x19\x01\x92\xa2\x61p\x66http:1\x61h\x58\x20";
        [&BEFORE[..], &self.0].concat()
    }

    /// Returns `true` if this commitment is all that the transaction's auxiliary data contain, and the body contains
    /// their hash.
    #[must_use]
    pub fn is_all_metadata_of(&self, tx: &SignedTx) -> bool {
        let data = tx.auxiliary_data.as_ref();
        data.is_some_and(|data| data.cbor == self.auxiliary_data() && tx.auxiliary_data_hash == Some(data.hash()))
    }
}

/// Determines whether a payment commits to the request that carries it. `request` is the digest that the service
/// computed from the request, or `None` if the profile cannot represent the request. With `required`, payments without
/// a commitment are rejected. Only the salt is read from the payment's extensions.
///
/// # Errors
/// [`InvalidCommitment`] if the commitment is wrong, cannot be checked, or is required but absent.
pub fn request_commitment(
    payload: &PaymentPayload,
    tx: &SignedTx,
    request: Option<&RequestDigest>,
    required: bool,
) -> Result<Bound, Refusal> {
    let info = payload.extensions.as_ref().and_then(|extensions| extensions.get(NAME)?.get("info"));
    Ok(judge(metadata_commitment(tx), info.and_then(|info| info.get("salt")), request, required)?)
}

/// Determines the outcome by the table in section "Server rules" of the extension's specification. `disclosed` is the
/// salt in the payment's extensions.
fn judge(
    carried: MetadataCommitment,
    disclosed: Option<&Value>,
    request: Option<&RequestDigest>,
    required: bool,
) -> Result<Bound, InvalidCommitment> {
    match (carried, disclosed) {
        (MetadataCommitment::Unsigned, _) => Err(InvalidCommitment::Unsigned),
        (MetadataCommitment::Malformed, _) => {
            Err(InvalidCommitment::Malformed("metadata label 402 must be {p: \"http:1\", h}"))
        }
        (MetadataCommitment::Absent, Some(_)) => Err(InvalidCommitment::Malformed("a salt without metadata label 402")),
        (MetadataCommitment::Absent, None) if required => Err(InvalidCommitment::Missing),
        (MetadataCommitment::Absent, None) => Ok(Bound::No),
        (MetadataCommitment::Commitment(signed), disclosed) => {
            let salt = disclosed.and_then(Value::as_str).and_then(|text| text.parse::<ContentHash>().ok());
            let salt = salt.ok_or(InvalidCommitment::Malformed("info.salt must be 64 lowercase hexadecimal digits"))?;
            let expected = request.map(|request| request.salted(&Salt(*salt.as_bytes())));
            if expected == Some(signed) { Ok(Bound::ToThisRequest) } else { Err(InvalidCommitment::Mismatch) }
        }
    }
}

/// Finds the commitment in a transaction's metadata, after checking that the body contains the hash of the auxiliary
/// data.
fn metadata_commitment(tx: &SignedTx) -> MetadataCommitment {
    let data = match (&tx.auxiliary_data, tx.auxiliary_data_hash) {
        (None, None) => return MetadataCommitment::Absent,
        (Some(data), Some(hash)) if data.hash() == hash => data,
        _ => return MetadataCommitment::Unsigned,
    };
    match data.label(METADATA_LABEL) {
        Ok(None) => MetadataCommitment::Absent,
        Ok(Some(value)) => read(value).map_or(MetadataCommitment::Malformed, MetadataCommitment::Commitment),
        Err(_) => MetadataCommitment::Malformed,
    }
}

/// Decodes the metadata `{p: "http:1", h}`, in either order of keys, and returns `h`. Returns `None` for anything else.
fn read(value: &[u8]) -> Option<Commitment> {
    let mut decoder = Decoder::new(value);
    let (mut profile, mut digest) = (None, None);
    let entries = decoder.map().ok()?;
    let mut left = entries.unwrap_or(2);
    while left > 0 {
        match decoder.str().ok()? {
            "p" => profile = Some(decoder.str().ok()?),
            "h" => digest = Some(decoder.bytes().ok()?),
            _ => return None,
        }
        left = left.checked_sub(1)?;
    }
    if entries.is_none() && decoder.datatype().ok()? != Type::Break {
        return None;
    }
    let digest = digest.filter(|_| profile == Some(PROFILE))?;
    digest.try_into().ok().map(Commitment)
}

fn part(name: &str, digest: ContentHash) -> CommitmentPart {
    let canonicalization = Canonicalization::Jcs;
    CommitmentPart { name: name.to_owned(), canonicalization, media_type: None, content: None, digest }
}

/// Returns `true` if a URL is an absolute target URI (RFC 9421, section 2.2) of the characters in RFC 3986, without
/// fragment and user information.
fn is_bindable(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let authority = rest.and_then(|rest| rest.split(['/', '?']).next()).unwrap_or_default();
    let in_uri = |byte: u8| byte.is_ascii_graphic() && !b"\"#<>\\^`{|}".contains(&byte);
    !authority.is_empty() && !authority.contains('@') && url.bytes().all(in_uri)
}

/// Computes the digest of each header's value (RFC 9421, section 2.1). The first hashed byte tells an absent value from
/// an empty one.
fn bound_headers(headers: &[(&str, Option<&str>)]) -> Result<Vec<Value>, NotBindable> {
    let in_order = headers.is_sorted_by(|(before, _), (after, _)| before < after);
    let token = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(token) && name != "payment-signature";
    let is_value = |value: &str| value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    let sound = |(name, value): &(&str, Option<&str>)| is_name(name) && value.is_none_or(is_value);
    if !in_order || !headers.iter().all(sound) {
        return Err(NotBindable::Header);
    }
    let hash = |value: &Option<&str>| match value {
        Some(value) => ContentHash::of(&[&[1], value.as_bytes()].concat()),
        None => ContentHash::of(&[0]),
    };
    Ok(headers.iter().map(|(name, value)| json!({ "name": name, "valueHash": hash(value) })).collect())
}

#[cfg(test)]
mod tests;
