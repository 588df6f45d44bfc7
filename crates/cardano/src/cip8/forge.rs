//! Builds valid and invalid signed messages by hand, independently of the code under test.

use ciborium::Value;

use crate::{address::Address, hash::blake2b, keys::SigningKey};

/// A payload like those that wallets sign for this service: a digest of 32 bytes.
pub(super) const DIGEST: [u8; 32] = [0xab; 32];

pub(super) fn payment_key() -> SigningKey {
    SigningKey::from_seed(&[1; 32]).unwrap()
}

pub(super) fn stake_key() -> SigningKey {
    SigningKey::from_seed(&[2; 32]).unwrap()
}

pub(super) fn owner() -> Address {
    Address::base(payment_key().key_hash(), crate::address::Credential::Key(stake_key().key_hash()))
}

/// The parts of a signed message, each of which a test can change before the message is signed and encoded.
#[derive(Clone)]
pub(super) struct Forge {
    pub signer: SigningKey,
    pub key: Vec<(Value, Value)>,
    pub protected: Vec<(Value, Value)>,
    /// Bytes to use instead of the encoded map of protected headers; `None` to encode the map.
    pub protected_bytes: Option<Vec<u8>>,
    pub unprotected: Vec<(Value, Value)>,
    pub payload: Value,
    /// Payload over which the signature is made, if it differs from the payload in the message.
    pub signed_payload: Option<Vec<u8>>,
    pub aad: Vec<u8>,
    pub context: &'static str,
    pub signature: Option<Value>,
}

#[derive(Debug)]
pub(super) struct Forged {
    pub key: Vec<u8>,
    pub sign1: Vec<u8>,
}

impl Forge {
    /// Creates a valid message, in which [`owner`]'s wallet signs [`DIGEST`].
    pub(super) fn valid() -> Self {
        Self::for_address(payment_key(), &owner().to_bytes())
    }

    /// Creates a message that `signer` signs and whose header contains `address`. These bytes need not be the signer's
    /// address, or an address at all.
    pub(super) fn for_address(signer: SigningKey, address: &[u8]) -> Self {
        Self {
            key: vec![(int(1), int(1)), (int(3), int(-8)), (int(-1), int(6)), (int(-2), bytes(&signer.public_key()))],
            protected: vec![(int(1), int(-8)), (text("address"), bytes(address))],
            protected_bytes: None,
            unprotected: vec![(text("hashed"), Value::Bool(false))],
            payload: bytes(&DIGEST),
            signed_payload: None,
            aad: vec![],
            context: "Signature1",
            signature: None,
            signer,
        }
    }

    /// Creates a message whose payload is a hash of the text, as hardware wallets do with long messages.
    pub(super) fn hashed() -> Self {
        let mut forge = Self::valid();
        forge.unprotected = vec![(text("hashed"), Value::Bool(true))];
        forge.payload = bytes(&blake2b::<28>(&DIGEST));
        forge
    }

    /// Applies a change to the parts. The changed message is properly signed.
    pub(super) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(super) fn build(self) -> Forged {
        let protected = self.protected_bytes.unwrap_or_else(|| encode(&Value::Map(self.protected)));
        let signed_payload = self.signed_payload.or_else(|| self.payload.as_bytes().cloned()).unwrap_or_default();
        let to_be_signed = encode(&Value::Array(vec![
            text(self.context),
            Value::Bytes(protected.clone()),
            Value::Bytes(self.aad),
            Value::Bytes(signed_payload),
        ]));
        let signature = self.signature.unwrap_or_else(|| bytes(&self.signer.sign(&to_be_signed)));
        Forged {
            key: encode(&Value::Map(self.key)),
            sign1: encode(&Value::Array(vec![
                Value::Bytes(protected),
                Value::Map(self.unprotected),
                self.payload,
                signature,
            ])),
        }
    }
}

pub(super) fn int(number: i64) -> Value {
    Value::from(number)
}

pub(super) fn text(text: &str) -> Value {
    Value::from(text)
}

pub(super) fn bytes(bytes: &[u8]) -> Value {
    Value::Bytes(bytes.to_vec())
}

pub(super) fn encode(value: &Value) -> Vec<u8> {
    let mut out = vec![];
    ciborium::into_writer(value, &mut out).unwrap();
    out
}
