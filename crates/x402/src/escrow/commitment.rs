//! The seller's commitment to a purchase request: digests of the parts of the request. The digest over all parts is the
//! escrow's `input_hash`.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use cardano::ContentHash;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    json as canon,
    wire::{list, present},
};

const DOMAIN: &str = "masumi:x402:input:v1\n";
/// Maximum number of parts of a commitment, as in the reference implementation.
const MAX_PARTS: usize = 32;
/// Maximum number of characters of a part's name and media type, as in the reference implementation.
const MAX_NAME_CHARS: usize = 128;
const MAX_MEDIA_TYPE_CHARS: usize = 256;

/// The seller's commitment to the parts of a purchase request: a list with the digest of each part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputCommitment {
    /// Version of the commitment's format; always `1`.
    pub version: String,
    /// Hash algorithm; always `sha256`.
    pub algorithm: String,
    /// Parts of the request, with unique names. The order of the parts is significant.
    #[serde(deserialize_with = "list")]
    pub parts: Vec<CommitmentPart>,
    /// Digest of the commitment's JSON, in which this field and the parts' contents are left out.
    pub digest: ContentHash,
}

/// A part of a purchase request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CommitmentPart {
    /// Name of the part, unique among the parts and not empty.
    pub name: String,
    /// Encoding that turns the content into bytes.
    pub canonicalization: Canonicalization,
    /// Media type of the part's content; `None` if unspecified.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Content of the part. `None` if it is left out, because the client itself sent it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    /// SHA-256 of the content's bytes.
    pub digest: ContentHash,
}

/// The JSON whose digest is that of a commitment.
#[derive(Serialize)]
struct Manifest<'a> {
    version: &'a str,
    algorithm: &'a str,
    /// The parts, without their contents.
    parts: Vec<CommitmentPart>,
}

/// Encoding that turns a part's content into bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Canonicalization {
    /// The content's canonical JSON (RFC 8785).
    Jcs,
    /// The bytes that the content encodes in base64url without padding. The content must be a string.
    Raw,
}

/// Reason why a commitment is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitmentError {
    /// The format's version or the hash algorithm is unknown.
    #[error("inputCommitment.{0} is not supported")]
    Unsupported(&'static str),
    /// The commitment has no parts, or more than 32.
    #[error("inputCommitment.parts has a wrong number of parts")]
    Parts,
    /// The name of the part at this index is empty, too long or repeated, or its media type is too long.
    #[error("inputCommitment.parts[{0}] has a name or media type that is not allowed")]
    Name(usize),
    /// The digest of the part at this index differs from that of its content.
    #[error("inputCommitment.parts[{0}].digest is not the digest of its content")]
    PartDigest(usize),
    /// The commitment's digest is wrong.
    #[error("inputCommitment.digest is not the digest of the manifest")]
    Digest,
}

impl InputCommitment {
    /// Creates the commitment to the purchase of a listing: one part that contains the listing's id and content hash.
    #[must_use]
    pub fn of_listing(listing_id: &str, content_hash: &ContentHash) -> Self {
        let content = json!({ "listingId": listing_id, "contentHash": content_hash });
        let part = CommitmentPart {
            name: "listing".to_owned(),
            canonicalization: Canonicalization::Jcs,
            media_type: Some("application/json".to_owned()),
            // An object of two strings always has a canonical form.
            digest: ContentHash::of(&canon::canonical(&content).unwrap_or_default()),
            content: Some(content),
        };
        Self::of(vec![part])
    }

    /// Creates the commitment to a request that consists of these parts.
    pub(crate) fn of(parts: Vec<CommitmentPart>) -> Self {
        let (version, algorithm) = ("1".to_owned(), "sha256".to_owned());
        let mut commitment = Self { version, algorithm, parts, digest: ContentHash::new([0; 32]) };
        commitment.digest = commitment.input_hash();
        commitment
    }

    /// Computes the digest of the commitment's JSON, in which the field `digest` and the parts' contents are left out.
    /// The field `inputHash` of the seller's terms must equal this digest.
    #[must_use]
    pub fn input_hash(&self) -> ContentHash {
        let parts: Vec<_> = self.parts.iter().map(|part| CommitmentPart { content: None, ..part.clone() }).collect();
        let manifest = Manifest { version: &self.version, algorithm: &self.algorithm, parts };
        // An object of strings always has a canonical form. A zero digest would match no commitment.
        canon::digest(DOMAIN, &manifest).unwrap_or(ContentHash::new([0; 32]))
    }

    /// Recomputes every digest of the commitment and compares it with the stated one. The digest of a part without
    /// content is trusted, because only the sender of the request can check it.
    ///
    /// # Errors
    /// Returns the first error that is found.
    pub fn check(&self) -> Result<(), CommitmentError> {
        self.check_shape()?;
        for (index, part) in self.parts.iter().enumerate() {
            let content = part.content.as_ref().map(|content| part.canonicalization.digest(content));
            if content.is_some_and(|digest| digest != Some(part.digest)) {
                return Err(CommitmentError::PartDigest(index));
            }
        }
        if self.input_hash() == self.digest { Ok(()) } else { Err(CommitmentError::Digest) }
    }

