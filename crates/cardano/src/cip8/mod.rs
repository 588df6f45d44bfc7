//! Message signatures of wallets: CIP-30's `signData`, which is COSE (RFC 9052) in the profile of CIP-8.
//!
//! ```text
//!   key        COSE_Key    {1: 1, 3: -8, -1: 6, -2: <public key>}
//!   signature  COSE_Sign1  [<< {1: -8, "address": <raw address>} >>, {"hashed": false}, <payload>, <signature>]
//!                            └ protected: signed                     └ not signed
//!   signed: ["Signature1", protected, h'', payload]
//! ```
//!
//! [`SignedMessage::parse`] decodes the two parts and rejects every shape that wallets do not emit.
//! [`SignedMessage::check`] compares them with the address and payload that the caller expects. The signature itself is
//! verified through the [`VerifyEd25519`] port. [`verify`] does all three in this order.
//!
//! Wallet libraries (evolution-sdk, lucid-evolution, mesh, message-signing, the SDK of Lace) all emit definite lengths
//! and shortest integers, in varying key order. Any other encoding is rejected, as are header and key parameters that
//! none of them emits. General COSE libraries add the tag 18 to a COSE_Sign1 (RFC 9052, section 2) and a key id to any
//! header. The tag is accepted, and so is an unsigned key id if it identifies the key.

use ciborium::Value;

use crate::{
    address::{Address, AddressError},
    hash::{KeyHash, blake2b},
    keys::{self, SignatureError, VerifyEd25519},
};

mod cbor;
mod parse;
mod sign;

pub use sign::{DataSignature, Signatory, Unsigned, sign};

#[cfg(test)]
mod forge;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod wallets;

/// Maximum size of a COSE_Key in bytes. Wallets emit 42, or 101 with a base address as key id.
pub const MAX_KEY_BYTES: usize = 256;

/// Maximum size of a COSE_Sign1 in bytes. Wallets add up to about 220 bytes to the payload, which is a digest of 32
/// bytes or a sign-in message of up to about 800 bytes.
pub const MAX_SIGNATURE_BYTES: usize = 1_536;

/// A part of the result of CIP-30's `signData`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CosePart {
    /// The key, a COSE_Key.
    Key,
    /// The signature, a COSE_Sign1.
    Signature,
}

impl CosePart {
    const fn max_bytes(self) -> usize {
        match self {
            Self::Key => MAX_KEY_BYTES,
            Self::Signature => MAX_SIGNATURE_BYTES,
        }
    }
}

impl std::fmt::Display for CosePart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Key => "key (COSE_Key)",
            Self::Signature => "signature (COSE_Sign1)",
        })
    }
}

/// Reason why a signed message is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cip8Error {
    /// The part is not hexadecimal.
    #[error("the {0} is not hexadecimal")]
    NotHex(CosePart),
    /// The part exceeds its maximum size, which is above the size that wallets emit.
    #[error("the {0} is too large")]
    TooLarge(CosePart),
    /// The part is not CBOR of the right shape, or repeats a map key.
    #[error("the {0} is not well-formed")]
    Malformed(CosePart),
    /// The part has indefinite lengths, integers in more bytes than needed, or trailing bytes.
    #[error("the {0} is not encoded as wallets do: definite lengths, shortest integers, nothing after the end")]
    NotCanonical(CosePart),
    /// The key is not an octet key pair (`kty` 1).
    #[error("the key is not of type OKP")]
    KeyType,
    /// The algorithm of the key or of the signature is not EdDSA (-8).
    #[error("the {0} is not for the algorithm EdDSA")]
    Algorithm(CosePart),
    /// The key's curve is not Ed25519 (6).
    #[error("the key is not on the curve Ed25519")]
    Curve,
    /// The key has no public key of 32 bytes.
    #[error("the key has no public key of 32 bytes")]
    PublicKey,
    /// The key contains its secret part, so its owner should stop using it.
    #[error("the key contains a private key; never send it anywhere")]
    PrivatePart,
    /// The key's parameter `key_ops` allows operations other than verifying.
    #[error("the key is not marked for verifying")]
    KeyOperations,
    /// The key or the signature has a parameter or header that no wallet emits.
    #[error("the {0} has a parameter that is not part of CIP-8")]
    UnknownParameter(CosePart),
    /// The protected header `address` is missing.
    #[error("the signature does not name the address that signs")]
    NoAddress,
    /// The protected header `address` is not a preprod address with a payment key.
    #[error("the signature's address: {0}")]
    Address(AddressError),
    /// The key ids in key and signature differ, or an unsigned key id does not identify the key.
    #[error("the key ids of the key and the signature differ")]
    KeyId,
    /// The header `hashed` is not a boolean.
    #[error("the header hashed is not true or false")]
    Hashed,
    /// The header `version` names a version of CIP-8 that does not exist.
    #[error("the signature is not of version 1 of CIP-8")]
    Version,
    /// The payload is not contained in the signature.
    #[error("the signature does not contain its payload")]
    Detached,
    /// The signature is not 64 bytes long.
    #[error("the signature is not 64 bytes long")]
    SignatureLength,
    /// The address in the signature differs from the claimed address.
    #[error("the signature is for another address")]
    OtherAddress,
    /// The key is not the address's payment key. A stake key is not accepted either.
    #[error("the key is not the payment key of the address")]
    OtherKey,
    /// The signed message differs from the expected message.
    #[error("the signature is of another message")]
    OtherPayload,
    /// The Ed25519 signature is invalid.
    #[error(transparent)]
    Signature(#[from] SignatureError),
}

