//! What travels: x402 v2's objects, and the headers that carry them as base64 of JSON.
//!
//! Parsing is bounded and strict about types. Fields that the specification does not name are ignored where it allows
//! extension (`PaymentPayload`, `ResourceInfo`, the scheme's `payload`), and refused inside `PaymentRequirements`:
//! what a buyer accepted must be exactly what was offered, so a field that was never offered is a difference.
//!
//! Sources: x402 specification v2, sections 5.1-5.3; its HTTP transport; the scheme document `exact` on Cardano.

mod amount;
mod asset;
mod confirmation;
mod header;
mod network;
mod object;
mod payload;
mod required;
mod settlement;

pub use amount::{Amount, AmountError};
pub use asset::{Asset, AssetError};
pub use confirmation::{ConfirmationPolicy, ConfirmationPolicyError};
pub use header::{
    HeaderError, MAX_HEADER_BYTES, PAYMENT_REQUIRED, PAYMENT_RESPONSE, PAYMENT_SIGNATURE, decode_header, encode_header,
};
pub use network::{Network, NetworkError};
pub use object::Object;
pub use payload::{ExactPayload, PaymentPayload};
pub use required::{PaymentRequired, PaymentRequirements, ResourceInfo};
pub use settlement::{SettlementExtra, SettlementResponse, SettlementStatus};

/// The protocol version that these types are of.
pub const X402_VERSION: u8 = 2;
/// The one scheme of this crate.
pub const SCHEME_EXACT: &str = "exact";

/// `x402Version`: the number 2, and nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version2;

impl serde::Serialize for Version2 {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(X402_VERSION)
    }
}

impl<'de> serde::Deserialize<'de> for Version2 {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            2 => Ok(Self),
            _ => Err(serde::de::Error::custom("x402Version must be 2")),
        }
    }
}
