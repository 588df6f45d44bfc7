//! Ed25519 keys: signing, and the port that verifies signatures.
//!
//! ```text
//!   key, message, signature ──> strict::check ──> VerifyEd25519 ──> yes / no
//!                               (this crate)      (WebCrypto in the workers, `Native` elsewhere)
//! ```
//!
//! Verifiers agree on honest signatures and differ on crafted ones. [`strict`] first rejects the encodings on which
//! they differ. On the rest, every verifier that checks `[S]B = R + [h]A` without multiplying by the cofactor agrees
//! with libsodium, which the Cardano ledger uses. WebCrypto (BoringSSL) and [`Native`] are such verifiers.

use std::fmt;

use ed25519_compact::{KeyPair, Seed};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::{
    address::{Address, Credential},
    hash::KeyHash,
};

pub mod strict;

/// Minimum length of a master secret in bytes, so that it has as much entropy as the keys derived from it.
#[doc(hidden)]
pub const MIN_MASTER_BYTES: usize = 32;

/// Domain separator for deriving wallet keys from the master secret.
const WALLET_DOMAIN: &[u8] = b"surety:wallet-key:v1\n";
/// Domain separator for deriving, from the master secret, the key that signs receipts.
const RECEIPT_DOMAIN: &[u8] = b"surety:receipt-key:v1\n";

/// Verifies Ed25519 signatures without multiplying by the cofactor. Callers use [`verify`], which first rejects
/// encodings on which verifiers disagree.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait VerifyEd25519 {
    /// Returns `true` if the signature is valid. Returns `false` if it is not, or if the verification could not be
    /// carried out.
    async fn verify(&self, key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool;
}

/// Signs with a secret key. Ed25519 is deterministic (RFC 8032), so every implementation returns the same bytes.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait SignEd25519 {
    /// Signs a message and returns the Ed25519 signature.
    async fn sign(&self, key: &SigningKey, message: &[u8]) -> [u8; 64];
}

/// Verifies a signature as strictly as the ledger does.
///
/// # Errors
/// Returns the rule that the signature breaks.
pub async fn verify(
    port: &impl VerifyEd25519,
    key: &[u8; 32],
    message: &[u8],
    signature: &[u8; 64],
) -> Result<(), SignatureError> {
    strict::check(key, signature)?;
    if port.verify(key, message, signature).await { Ok(()) } else { Err(SignatureError::Mismatch) }
}

/// Reason why a signature is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The scalar S is not below the group order. If this were allowed, one signature would have several encodings.
    #[error("the signature's scalar is not reduced")]
    ScalarNotReduced,
    /// This point is encoded with a coordinate that is not below the field's prime.
    #[error("the {0} is not canonically encoded")]
    NonCanonicalPoint(Point),
    /// This point has order 1, 2, 4 or 8. A public key of small order would verify almost any signature.
    #[error("the {0} is a point of small order")]
    SmallOrder(Point),
    /// The signature is not a valid signature of this message by this key.
    #[error("the signature does not verify")]
    Mismatch,
}

/// A point in the equation by which a signature is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The public key, A.
    PublicKey,
    /// The signature's first half, R.
    Commitment,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PublicKey => "public key",
            Self::Commitment => "signature's point",
        })
    }
}

/// A verifier in pure Rust, for programs that do not run in a worker. It does not use `ed25519-compact`, which
/// multiplies by the cofactor and so accepts signatures that the ledger rejects.
#[cfg(not(target_family = "wasm"))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Native;

#[cfg(not(target_family = "wasm"))]
impl Native {
    /// Verifies a signature synchronously, as strictly as the ledger does.
    ///
    /// # Errors
    /// Returns the rule that the signature breaks.
    pub fn verify(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> Result<(), SignatureError> {
        strict::check(key, signature)?;
        if Self::equation_holds(key, message, signature) { Ok(()) } else { Err(SignatureError::Mismatch) }
    }

    fn equation_holds(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
        use ed25519_dalek::{Signature, Verifier, VerifyingKey};
        VerifyingKey::from_bytes(key).and_then(|key| key.verify(message, &Signature::from_bytes(signature))).is_ok()
    }
}

#[cfg(not(target_family = "wasm"))]
impl SignEd25519 for Native {
    async fn sign(&self, key: &SigningKey, message: &[u8]) -> [u8; 64] {
        key.sign(message)
    }
}

#[cfg(not(target_family = "wasm"))]
impl VerifyEd25519 for Native {
    async fn verify(&self, key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
        Self::equation_holds(key, message, signature)
    }
}

/// Reason why no key can be made from a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The seed is all zeros, so the secret was probably never set.
    #[error("a seed of zeros is not a secret")]
    ZeroSeed,
    /// The master secret is shorter than [`MIN_MASTER_BYTES`].
    #[error("a master secret has at least {MIN_MASTER_BYTES} bytes")]
    ShortMaster,
    /// The scalar of the key is not clamped as BIP32-Ed25519 requires.
    #[error("not an extended key: its scalar is not clamped")]
    NotClamped,
}

/// A secret Ed25519 key. Its memory is zeroized on drop, and it is never printed.
#[derive(Clone)]
pub struct SigningKey {
    secret: Secret,
    /// Stake credential of the key's address; `None` for an enterprise address.
    stake: Option<KeyHash>,
}

#[derive(Clone)]
enum Secret {
    Seed(KeyPair),
    /// A key of an HD wallet: scalar and nonce prefix, and the public key.
    #[cfg(not(target_family = "wasm"))]
    Extended(Zeroizing<[u8; 64]>, ed25519_dalek::VerifyingKey),
}

