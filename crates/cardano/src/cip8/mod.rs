//! Signatures of wallets over a message: CIP-30's `signData`, which is COSE (RFC 9052) in the profile of CIP-8.
//!
//! ```text
//!   key        COSE_Key    {1: 1, 3: -8, -1: 6, -2: <public key>}
//!   signature  COSE_Sign1  [<< {1: -8, "address": <raw address>} >>, {"hashed": false}, <payload>, <signature>]
//!                            └ protected: signed                     └ not signed
//!   signed: ["Signature1", protected, h'', payload]
//! ```
//!
//! [`SignedMessage::parse`] takes the two apart and refuses every shape that wallets do not emit;
//! [`SignedMessage::check`] compares what they say with what the caller expects; the signature itself goes through
//! the [`VerifyEd25519`] port. [`verify`] does the three in order.
//!
//! The profile. Wallet libraries (evolution-sdk, lucid-evolution, mesh, message-signing, the SDK of Lace) all emit
//! definite lengths and shortest integers, in varying key order. Anything else is refused, as are header and key
//! parameters that none of them emits. General COSE libraries put the tag 18 before a COSE_Sign1 (RFC 9052 section 2),
//! and a key id into any header. The tag may be there, and a key id that is not signed must name the key.

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

/// Most bytes of a COSE_Key. Wallets emit 42, or 101 with a base address as key id.
pub const MAX_KEY_BYTES: usize = 256;

/// Most bytes of a COSE_Sign1. Wallets emit up to about 250 over a digest.
pub const MAX_SIGNATURE_BYTES: usize = 512;

/// Which of the two parts of a `signData` answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CosePart {
    /// The COSE_Key.
    Key,
    /// The COSE_Sign1.
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

/// Why a signed message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cip8Error {
    /// Not hexadecimal.
    #[error("the {0} is not hexadecimal")]
    NotHex(CosePart),
    /// Longer than any wallet's.
    #[error("the {0} is too large")]
    TooLarge(CosePart),
    /// Not CBOR of the right shape, or with a repeated map key.
    #[error("the {0} is not well-formed")]
    Malformed(CosePart),
    /// Indefinite lengths, integers longer than they need to be, or bytes after the end.
    #[error("the {0} is not encoded as wallets do: definite lengths, shortest integers, nothing after the end")]
    NotCanonical(CosePart),
    /// The key is not an octet key pair (`kty` 1).
    #[error("the key is not of type OKP")]
    KeyType,
    /// The key's or the signature's algorithm is not EdDSA (-8).
    #[error("the {0} is not for the algorithm EdDSA")]
    Algorithm(CosePart),
    /// The key's curve is not Ed25519 (6).
    #[error("the key is not on the curve Ed25519")]
    Curve,
    /// No 32-byte public key.
    #[error("the key has no public key of 32 bytes")]
    PublicKey,
    /// The key carries a private part. Its owner should stop using it.
    #[error("the key contains a private key; never send it anywhere")]
    PrivatePart,
    /// The key is marked for something other than verifying.
    #[error("the key is not marked for verifying")]
    KeyOperations,
    /// A parameter of the key, or a header of the signature, that no wallet emits.
    #[error("the {0} has a parameter that is not part of CIP-8")]
    UnknownParameter(CosePart),
    /// No protected header `address`.
    #[error("the signature does not name the address that signs")]
    NoAddress,
    /// The protected header `address` is not one of a preprod payment key.
    #[error("the signature's address: {0}")]
    Address(AddressError),
    /// Key ids in key and signature differ, or the key's says something else than the key.
    #[error("the key id of key and signature differ")]
    KeyId,
    /// `hashed` is not a boolean.
    #[error("the header hashed is not true or false")]
    Hashed,
    /// A version of CIP-8 that does not exist.
    #[error("the signature is not of version 1 of CIP-8")]
    Version,
    /// The payload is not inside.
    #[error("the signature does not contain its payload")]
    Detached,
    /// The signature is not 64 bytes.
    #[error("the signature is not 64 bytes long")]
    SignatureLength,
    /// Signed for another address than the claimed one.
    #[error("the signature is for another address")]
    OtherAddress,
    /// Signed with a key that does not spend from the address. Its stake key does not either.
    #[error("the key is not the payment key of the address")]
    OtherKey,
    /// Signed another message.
    #[error("the signature is of another message")]
    OtherPayload,
    /// The signature is none.
    #[error(transparent)]
    Signature(#[from] SignatureError),
}

/// A wallet's `signData` answer, well-formed. Nothing is known yet about who signed what.
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

/// Everything about a signed message holds but the Ed25519 equation, which is left to a [`VerifyEd25519`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "nothing is proven before the signature is verified"]
pub struct UnverifiedSignature {
    /// The Ed25519 public key.
    pub public_key: [u8; 32],
    /// The message that it signs: COSE's `Sig_structure`.
    pub message: Vec<u8>,
    /// The Ed25519 signature.
    pub signature: [u8; 64],
}

impl SignedMessage {
    /// Takes a `signData` answer apart.
    ///
    /// # Errors
    /// Every deviation from what wallets emit; see the module.
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

    /// The address that the signature says it is for. Proven only once [`SignedMessage::check`] and the signature hold.
    #[must_use]
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// The Ed25519 public key.
    #[must_use]
    pub const fn public_key(&self) -> &[u8; 32] {
        &self.public_key
    }

    /// What the header `hashed` says, which is not signed; `None` where it is not there.
    #[must_use]
    pub const fn says_hashed(&self) -> Option<bool> {
        self.hashed
    }

    /// The protected headers' CBOR, as signed.
    #[must_use]
    pub fn protected_headers(&self) -> &[u8] {
        &self.protected_headers
    }

    /// The Ed25519 signature.
    #[must_use]
    pub const fn signature(&self) -> &[u8; 64] {
        &self.signature
    }

    /// What was signed: the message's bytes, or (28 bytes) their BLAKE2b-224 where the wallet hashed them.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// That this address's payment key signed this payload, up to the Ed25519 equation.
    ///
    /// # Errors
    /// [`Cip8Error::OtherAddress`], [`Cip8Error::OtherKey`], [`Cip8Error::OtherPayload`], [`Cip8Error::Signature`].
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
    /// The Ed25519 equation.
    ///
    /// # Errors
    /// [`SignatureError::Mismatch`], and the rules of [`keys::strict`].
    pub async fn verify(&self, port: &impl VerifyEd25519) -> Result<(), SignatureError> {
        keys::verify(port, &self.public_key, &self.message, &self.signature).await
    }
}

/// That the payment key of this address signed this payload (for this service: the 32 bytes of a digest).
///
/// # Errors
/// The first check that fails.
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

/// The text label of the header that names the signing address.
const ADDRESS: &str = "address";
/// The text label of the header that says whether the payload is a BLAKE2b-224 hash of the message.
const HASHED: &str = "hashed";

/// The text label of the header that says which version of CIP-8 this is.
const VERSION: &str = "version";

/// A COSE label given by its registered number.
fn label(number: impl coset::iana::EnumI64) -> coset::Label {
    coset::Label::Int(number.to_i64())
}

/// Bytes out of a CBOR value, if it is a byte string.
fn into_bytes(value: Value) -> Option<Vec<u8>> {
    value.into_bytes().ok()
}
