//! CIP-8 signatures as different wallets encode them.

use cardano::{hash::blake2b, keys::SigningKey};
use coset::{
    CborSerializable, CoseKeyBuilder, CoseSign1Builder, HeaderBuilder, TaggedCborSerializable, cbor::Value, iana,
    iana::EnumI64,
};
use market::proof::digest;

use crate::{now_ms, proof::header};

/// Encoding of a CIP-8 signature. Each variant is used by some wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Encodes the signature with COSE_Sign1's tag, 18.
    Tagged,
    /// Puts the public key into the signature's key id.
    PublicKeyId,
    /// Puts the address into the key ids of signature and key.
    AddressId,
    /// Signs a hash of the payload instead of the payload, as hardware wallets do.
    Hashed,
}

impl Layout {
    pub(super) const ALL: [Self; 4] = [Self::Tagged, Self::PublicKeyId, Self::AddressId, Self::Hashed];
}

/// Builds an `X-Service-Proof` header for a purchase of this listing, with the signature encoded in this layout.
///
/// # Errors
/// Never returns an error in practice, because each part can be encoded.
pub(super) fn proof(key: &SigningKey, listing: &str, layout: Layout) -> coset::Result<String> {
    let (address, timestamp) = (key.address(), now_ms());
    let digest = digest(&["service:unlock:v1", listing, &address.to_string(), &timestamp.to_string()]);
    let mut protected = HeaderBuilder::new()
        .algorithm(iana::Algorithm::EdDSA)
        .text_value("address".into(), Value::Bytes(address.to_bytes()));
    let mut public = CoseKeyBuilder::new_okp_key()
        .algorithm(iana::Algorithm::EdDSA)
        .param(iana::OkpKeyParameter::Crv.to_i64(), iana::EllipticCurve::Ed25519.to_i64().into())
        .param(iana::OkpKeyParameter::X.to_i64(), Value::Bytes(key.public_key().to_vec()));
    match layout {
        Layout::PublicKeyId => protected = protected.key_id(key.public_key().to_vec()),
        Layout::AddressId => {
            protected = protected.key_id(address.to_bytes());
            public = public.key_id(address.to_bytes());
        }
        Layout::Tagged | Layout::Hashed => {}
    }
    let hashed = layout == Layout::Hashed;
    let payload = if hashed { blake2b::<28>(digest.as_bytes()).to_vec() } else { digest.as_bytes().to_vec() };
    let message = CoseSign1Builder::new()
        .protected(protected.build())
        .unprotected(HeaderBuilder::new().text_value("hashed".into(), Value::Bool(hashed)).build())
        .payload(payload)
        .create_signature(&[], |signed| key.sign(signed).to_vec())
        .build();
    let signature = if layout == Layout::Tagged { message.to_tagged_vec()? } else { message.to_vec()? };
    Ok(header(&address, timestamp, &hex::encode(public.build().to_vec()?), &hex::encode(signature)))
}

#[cfg(test)]
mod tests {
    use cardano::keys::Native;
    use futures_lite::future::block_on;
    use market::proof::Proof;

    use super::*;

    #[test]
    fn every_layout_is_a_valid_signature() {
        let key = SigningKey::from_seed(&[5; 32]).unwrap();
        for layout in Layout::ALL {
            let made = Proof::from_header(&proof(&key, "lst_A", layout).unwrap()).unwrap();
            assert_eq!(block_on(made.check(&Native, &made.unlock_digest("lst_A"), now_ms())), Ok(()), "{layout:?}");
        }
    }
}