/// A well-formed result of CIP-30's `signData`. Neither the signer nor the message has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedMessage {
    public_key: [u8; 32],
    address: Address,
    hashed: Option<bool>,
    protected_headers: Vec<u8>,
    payload: Vec<u8>,
    to_be_signed: Vec<u8>,
    signature: [u8; 64],
}

/// A signature whose address and payload have been checked. Only the Ed25519 signature itself remains to be verified,
/// by a [`VerifyEd25519`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "nothing is proven before the signature is verified"]
pub struct UnverifiedSignature {
    /// Ed25519 public key.
    pub public_key: [u8; 32],
    /// Bytes that the signature covers: COSE's `Sig_structure`.
    pub message: Vec<u8>,
    /// Ed25519 signature.
    pub signature: [u8; 64],
}

impl SignedMessage {
    /// Decodes the result of CIP-30's `signData`.
    ///
    /// # Errors
    /// [`Cip8Error`] for every deviation from what wallets emit, as the module's comment explains.
    pub fn parse(cose_key: &[u8], cose_sign1: &[u8]) -> Result<Self, Cip8Error> {
        let key = parse::key(cbor::decode(cose_key, CosePart::Key)?)?;
        let sign1 = parse::sign1(cbor::decode(cose_sign1, CosePart::Signature)?)?;
        key.matches_key_ids(&sign1)?;
        Ok(Self {
            public_key: key.public_key,
            address: sign1.address,
            hashed: sign1.hashed,
            protected_headers: sign1.protected_headers,
            payload: sign1.payload,
            to_be_signed: sign1.to_be_signed,
            signature: sign1.signature,
        })
    }

    /// Returns the address that the message claims as its signer. The claim is unproven until [`SignedMessage::check`]
    /// and the verification of the signature succeed.
    #[must_use]
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the Ed25519 public key.
    #[must_use]
    pub const fn public_key(&self) -> &[u8; 32] {
        &self.public_key
    }

    /// Returns the value of the header `hashed`, which is not covered by the signature, or `None` if the header is
    /// absent.
    #[must_use]
    pub const fn hashed_header(&self) -> Option<bool> {
        self.hashed
    }

    /// Returns the CBOR of the protected headers, exactly as it was signed.
    #[must_use]
    pub fn protected_headers(&self) -> &[u8] {
        &self.protected_headers
    }

    /// Returns the Ed25519 signature.
    #[must_use]
    pub const fn signature(&self) -> &[u8; 64] {
        &self.signature
    }

    /// Returns the signed payload: the message, or its 28-byte BLAKE2b-224 hash if the wallet hashed it.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Checks everything except the Ed25519 signature: that the message is `payload`, and that the key is the payment
    /// key of the address `claimed`.
    ///
    /// # Errors
    /// [`Cip8Error::OtherAddress`], [`Cip8Error::OtherKey`], [`Cip8Error::OtherPayload`] or [`Cip8Error::Signature`] if
    /// the corresponding check fails.
    pub fn check(&self, claimed: &Address, payload: &[u8]) -> Result<UnverifiedSignature, Cip8Error> {
        if self.address != *claimed {
            return Err(Cip8Error::OtherAddress);
        }
        if KeyHash::of_public_key(&self.public_key) != *claimed.payment_key() {
            return Err(Cip8Error::OtherKey);
        }
        let signs_payload =
            if self.hashed == Some(true) { self.payload == blake2b::<28>(payload) } else { self.payload == payload };
        if !signs_payload {
            return Err(Cip8Error::OtherPayload);
        }
        keys::strict::check(&self.public_key, &self.signature)?;
        Ok(UnverifiedSignature {
            public_key: self.public_key,
            message: self.to_be_signed.clone(),
            signature: self.signature,
        })
    }
}

impl UnverifiedSignature {
    /// Verifies the Ed25519 signature.
    ///
    /// # Errors
    /// [`SignatureError::Mismatch`] if the key did not sign the message, or another [`SignatureError`] if the encoding
    /// breaks a rule of [`keys::strict`].
    pub async fn verify(&self, port: &impl VerifyEd25519) -> Result<(), SignatureError> {
        keys::verify(port, &self.public_key, &self.message, &self.signature).await
    }
}

/// Verifies that the payment key of an address signed this payload.
///
/// # Errors
/// Returns the error of the first check that fails.
pub async fn verify(
    port: &impl VerifyEd25519,
    cose_key: &[u8],
    cose_sign1: &[u8],
    claimed: &Address,
    payload: &[u8],
) -> Result<(), Cip8Error> {
    let unverified = SignedMessage::parse(cose_key, cose_sign1)?.check(claimed, payload)?;
    Ok(unverified.verify(port).await?)
}

/// Label of the header that contains the signing address.
const ADDRESS: &str = "address";
/// Label of the header that says whether the payload is a BLAKE2b-224 hash of the message.
const HASHED: &str = "hashed";

/// Label of the header that contains the version of CIP-8.
const VERSION: &str = "version";

/// Converts a number in COSE's registries to a label.
fn label(number: impl coset::iana::EnumI64) -> coset::Label {
    coset::Label::Int(number.to_i64())
}

/// Returns the bytes of a CBOR value, or `None` if it is not a byte string.
fn into_bytes(value: Value) -> Option<Vec<u8>> {
    value.into_bytes().ok()
}
