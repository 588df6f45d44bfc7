//! What travels: x402 v2's objects, and the headers that carry them as base64 of JSON.
//!
//! Parsing is bounded and strict about types. Fields that the specification does not name are ignored where it allows
//! extension (`PaymentPayload`, `ResourceInfo`, the scheme's `payload`), and refused inside `PaymentRequirements`. What
//! a buyer accepted must be exactly what was offered, so a field that was never offered is a difference.
//!
//! Sources: x402 specification v2, sections 5.1-5.3; its HTTP transport; the scheme document `exact` on Cardano.

/// JSON of a type that is a text: what it displays, and what it is parsed from.
macro_rules! as_text {
    ($type:ident) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

mod accepted;
mod amount;
mod asset;
pub mod bazaar;
pub(crate) mod blanks;
mod confirmation;
pub mod discovery;
mod extra;
mod header;
mod object;
pub mod offer_receipt;
mod payload;
pub mod payment_identifier;
pub mod request_binding;
mod requirements;
mod settlement;

pub use accepted::{Accepted, InvalidAccepted};
pub use amount::{Amount, AmountError};
pub use asset::{Asset, AssetError};
pub use cardano::network::{Network, NetworkError};
pub use confirmation::{ConfirmationPolicy, ConfirmationPolicyError};
pub use extra::{DefaultExtra, Extra};
pub use header::{
    HeaderError, HeaderTemplate, MAX_HEADER_BYTES, PAYMENT_REQUIRED, PAYMENT_RESPONSE, PAYMENT_SIGNATURE,
    decode_header, encode_header,
};
pub use payload::{ExactPayload, PaymentPayload};
pub use requirements::{PaymentRequired, PaymentRequirements, ResourceInfo};
pub use settlement::{SettlementExtra, SettlementResponse, SettlementStatus};

pub(crate) use extra::not_sponsored;
pub(crate) use object::{list, object, present, present_object};

/// The protocol version that these types are of.
pub const X402_VERSION: u8 = 2;
/// The one scheme of this crate.
pub const SCHEME_EXACT: &str = "exact";
/// How long a 402's terms hold and a transaction may stay valid, seconds.
pub const MAX_TIMEOUT_SECONDS: u32 = 300;

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
