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

/// Who signs for an address: what is the same in all that they sign.
#[derive(Clone, Debug)]
pub struct Signatory {
    key: Vec<u8>,
    /// Without a payload.
    message: CoseSign1,
}

impl Signatory {
    /// The key of this address.
    ///
    /// # Errors
    /// [`Cip8Error::OtherKey`] where the key does not spend from the address.
    pub fn new(secret: &SigningKey, address: &Address) -> Result<Self, Cip8Error> {
        if secret.key_hash() != *address.payment_key() {
            return Err(Cip8Error::OtherKey);
        }
        Ok(Self::of(secret, address))
    }

    /// The key of its own enterprise address.
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
        // Encoded once, here.
        let protected = message.protected.clone().cbor_bstr();
        message.protected.original_data = protected.ok().and_then(|bytes| bytes.into_bytes().ok());
        Self { key: encoded(cose_key(secret)), message }
    }

    /// A payload that they are to sign.
    #[must_use]
    pub fn unsigned(&self, payload: &[u8]) -> Unsigned {
        let message = CoseSign1 { payload: Some(payload.to_vec()), ..self.message.clone() };
        Unsigned { key: self.key.clone(), to_sign: message.tbs_data(&[]), message }
    }
}

/// A payload that is to be signed for an address: protected headers algorithm and raw address, unprotected `hashed`
/// false, the payload attached. The same bytes every time, and those of evolution-sdk and lucid-evolution.
#[derive(Clone, Debug)]
pub struct Unsigned {
    key: Vec<u8>,
    message: CoseSign1,
    to_sign: Vec<u8>,
}

impl Unsigned {
    /// The bytes that the key signs.
    #[must_use]
    pub fn to_sign(&self) -> &[u8] {
        &self.to_sign
    }

    /// With the key's signature of them.
    #[must_use]
    pub fn signed(self, signature: [u8; 64]) -> DataSignature {
        let message = CoseSign1 { signature: signature.to_vec(), ..self.message };
        DataSignature { key: self.key, signature: encoded(message) }
    }
}

/// Signs a payload for an address, as [`Unsigned`] has it.
///
/// # Errors
/// As [`Signatory::new`].
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

/// Encoding fails only for repeated labels, which the builders above do not make.
fn encoded(structure: impl CborSerializable) -> Vec<u8> {
    structure.to_vec().unwrap_or_default()
}
