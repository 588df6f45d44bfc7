//! The extension `cardano-request-commitment`: a payment that names the request it is for.
//!
//! ```text
//! request ──binding──> request digest ─┐
//!                                      ├─ manifest ─> h ─> metadata label 402 of the transaction: {p: "http:1", h}
//! salt, known to the payer and to us ──┘
//! ```
//!
//! The 402 names the digest of the request that it answers. The payer adds a salt of 32 random bytes, signs a transaction
//! whose metadata has `h`, and discloses the salt in the payment. The chain shows `h` and never the salt. So the salt
//! proves who made the payment, whether the transaction is public or not.
//!
//! Source: x402-foundation/x402, `specs/extensions/cardano_request_commitment.md` (draft); the binding is the profile
//! `http:1` of `specs/schemes/exact/scheme_exact_lnbtc.md` under a domain of its own. The manifest is the one of the
//! escrow's [`InputCommitment`].

use cardano::{ContentHash, hash::to_hex, tx::SignedTx};
use pallas_codec::minicbor::{Decoder, data::Type};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    Refusal,
    escrow::{Canonicalization, CommitmentPart, InputCommitment},
    json as canon,
    wire::PaymentPayload,
};

/// The extension's name in `extensions`.
pub const NAME: &str = "cardano-request-commitment";
/// The label of the transaction's metadata.
pub const METADATA_LABEL: u64 = 402;
/// How requests are bound: the one profile of this version.
const PROFILE: &str = "http:1";
const DOMAIN: &str = "x402:exact:cardano:request-commitment:http:1";

/// An HTTP request, as its sender and its receiver both see it.
#[derive(Clone, Copy, Debug)]
pub struct HttpRequest<'a> {
    /// The method, in its case.
    pub method: &'a str,
    /// The absolute URL with its query, of a public origin that is known beforehand: never what a `Host` header says.
    pub url: &'a str,
    /// The content's bytes, before any decoding but the transfer's.
    pub body: &'a [u8],
    /// The bound headers, in ascending order of their names; `None` for one that is absent.
    pub headers: &'a [(&'a str, Option<&'a str>)],
}

/// The digest of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestDigest(ContentHash);

/// 32 random bytes of the payer's, fresh for every payment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Salt([u8; 32]);

/// `h`: the digest of a request and a salt, which stands in the transaction's metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commitment([u8; 32]);

/// A request that the profile cannot describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotBindable {
    /// Not an absolute URL of ASCII, or one with a fragment or user information.
    #[error("the URL is not an absolute http(s) URL of ASCII without fragment and user information")]
    Url,
    /// Header names out of order, or a value beyond ASCII.
    #[error("a bound header has a name out of order, or a value beyond printable ASCII")]
    Header,
}

refusals! {
    /// A commitment that does not hold.
    pub enum InvalidCommitment {
        /// The body does not commit to the auxiliary data.
        #[error("the transaction's auxiliary data is not what its body says: build the transaction again")]
        Unsigned => "request_commitment_unsigned",
        /// Metadata or salt of another shape, or one of them without the other.
        #[error("the request commitment is malformed: {0}")]
        Malformed(&'static str) => "request_commitment_malformed",
        /// For another request or with another salt.
        #[error("the payment commits to another request than this one: send it with the request that it was made for")]
        Mismatch => "request_commitment_mismatch",
        /// None, where one is required.
        #[error("the payment must commit to its request: extensions.cardano-request-commitment says how")]
        Missing => "request_commitment_missing",
    }
}

/// What a payment says of the request that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The payment commits to no request.
    No,
    /// It was made for this request by its sender.
    ToThisRequest,
}

/// What a transaction's metadata has under [`METADATA_LABEL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carried {
    Absent,
    Unsigned,
    Malformed,
    Commitment(Commitment),
}

impl RequestDigest {
    /// The digest of a request.
    ///
    /// # Errors
    /// The profile cannot describe it.
    pub fn of(request: &HttpRequest<'_>) -> Result<Self, NotBindable> {
        if !is_bindable(request.url) {
            return Err(NotBindable::Url);
        }
        let binding = json!({
            "domain": DOMAIN,
            "method": request.method,
            "url": request.url,
            "bodyHash": ContentHash::of(request.body),
            "headers": bound_headers(request.headers)?,
        });
        canon::digest("", &binding).map(Self).ok_or(NotBindable::Url)
    }

    /// What a 402 publishes: the commitment to the request alone.
    #[must_use]
    pub fn published(&self) -> InputCommitment {
        InputCommitment::of(vec![part("request", self.0)])
    }

    /// `h`: what the payer signs.
    #[must_use]
    pub fn salted(&self, salt: &Salt) -> Commitment {
        // A text always has canonical bytes. A digest of zeros would match no salt.
        let salt = canon::digest("", &to_hex(salt.0)).unwrap_or(ContentHash::new([0; 32]));
        let parts = vec![part("request", self.0), part("salt", salt)];
        Commitment(*InputCommitment::of(parts).digest.as_bytes())
    }

    /// `extensions` of a 402 that answers this request. A payment may do without.
    #[must_use]
    pub fn offered(&self) -> Map<String, Value> {
        let info = Declaration {
            required: false,
            profile: PROFILE.to_owned(),
            binding_params: BindingParams { headers: vec![] },
            commitment: self.published(),
        };
        let extension = json!({
            "info": info,
            "schema": {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "properties": { "salt": { "type": "string", "pattern": "^[0-9a-f]{64}$" } },
            },
        });
        Map::from_iter([(NAME.to_owned(), extension)])
    }

