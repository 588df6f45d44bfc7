//! Parses COSE_Key and COSE_Sign1 in the shapes that wallets emit, and no others.

use ciborium::Value;
use coset::{
    Algorithm, AsCborValue, CoseKey, CoseSign1, Header, KeyOperation, KeyType, Label,
    iana::{self, EnumI64},
};

use super::{ADDRESS, Cip8Error, CosePart, HASHED, VERSION, cbor, into_bytes, label};
use crate::{address::Address, hash::KeyHash};

/// The fields of a COSE_Key that verifying a signature needs.
pub(super) struct Key {
    pub public_key: [u8; 32],
    key_id: Option<Vec<u8>>,
}

/// The fields of a COSE_Sign1 that verifying a signature needs.
pub(super) struct Sign1 {
    pub address: Address,
    key_id: Option<Vec<u8>>,
    unsigned_key_id: Option<Vec<u8>>,
    /// Value of the header `hashed`; `None` if it is absent, which means `false`.
    pub hashed: Option<bool>,
    pub protected_headers: Vec<u8>,
    pub payload: Vec<u8>,
    pub to_be_signed: Vec<u8>,
    pub signature: [u8; 64],
}

pub(super) fn key(value: Value) -> Result<Key, Cip8Error> {
    let key = CoseKey::from_cbor_value(value).map_err(|_| Cip8Error::Malformed(CosePart::Key))?;
    if key.kty != KeyType::Assigned(iana::KeyType::OKP) {
        return Err(Cip8Error::KeyType);
    }
    if !is_eddsa(key.alg.as_ref()) {
        return Err(Cip8Error::Algorithm(CosePart::Key));
    }
    // Some libraries mark a key for verifying. Any other operation contradicts its use.
    let verifying = KeyOperation::Assigned(iana::KeyOperation::Verify);
    if key.key_ops.iter().any(|operation| *operation != verifying) {
        return Err(Cip8Error::KeyOperations);
    }
    if !key.base_iv.is_empty() {
        return Err(Cip8Error::UnknownParameter(CosePart::Key));
    }
    let (mut curve, mut public_key) = (None, None);
    for (name, value) in key.params {
        if name == label(iana::OkpKeyParameter::Crv) {
            curve = Some(value);
        } else if name == label(iana::OkpKeyParameter::X) {
            public_key = into_bytes(value).and_then(|bytes| bytes.try_into().ok());
        } else if name == label(iana::OkpKeyParameter::D) {
            return Err(Cip8Error::PrivatePart);
        } else {
            return Err(Cip8Error::UnknownParameter(CosePart::Key));
        }
    }
    if curve != Some(Value::from(iana::EllipticCurve::Ed25519.to_i64())) {
        return Err(Cip8Error::Curve);
    }
    Ok(Key { public_key: public_key.ok_or(Cip8Error::PublicKey)?, key_id: some_bytes(key.key_id) })
}

impl Key {
    /// Checks the two key ids that the signature does not cover: the one in the COSE_Key and the one in the unprotected
    /// header. Both must equal the key id in the protected header, if there is one (CIP-30). Otherwise they must be the
    /// public key, its hash or the address.
    pub(super) fn matches_key_ids(&self, sign1: &Sign1) -> Result<(), Cip8Error> {
        let names_key = |id: &[u8]| {
            id == self.public_key
                || id == KeyHash::of_public_key(&self.public_key).as_bytes()
                || id == sign1.address.to_bytes()
        };
        let matches = |unsigned: &[u8]| match sign1.key_id.as_deref() {
            Some(signed) => unsigned == signed,
            None => names_key(unsigned),
        };
        let unsigned = [self.key_id.as_deref(), sign1.unsigned_key_id.as_deref()];
        if unsigned.into_iter().flatten().all(matches) { Ok(()) } else { Err(Cip8Error::KeyId) }
    }
}

/// CBOR tag of a COSE_Sign1 (RFC 9052, section 2).
const SIGN1_TAG: u64 = 18;

pub(super) fn sign1(value: Value) -> Result<Sign1, Cip8Error> {
    let value = match value {
        Value::Tag(SIGN1_TAG, message) => *message,
        untagged => untagged,
    };
    let message = CoseSign1::from_cbor_value(value).map_err(|_| Cip8Error::Malformed(CosePart::Signature))?;
    let protected_bytes = message.protected.original_data.as_deref().unwrap_or_default();
    cbor::item(protected_bytes, CosePart::Signature)?;
    let protected_headers = protected_bytes.to_vec();

    let signature = message.signature.as_slice().try_into().map_err(|_| Cip8Error::SignatureLength)?;
    let to_be_signed = message.tbs_data(&[]);
    let payload = message.payload.ok_or(Cip8Error::Detached)?;
    let mut unprotected = message.unprotected;
    let unsigned_key_id = some_bytes(std::mem::take(&mut unprotected.key_id));
    let hashed = hashed(unprotected)?;

    let mut protected = message.protected.header;
    if !is_eddsa(protected.alg.take().as_ref()) {
        return Err(Cip8Error::Algorithm(CosePart::Signature));
    }
    let key_id = some_bytes(std::mem::take(&mut protected.key_id));
    let address = take_text(&mut protected, ADDRESS).ok_or(Cip8Error::NoAddress)?;
    if !protected.is_empty() {
        return Err(Cip8Error::UnknownParameter(CosePart::Signature));
    }
    let address = into_bytes(address).ok_or(Cip8Error::NoAddress)?;
    let address = Address::from_bytes(&address).map_err(Cip8Error::Address)?;
    Ok(Sign1 { address, key_id, unsigned_key_id, hashed, protected_headers, payload, to_be_signed, signature })
}

/// Returns the unprotected header `hashed`, or `None` if it is absent. CIP-8 requires it, but some wallets omit it if
/// nothing was hashed. CIP-8 also requires a header `version`, which libraries omit; if present, it must be 1.
fn hashed(mut unprotected: Header) -> Result<Option<bool>, Cip8Error> {
    if take_text(&mut unprotected, VERSION).is_some_and(|version| version != Value::from(1)) {
        return Err(Cip8Error::Version);
    }
    let hashed = match take_text(&mut unprotected, HASHED) {
        None => None,
        Some(Value::Bool(hashed)) => Some(hashed),
        Some(_) => return Err(Cip8Error::Hashed),
    };
    if unprotected.is_empty() { Ok(hashed) } else { Err(Cip8Error::UnknownParameter(CosePart::Signature)) }
}

/// Removes the header with the label `name` and returns its value, or `None` if it is absent. `coset` has already
/// rejected repeated labels.
fn take_text(header: &mut Header, name: &str) -> Option<Value> {
    let position = header.rest.iter().position(|(label, _)| matches!(label, Label::Text(text) if text == name))?;
    Some(header.rest.swap_remove(position).1)
}

fn is_eddsa(algorithm: Option<&Algorithm>) -> bool {
    algorithm == Some(&Algorithm::Assigned(iana::Algorithm::EdDSA))
}

/// Converts `coset`'s empty bytes, which stand for an absent key id, to `None`.
fn some_bytes(bytes: Vec<u8>) -> Option<Vec<u8>> {
    if bytes.is_empty() { None } else { Some(bytes) }
}
