//! Signs messages as a wallet does. Used for sellers' quotes and arbiters' awards.

use ciborium::Value;
use coset::{CborSerializable, CoseKey, CoseKeyBuilder, CoseSign1, CoseSign1Builder, Header, HeaderBuilder, iana};

use super::{ADDRESS, Cip8Error, CosePart, HASHED};
use crate::{address::Address, keys::SigningKey};

/// The result of CIP-30's `signData`, whose parts wallets return in hex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSignature {
    /// Bytes of the COSE_Key.
    pub key: Vec<u8>,
    /// Bytes of the COSE_Sign1.
    pub signature: Vec<u8>,
}

impl DataSignature {
    /// Decodes the two hexadecimal strings that a wallet returns.
    ///
    /// # Errors
    /// [`Cip8Error::TooLarge`] or [`Cip8Error::NotHex`], with the part that is wrong.
    pub fn from_hex(key: &str, signature: &str) -> Result<Self, Cip8Error> {
        let bytes = |text: &str, part: CosePart| {
            if text.len() > part.max_bytes().saturating_mul(2) {
                return Err(Cip8Error::TooLarge(part));
            }
            hex::decode(text).map_err(|_| Cip8Error::NotHex(part))
        };
        Ok(Self { key: bytes(key, CosePart::Key)?, signature: bytes(signature, CosePart::Signature)? })
    }
}

/// A signing key and its address. The parts of a signature that do not depend on the payload are encoded once, in
/// advance.
#[derive(Clone, Debug)]
pub struct Signatory {
    key: Vec<u8>,
    /// COSE_Sign1 that still lacks the payload and the signature.
    message: CoseSign1,
}

impl Signatory {
    /// Prepares signatures for an address by its payment key.
    ///
    /// # Errors
    /// [`Cip8Error::OtherKey`] if the key is not the address's payment key.
    pub fn new(secret: &SigningKey, address: &Address) -> Result<Self, Cip8Error> {
        if secret.key_hash() != *address.payment_key() {
            return Err(Cip8Error::OtherKey);
        }
        Ok(Self::of(secret, address))
    }

    /// Prepares signatures for the key's own enterprise address.
    #[must_use]
    pub fn own(secret: &SigningKey) -> Self {
        Self::of(secret, &secret.enterprise_address())
    }

    fn of(secret: &SigningKey, address: &Address) -> Self {
        let protected = HeaderBuilder::new()
            .algorithm(iana::Algorithm::EdDSA)
            .text_value(ADDRESS.to_owned(), Value::Bytes(address.to_bytes()))
            .build();
        let unprotected =
            Header { rest: vec![(coset::Label::Text(HASHED.to_owned()), Value::Bool(false))], ..Header::default() };
        let mut message = CoseSign1Builder::new().protected(protected).unprotected(unprotected).build();
        // Encode the headers once, so that no payload has to encode them again.
        let protected = message.protected.clone().cbor_bstr();
        message.protected.original_data = protected.ok().and_then(|bytes| bytes.into_bytes().ok());
        Self { key: encoded(cose_key(secret)), message }
    }

    /// Prepares a payload for signing.
    #[must_use]
    pub fn unsigned(&self, payload: &[u8]) -> Unsigned {
        let message = CoseSign1 { payload: Some(payload.to_vec()), ..self.message.clone() };
        Unsigned { key: self.key.clone(), to_sign: message.tbs_data(&[]), message }
    }
}

/// A payload prepared for signing. The protected headers are the algorithm and the raw address; `hashed: false` is an
/// unprotected header. The encoding is deterministic and the same as in evolution-sdk and lucid-evolution.
#[derive(Clone, Debug)]
pub struct Unsigned {
    key: Vec<u8>,
    message: CoseSign1,
    to_sign: Vec<u8>,
}

impl Unsigned {
    /// Returns the bytes over which the Ed25519 signature must be made.
    #[must_use]
    pub fn to_sign(&self) -> &[u8] {
        &self.to_sign
    }

    /// Completes the message with the key's Ed25519 signature.
    #[must_use]
    pub fn signed(self, signature: [u8; 64]) -> DataSignature {
        let message = CoseSign1 { signature: signature.to_vec(), ..self.message };
        DataSignature { key: self.key, signature: encoded(message) }
    }
}

/// Signs a payload for an address.
///
/// # Errors
/// See [`Signatory::new`].
pub fn sign(secret: &SigningKey, address: &Address, payload: &[u8]) -> Result<DataSignature, Cip8Error> {
    let unsigned = Signatory::new(secret, address)?.unsigned(payload);
    let signature = secret.sign(unsigned.to_sign());
    Ok(unsigned.signed(signature))
}

fn cose_key(secret: &SigningKey) -> CoseKey {
    use iana::EnumI64;
    CoseKeyBuilder::new_okp_key()
        .algorithm(iana::Algorithm::EdDSA)
        .param(iana::OkpKeyParameter::Crv.to_i64(), Value::from(iana::EllipticCurve::Ed25519.to_i64()))
        .param(iana::OkpKeyParameter::X.to_i64(), Value::Bytes(secret.public_key().to_vec()))
        .build()
}

/// Encodes a COSE structure. Encoding fails only on repeated labels, which the builders above never produce.
fn encoded(structure: impl CborSerializable) -> Vec<u8> {
    structure.to_vec().unwrap_or_default()
}
