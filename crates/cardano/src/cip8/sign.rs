//! Signing as a wallet does: seller quotes and arbiter signatures.

use ciborium::Value;
use coset::{CborSerializable, CoseKey, CoseKeyBuilder, CoseSign1, CoseSign1Builder, Header, HeaderBuilder, iana};

use super::{ADDRESS, Cip8Error, CosePart, HASHED};
use crate::{address::Address, keys::SigningKey};

/// What CIP-30's `signData` returns (there in hexadecimal).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSignature {
    /// COSE_Key.
    pub key: Vec<u8>,
    /// COSE_Sign1.
    pub signature: Vec<u8>,
}

impl DataSignature {
    /// Reads a wallet's answer: two hexadecimal strings.
    ///
    /// # Errors
    /// [`Cip8Error::TooLarge`], [`Cip8Error::NotHex`].
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

/// A payload that is to be signed for an address: protected headers algorithm and raw address, unprotected `hashed`
/// false, the payload attached. The same bytes every time, and those of evolution-sdk and lucid-evolution.
#[derive(Clone, Debug)]
pub struct Unsigned {
    key: CoseKey,
    message: CoseSign1,
    to_sign: Vec<u8>,
}

impl Unsigned {
    /// A payload to be signed by the key of this address.
    ///
    /// # Errors
    /// [`Cip8Error::OtherKey`] where the key does not spend from the address.
    pub fn new(secret: &SigningKey, address: &Address, payload: &[u8]) -> Result<Self, Cip8Error> {
        if secret.key_hash() != *address.payment_key() {
            return Err(Cip8Error::OtherKey);
        }
        let protected = HeaderBuilder::new()
            .algorithm(iana::Algorithm::EdDSA)
            .text_value(ADDRESS.to_owned(), Value::Bytes(address.to_bytes()))
            .build();
        let unprotected =
            Header { rest: vec![(coset::Label::Text(HASHED.to_owned()), Value::Bool(false))], ..Header::default() };
        let message =
            CoseSign1Builder::new().protected(protected).unprotected(unprotected).payload(payload.to_vec()).build();
        Ok(Self { key: cose_key(secret), to_sign: message.tbs_data(&[]), message })
    }

    /// The bytes that the key signs.
    #[must_use]
    pub fn to_sign(&self) -> &[u8] {
        &self.to_sign
    }

    /// With the key's signature of them.
    #[must_use]
    pub fn signed(self, signature: [u8; 64]) -> DataSignature {
        let message = CoseSign1 { signature: signature.to_vec(), ..self.message };
        DataSignature { key: encoded(self.key), signature: encoded(message) }
    }
}

/// Signs a payload for an address, as [`Unsigned`] has it.
///
/// # Errors
/// As [`Unsigned::new`].
pub fn sign(secret: &SigningKey, address: &Address, payload: &[u8]) -> Result<DataSignature, Cip8Error> {
    let unsigned = Unsigned::new(secret, address, payload)?;
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

/// Encoding fails only for repeated labels, which the builders above do not make.
fn encoded(structure: impl CborSerializable) -> Vec<u8> {
    structure.to_vec().unwrap_or_default()
}