impl SigningKey {
    /// Creates a key from a 32-byte seed (RFC 8032's secret key; the payload of a Cardano `ed25519_sk`).
    ///
    /// # Errors
    /// [`KeyError::ZeroSeed`] if all bytes of the seed are zero.
    pub fn from_seed(seed: &[u8; 32]) -> Result<Self, KeyError> {
        let mut seed = Seed::new(*seed);
        let pair = KeyPair::try_from_seed(seed);
        seed.wipe_mut();
        let pair = pair.map_err(|_| KeyError::ZeroSeed)?;
        Ok(Self { secret: Secret::Seed(pair), stake: None })
    }

    /// Creates a key from an extended key (a 32-byte scalar and a 32-byte nonce prefix), as wallets derive it from a
    /// recovery phrase (BIP32-Ed25519). `stake` is the stake credential of the same account (CIP-1852).
    ///
    /// # Errors
    /// [`KeyError::NotClamped`] if the scalar is not clamped.
    #[cfg(not(target_family = "wasm"))]
    pub fn from_extended(extended: &[u8; 64], stake: KeyHash) -> Result<Self, KeyError> {
        use ed25519_dalek::{VerifyingKey, hazmat::ExpandedSecretKey};
        let [first, .., last] = &extended[..32] else { return Err(KeyError::NotClamped) };
        if first & 0b111 != 0 || last & 0b1100_0000 != 0b0100_0000 {
            return Err(KeyError::NotClamped);
        }
        let public = VerifyingKey::from(&ExpandedSecretKey::from_bytes(extended));
        Ok(Self { secret: Secret::Extended(Zeroizing::new(*extended), public), stake: Some(stake) })
    }

    /// Returns the Ed25519 public key, 32 bytes.
    #[must_use]
    pub fn public_key(&self) -> [u8; 32] {
        match &self.secret {
            Secret::Seed(pair) => *pair.pk,
            #[cfg(not(target_family = "wasm"))]
            Secret::Extended(_, public) => public.to_bytes(),
        }
    }

    /// Returns the key's preprod address, with the stake credential if the key has one.
    #[must_use]
    pub fn address(&self) -> Address {
        let enterprise = || Address::enterprise(self.key_hash());
        self.stake.map_or_else(enterprise, |stake| Address::base(self.key_hash(), Credential::Key(stake)))
    }

    /// Returns the hash of the public key.
    #[must_use]
    pub fn key_hash(&self) -> KeyHash {
        KeyHash::of_public_key(&self.public_key())
    }

    /// Returns the key's preprod address without a stake credential.
    #[must_use]
    pub fn enterprise_address(&self) -> Address {
        Address::enterprise(self.key_hash())
    }

    /// Returns the seed of the key, for signers that import keys. `None` for a key of an HD wallet, which has no seed.
    /// The seed is secret and must not be stored or logged.
    #[must_use]
    pub fn seed(&self) -> Option<Zeroizing<[u8; 32]>> {
        match &self.secret {
            Secret::Seed(pair) => Some(Zeroizing::new(*pair.sk.seed())),
            #[cfg(not(target_family = "wasm"))]
            Secret::Extended(..) => None,
        }
    }

    /// Signs a message (RFC 8032, deterministic).
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        match &self.secret {
            Secret::Seed(pair) => *pair.sk.sign(message, None),
            #[cfg(not(target_family = "wasm"))]
            Secret::Extended(extended, public) => {
                use ed25519_dalek::hazmat::{ExpandedSecretKey, raw_sign};
                raw_sign::<sha2::Sha512>(&ExpandedSecretKey::from_bytes(extended), message, public).to_bytes()
            }
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey(of {})", hex::encode(self.public_key()))
    }
}

/// Derives the key of the wallet that the service keeps for `owner`. HKDF-SHA-256 computes the key from the master
/// secret, the key version and the owner, so it is not stored. A new version gives every owner a new wallet.
///
/// # Errors
/// [`KeyError::ShortMaster`] if the master secret is shorter than [`MIN_MASTER_BYTES`].
#[doc(hidden)]
pub fn derive_wallet_key(master: &[u8], key_version: u32, owner: &str) -> Result<SigningKey, KeyError> {
    derive(WALLET_DOMAIN, master, key_version, owner)
}

/// Derives the key with which the service signs receipts. No money depends on it.
///
/// # Errors
/// [`KeyError::ShortMaster`] if the master secret is shorter than [`MIN_MASTER_BYTES`].
#[doc(hidden)]
pub fn derive_receipt_key(master: &[u8], key_version: u32) -> Result<SigningKey, KeyError> {
    derive(RECEIPT_DOMAIN, master, key_version, "")
}

fn derive(domain: &[u8], master: &[u8], key_version: u32, name: &str) -> Result<SigningKey, KeyError> {
    if master.len() < MIN_MASTER_BYTES {
        return Err(KeyError::ShortMaster);
    }
    // The domain ends with a line feed and the name comes last, so different inputs never produce the same info.
    let version = key_version.to_be_bytes();
    let mut seed = Zeroizing::new([0; 32]);
    Hkdf::<Sha256>::new(None, master)
        .expand_multi_info(&[domain, &version, name.as_bytes()], seed.as_mut())
        .map_err(|_| KeyError::ShortMaster)?;
    SigningKey::from_seed(&seed)
}

#[cfg(test)]
mod tests;
