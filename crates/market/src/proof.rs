//! `X-Service-Proof`: a wallet's signature that authorizes a request without a session.
//!
//! The header is base64 of `{address, timestamp, key, signature}`. The wallet signs (CIP-8) the SHA-256 of several
//! lines, joined by line feeds. The first line names the purpose, so that a signature is valid for that purpose only.

use base64::{
    Engine,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use cardano::{
    Address, ContentHash,
    cip8::{self, Cip8Error, DataSignature},
    keys::VerifyEd25519,
};
use serde::Deserialize;
use x402_cardano::wire::sign_in_with_x::SignInError;

/// Maximum length of the `X-Service-Proof` header in characters. Proofs of common wallets take less than a kilobyte.
pub const MAX_HEADER: usize = 4_096;
/// Maximum age of a proof in ms.
pub const MAX_AGE_MS: u64 = 5 * 60 * 1_000;
/// Maximum time in ms by which the signer's clock may be ahead.
pub const MAX_AHEAD_MS: u64 = 60 * 1_000;

/// Base64 configuration that accepts texts with and without padding, because browsers and libraries differ.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const BASE64: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);

/// An unverified proof.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Proof {
    /// Address of the signer.
    pub address: Address,
    /// Time of signing, POSIX ms.
    pub timestamp: u64,
    key: String,
    signature: String,
}

