//! The JSON objects of x402 v2, and the headers that carry them as base64.
//!
//! Parsing is bounded and strict about types. Unknown fields are ignored where the specification allows extensions
//! (`PaymentPayload`, `ResourceInfo`, the scheme's `payload`) and rejected in `PaymentRequirements`, because an
//! accepted entry must equal the offered one exactly.
//!
//! Sources: x402 specification v2, sections 5.1-5.3; its HTTP transport; the scheme document `exact` on Cardano.

/// Implements serde for a type that is a string in JSON, by means of the type's `Display` and `FromStr`.
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
mod confirmation;
pub mod discovery;
mod extensions;
mod extra;
mod header;
mod object;
pub mod offer_receipt;
mod payload;
pub mod payment_identifier;
#[doc(hidden)]
pub mod request_binding;
mod requirements;
mod settlement;
pub mod sign_in_with_x;

pub use accepted::{Accepted, InvalidAccepted};
pub use amount::{Amount, AmountError};
pub use asset::{Asset, AssetError};
pub use cardano::network::{Network, NetworkError};
pub use confirmation::{ConfirmationPolicy, ConfirmationPolicyError};
pub use extensions::Extensions;
pub use extra::{DefaultExtra, Extra};
pub use header::{
    HeaderError, MAX_HEADER_BYTES, PAYMENT_REQUIRED, PAYMENT_RESPONSE, PAYMENT_SIGNATURE, decode_header, encode_header,
};
pub use payload::{ExactPayload, PaymentPayload};
pub use requirements::{PaymentRequired, PaymentRequirements, ResourceInfo};
pub use settlement::{SettlementExtra, SettlementResponse, SettlementStatus};

pub(crate) use extensions::{Declared, json_text};
pub(crate) use extra::not_sponsored;
pub(crate) use object::{list, object, present, present_object};

/// Version of the x402 protocol.
pub const X402_VERSION: u8 = 2;
/// Name of the payment scheme that this crate implements.
pub const SCHEME_EXACT: &str = "exact";
/// Number of seconds for which the terms in a 402 can be paid. The paying transaction must not be valid for longer.
pub const MAX_TIMEOUT_SECONDS: u32 = 300;

/// The field `x402Version`, which is always the number 2.
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