    /// Whether these extensions of a 402 ask for a commitment to this request; false where they ask for none.
    ///
    /// # Errors
    /// They ask for a commitment to another request, or in another way: nothing should be paid.
    pub fn is_declared_in(&self, extensions: &Map<String, Value>) -> Result<bool, OtherRequest> {
        let Some(extension) = extensions.get(NAME) else { return Ok(false) };
        let info = extension.get("info").cloned().unwrap_or_default();
        let declared: Declaration = serde_json::from_value(info).map_err(|_| OtherRequest)?;
        let known = declared.profile == PROFILE && declared.binding_params.headers.is_empty();
        if known && declared.commitment == self.published() { Ok(true) } else { Err(OtherRequest) }
    }
}

/// What a 402 declares of the extension.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Declaration {
    /// Whether a payment without a commitment is refused.
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

/// A 402 sells another request than the client made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the service asks for a commitment to another request than this one")]
pub struct OtherRequest;

impl Salt {
    /// A salt of random bytes.
    #[must_use]
    pub const fn new(random: [u8; 32]) -> Self {
        Self(random)
    }

    /// `extensions` of a payment that discloses it.
    #[must_use]
    pub fn disclosed(&self) -> Map<String, Value> {
        Map::from_iter([(NAME.to_owned(), json!({ "info": { "salt": to_hex(self.0) } }))])
    }
}

impl Commitment {
    /// These 32 bytes, as 64 lowercase hexadecimal characters say them.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<ContentHash>().ok().map(|digest| Self(*digest.as_bytes()))
    }

    /// Lowercase hexadecimal.
    #[must_use]
    pub fn to_text(self) -> String {
        to_hex(self.0)
    }

    /// The CBOR of a transaction's auxiliary data (Conway, tag 259) that has it and nothing else.
    #[must_use]
    pub fn auxiliary_data(&self) -> Vec<u8> {
        // 259({0: {402: {"p": "http:1", "h": bytes(32)}}})
        const BEFORE: [u8; 23] = *b"\xd9\x01\x03\xa1\x00\xa1\x19\x01\x92\xa2\x61p\x66http:1\x61h\x58\x20";
        [&BEFORE[..], &self.0].concat()
    }

    /// Whether a transaction carries exactly this commitment, signed, and no other auxiliary data.
    #[must_use]
    pub fn is_all_metadata_of(&self, tx: &SignedTx) -> bool {
        let data = tx.auxiliary_data.as_ref();
        data.is_some_and(|data| data.cbor == self.auxiliary_data() && tx.auxiliary_data_hash == Some(data.hash()))
    }
}

/// What a payment says of the request that brings it. `request` is what the service made of the request itself; `None`
/// where it cannot be described. `required` is whether a payment must say it.
///
/// Nothing but the salt is taken from the payment's extensions.
///
/// # Errors
/// It says so wrongly, or not where it must. What cannot be checked is refused.
pub fn request_commitment(
    payload: &PaymentPayload,
    tx: &SignedTx,
    request: Option<&RequestDigest>,
    required: bool,
) -> Result<Bound, Refusal> {
    let info = payload.extensions.as_ref().and_then(|extensions| extensions.get(NAME)?.get("info"));
    Ok(judge(carried(tx), info.and_then(|info| info.get("salt")), request, required)?)
}

/// The document's table of outcomes, "Server rules".
fn judge(
    carried: Carried,
    disclosed: Option<&Value>,
    request: Option<&RequestDigest>,
    required: bool,
) -> Result<Bound, InvalidCommitment> {
    match (carried, disclosed) {
        (Carried::Unsigned, _) => Err(InvalidCommitment::Unsigned),
        (Carried::Malformed, _) => Err(InvalidCommitment::Malformed("metadata label 402 must be {p: \"http:1\", h}")),
        (Carried::Absent, Some(_)) => Err(InvalidCommitment::Malformed("a salt without metadata label 402")),
        (Carried::Absent, None) if required => Err(InvalidCommitment::Missing),
        (Carried::Absent, None) => Ok(Bound::No),
        (Carried::Commitment(signed), disclosed) => {
            let salt = disclosed.and_then(Value::as_str).and_then(|text| text.parse::<ContentHash>().ok());
            let salt = salt.ok_or(InvalidCommitment::Malformed("info.salt must be 64 lowercase hexadecimal digits"))?;
            let expected = request.map(|request| request.salted(&Salt(*salt.as_bytes())));
            if expected == Some(signed) { Ok(Bound::ToThisRequest) } else { Err(InvalidCommitment::Mismatch) }
        }
    }
}

/// Reads a transaction's commitment: that its body commits to the auxiliary data comes before everything in them.
fn carried(tx: &SignedTx) -> Carried {
    let data = match (&tx.auxiliary_data, tx.auxiliary_data_hash) {
        (None, None) => return Carried::Absent,
        (Some(data), Some(hash)) if data.hash() == hash => data,
        _ => return Carried::Unsigned,
    };
    match data.label(METADATA_LABEL) {
        Ok(None) => Carried::Absent,
        Ok(Some(value)) => read(value).map_or(Carried::Malformed, Carried::Commitment),
        Err(_) => Carried::Malformed,
    }
}

/// Reads `{p: "http:1", h}`, in either order; `None` for anything else.
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

/// RFC 9421, 2.2: the target's URI; RFC 3986's characters, without fragment and user information.
fn is_bindable(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let authority = rest.and_then(|rest| rest.split(['/', '?']).next()).unwrap_or_default();
    let in_uri = |byte: u8| byte.is_ascii_graphic() && !b"\"#<>\\^`{|}".contains(&byte);
    !authority.is_empty() && !authority.contains('@') && url.bytes().all(in_uri)
}

/// RFC 9421, 2.1: present and absent values are told apart by the first byte.
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