/// Reason why a proof is invalid, worded for the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    #[error("X-Service-Proof must be base64 of JSON with address, timestamp, key and signature")]
    Malformed,
    #[error("the proof in X-Service-Proof is older than 5 minutes: sign a new one")]
    TooOld,
    #[error("the proof in X-Service-Proof is dated in the future: check the clock and sign a new one")]
    Ahead,
    #[error("the proof in X-Service-Proof was used before: sign a new one")]
    Used,
    #[error("X-Service-Proof is signed by another address than {0}")]
    OtherAddress(Address),
    #[error("the signature in X-Service-Proof is not valid: {0}")]
    Signature(#[from] Cip8Error),
    /// The sign-in that was sent instead of a proof (`SIGN-IN-WITH-X`) is invalid.
    #[error(transparent)]
    SignIn(#[from] SignInError),
}

impl Proof {
    /// Parses the `X-Service-Proof` header.
    ///
    /// # Errors
    /// Returns [`ProofError::Malformed`] if the header cannot be parsed.
    pub fn from_header(header: &str) -> Result<Self, ProofError> {
        if header.len() > MAX_HEADER {
            return Err(ProofError::Malformed);
        }
        let json = BASE64.decode(header.trim()).or_else(|_| BASE64_URL.decode(header.trim()));
        let json = json.map_err(|_| ProofError::Malformed)?;
        serde_json::from_slice(&json).map_err(|_| ProofError::Malformed)
    }

    /// Parses a header and checks that its proof is recent, before the rest of the request is read.
    ///
    /// # Errors
    /// Returns an error if the proof is malformed, too old, or from the future.
    pub fn recent(header: &str, now_ms: u64) -> Result<Self, ProofError> {
        let proof = Self::from_header(header)?;
        proof.check_age(now_ms)?;
        Ok(proof)
    }

    fn check_age(&self, now_ms: u64) -> Result<(), ProofError> {
        if self.timestamp > now_ms.saturating_add(MAX_AHEAD_MS) {
            return Err(ProofError::Ahead);
        }
        if now_ms.saturating_sub(self.timestamp) > MAX_AGE_MS {
            return Err(ProofError::TooOld);
        }
        Ok(())
    }

    /// Checks that the proof is recent and that its address signed this digest.
    ///
    /// # Errors
    /// Returns an error for the first check that fails.
    pub async fn check(&self, port: &impl VerifyEd25519, digest: &ContentHash, now_ms: u64) -> Result<(), ProofError> {
        self.check_age(now_ms)?;
        let DataSignature { key, signature } = DataSignature::from_hex(&self.key, &self.signature)?;
        Ok(cip8::verify(port, &key, &signature, &self.address, digest.as_bytes()).await?)
    }

    /// Returns the digest that a seller signs to list content. `price` is spelled as in the offer, with any leading
    /// zeros.
    #[must_use]
    pub fn listing_digest(&self, content: &ContentHash, price: &str) -> ContentHash {
        let timestamp = self.timestamp;
        digest(&["service:listing:v1", &text(&self.address), &text(content), price, &text(&timestamp)])
    }

    /// Returns the digest that a buyer signs to get purchased content again.
    #[must_use]
    pub fn unlock_digest(&self, listing: &str) -> ContentHash {
        digest(&["service:unlock:v1", listing, &text(&self.address), &text(&self.timestamp)])
    }

    /// Returns the digest that a seller signs to take a listing off sale.
    #[must_use]
    pub fn take_off_digest(&self, listing: &str) -> ContentHash {
        digest(&["service:take-off:v1", listing, &text(&self.address), &text(&self.timestamp)])
    }

    /// Returns the digest that a seller signs to edit a listing. It covers the bytes of the request's body.
    #[must_use]
    pub fn edit_digest(&self, listing: &str, body: &[u8]) -> ContentHash {
        let body = ContentHash::of(body);
        digest(&["service:edit:v1", listing, &text(&body), &text(&self.address), &text(&self.timestamp)])
    }

    /// Returns the digest that a seller signs to put a listing back on sale.
    #[must_use]
    pub fn relist_digest(&self, listing: &str) -> ContentHash {
        digest(&["service:relist:v1", listing, &text(&self.address), &text(&self.timestamp)])
    }
}

fn text(value: &impl ToString) -> String {
    value.to_string()
}

/// Returns the SHA-256 of these lines, joined by line feeds.
#[must_use]
pub fn digest(lines: &[&str]) -> ContentHash {
    ContentHash::of(lines.join("\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardano::keys::{Native, SigningKey};
    use futures_lite::future::block_on;
    use serde_json::json;

    const NOW: u64 = 1_750_000_000_000;

    fn header(address: &Address, timestamp: u64, key: &str, signature: &str) -> String {
        let json = json!({"address": address, "timestamp": timestamp, "key": key, "signature": signature});
        BASE64.encode(json.to_string())
    }

    fn signed(seed: u8, listing: &str, timestamp: u64) -> Proof {
        let key = SigningKey::from_seed(&[seed; 32]).unwrap();
        let address = key.enterprise_address();
        let draft = Proof::from_header(&header(&address, timestamp, "", "")).unwrap();
        let made = cip8::sign(&key, &address, draft.unlock_digest(listing).as_bytes()).unwrap();
        Proof::from_header(&header(&address, timestamp, &hex::encode(made.key), &hex::encode(made.signature))).unwrap()
    }

    #[test]
    fn either_alphabet_is_read() {
        let signed = signed(1, "lst_A", NOW);
        let json = json!({"address": signed.address, "timestamp": NOW, "key": "", "signature": "???\u{ff}>>>"});
        let standard = BASE64.encode(json.to_string());
        assert!(standard.contains(['+', '/']), "{standard}");
        assert_eq!(Proof::from_header(&BASE64_URL.encode(json.to_string())), Proof::from_header(&standard));
        assert!(Proof::from_header(&standard).is_ok());
    }

    fn check(proof: &Proof, listing: &str, now_ms: u64) -> Result<(), ProofError> {
        block_on(proof.check(&Native, &proof.unlock_digest(listing), now_ms))
    }

    #[test]
    fn a_recent_proof_for_the_same_listing_checks_out() {
        let proof = signed(1, "lst_A", NOW);
        assert_eq!(check(&proof, "lst_A", NOW), Ok(()));
        assert_eq!(check(&proof, "lst_A", NOW + MAX_AGE_MS), Ok(()));
        assert_eq!(check(&proof, "lst_A", NOW - MAX_AHEAD_MS), Ok(()));
    }

    #[test]
    fn a_proof_too_old_or_too_new_is_refused() {
        let proof = signed(1, "lst_A", NOW);
        assert_eq!(check(&proof, "lst_A", NOW + MAX_AGE_MS + 1), Err(ProofError::TooOld));
        assert_eq!(check(&proof, "lst_A", NOW - MAX_AHEAD_MS - 1), Err(ProofError::Ahead));
    }

    #[test]
    fn a_proof_serves_only_what_it_was_signed_for() {
        let proof = signed(1, "lst_A", NOW);
        assert!(matches!(check(&proof, "lst_B", NOW), Err(ProofError::Signature(_))));
        let mut other = proof.clone();
        other.timestamp += 1;
        assert!(matches!(check(&other, "lst_A", NOW), Err(ProofError::Signature(_))));
        let mut other = proof;
        other.address = signed(2, "lst_A", NOW).address;
        assert!(matches!(check(&other, "lst_A", NOW), Err(ProofError::Signature(_))));
    }

    #[test]
    fn malformed_proofs_are_refused() {
        for bad in ["", "%%%", "e30=", "W10=", &"A".repeat(MAX_HEADER + 1), &BASE64.encode("{\"timestamp\":-1}")] {
            assert_eq!(Proof::from_header(bad), Err(ProofError::Malformed));
        }
    }

    #[test]
    fn the_signed_texts_are_those_of_the_api() {
        let address: Address = "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz".parse().unwrap();
        let proof = Proof::from_header(&header(&address, 7, "", "")).unwrap();
        let content = ContentHash::of(b"x");
        let expected = format!("service:listing:v1\n{address}\n{content}\n5000000\n7");
        assert_eq!(proof.listing_digest(&content, "5000000"), ContentHash::of(expected.as_bytes()));
        let expected = format!("service:unlock:v1\nlst_A\n{address}\n7");
        assert_eq!(proof.unlock_digest("lst_A"), ContentHash::of(expected.as_bytes()));
    }
}