    /// Checks the commitment's names, lengths and versions according to the scheme's table, but not its digests.
    pub(super) fn check_shape(&self) -> Result<(), CommitmentError> {
        if self.version != "1" {
            return Err(CommitmentError::Unsupported("version"));
        }
        if self.algorithm != "sha256" {
            return Err(CommitmentError::Unsupported("algorithm"));
        }
        if self.parts.is_empty() || self.parts.len() > MAX_PARTS {
            return Err(CommitmentError::Parts);
        }
        for (index, part) in self.parts.iter().enumerate() {
            let earlier = self.parts.iter().take(index);
            let repeated = earlier.into_iter().any(|other| other.name == part.name);
            let overlong = part.name.chars().count() > MAX_NAME_CHARS
                || part.media_type.as_ref().is_some_and(|media| media.chars().count() > MAX_MEDIA_TYPE_CHARS);
            if part.name.is_empty() || repeated || overlong {
                return Err(CommitmentError::Name(index));
            }
        }
        Ok(())
    }
}

impl Canonicalization {
    /// Computes the SHA-256 of a part's content in this encoding. Returns `None` if the content cannot be encoded.
    fn digest(self, content: &Value) -> Option<ContentHash> {
        let bytes = match self {
            Self::Jcs => canon::canonical(content)?,
            Self::Raw => URL_SAFE_NO_PAD.decode(content.as_str()?).ok()?,
        };
        Some(ContentHash::of(&bytes))
    }
}

/// Computes the `input_hash` that an escrow's datum must contain if the escrow pays for this listing.
#[must_use]
pub fn listing_input_hash(listing_id: &str, content_hash: &ContentHash) -> ContentHash {
    InputCommitment::of_listing(listing_id, content_hash).digest
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    const CONTENT: ContentHash = ContentHash::new([0xcc; 32]);

    fn listing() -> InputCommitment {
        InputCommitment::of_listing("lst_01", &CONTENT)
    }

    #[test]
    fn a_listings_commitment_is_the_hash_of_this_text() {
        let content = format!(r#"{{"contentHash":"{CONTENT}","listingId":"lst_01"}}"#);
        let part = hex::encode(Sha256::digest(content));
        let manifest = format!(
            "masumi:x402:input:v1\n{{\"algorithm\":\"sha256\",\"parts\":[{{\"canonicalization\":\"jcs\",\
             \"digest\":\"{part}\",\"mediaType\":\"application/json\",\"name\":\"listing\"}}],\"version\":\"1\"}}"
        );
        let expected = hex::encode(Sha256::digest(manifest));
        assert_eq!(listing().digest.to_string(), expected);
        assert_eq!(listing_input_hash("lst_01", &CONTENT).to_string(), expected);
        assert_eq!(listing().check(), Ok(()));
    }

    #[test]
    fn another_listing_or_content_is_another_input_hash() {
        assert_ne!(listing_input_hash("lst_02", &CONTENT), listing().digest);
        assert_ne!(listing_input_hash("lst_01", &ContentHash::new([0xcd; 32])), listing().digest);
    }

    #[test]
    fn leaving_content_out_does_not_change_the_digest() {
        let mut silent = listing();
        silent.parts[0].content = None;
        assert_eq!(silent.check(), Ok(()));
        assert_eq!(silent.digest, listing().digest);
    }

    #[test]
    fn a_changed_digest_or_content_is_refused() {
        let mut changed = listing();
        changed.parts[0].content = Some(json!({ "listingId": "lst_02", "contentHash": CONTENT }));
        assert_eq!(changed.check(), Err(CommitmentError::PartDigest(0)));

        let mut changed = listing();
        changed.parts[0].content = None;
        changed.parts[0].digest = CONTENT;
        assert_eq!(changed.check(), Err(CommitmentError::Digest));

        let mut changed = listing();
        changed.parts[0].media_type = None;
        assert_eq!(changed.check(), Err(CommitmentError::Digest));
    }

    #[test]
    fn raw_content_is_unpadded_base64url() {
        // SHA-256("hi").
        let hi = "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4";
        let digest = |text: &str| Canonicalization::Raw.digest(&json!(text)).map(|digest| digest.to_string());
        assert_eq!(digest("aGk").as_deref(), Some(hi));
        for other in ["aGk=", "a+b/", "a", "Zh"] {
            assert_eq!(digest(other), None, "{other}");
        }
        assert_eq!(Canonicalization::Raw.digest(&json!(7)), None);
    }

    #[test]
    fn shapes_outside_the_scheme_are_refused() {
        type CommitmentChange = fn(&mut InputCommitment);
        let changes: [(CommitmentChange, CommitmentError); 7] = [
            (|c| c.version = "2".into(), CommitmentError::Unsupported("version")),
            (|c| c.algorithm = "sha512".into(), CommitmentError::Unsupported("algorithm")),
            (|c| c.parts.clear(), CommitmentError::Parts),
            (|c| c.parts = vec![c.parts[0].clone(); 33], CommitmentError::Parts),
            (|c| c.parts.push(c.parts[0].clone()), CommitmentError::Name(1)),
            (|c| c.parts[0].name.clear(), CommitmentError::Name(0)),
            (|c| c.parts[0].media_type = Some("x".repeat(257)), CommitmentError::Name(0)),
        ];
        for (change, error) in changes {
            let mut commitment = listing();
            change(&mut commitment);
            commitment.digest = commitment.input_hash();
            assert_eq!(commitment.check(), Err(error));
        }
    }
}
