//! `PaymentPayload`: a buyer's payment.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Accepted, HeaderError, ResourceInfo, Version2, decode_header,
    object::{object, optional},
};

/// The payment of a request, carried by the `PAYMENT-SIGNATURE` header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentPayload {
    /// Protocol version.
    pub x402_version: Version2,
    /// The purchased resource, echoed from the 402.
    #[serde(default, deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceInfo>,
    /// The chosen entry of `accepts`, complete.
    pub accepted: Accepted,
    /// Payload of the scheme.
    #[serde(deserialize_with = "object")]
    pub payload: ExactPayload,
    /// Extensions, echoed from the 402.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Map<String, Value>>,
}

impl PaymentPayload {
    /// Parses the value of a `PAYMENT-SIGNATURE` header. The transaction in it is not decoded yet.
    ///
    /// # Errors
    /// See [`HeaderError`].
    pub fn from_header(value: &str) -> Result<Self, HeaderError> {
        decode_header(value)
    }
}

/// The payload of the scheme `exact` on Cardano.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExactPayload {
    /// Base64 of the signed transaction's CBOR. The transaction must not be submitted by the buyer.
    pub transaction: String,
    /// An unspent output that the transaction spends, as `txHash#index`. It identifies the payer and makes the payment
    /// unique.
    pub nonce: String,
}
