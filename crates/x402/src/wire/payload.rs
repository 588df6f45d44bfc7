//! `PaymentPayload`: a payment, as the buyer sends it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Accepted, HeaderError, ResourceInfo, Version2, decode_header,
    object::{object, optional},
};

/// A paid request, carried by the `PAYMENT-SIGNATURE` header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentPayload {
    /// The protocol's version.
    pub x402_version: Version2,
    /// What is paid for, echoed.
    #[serde(default, deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceInfo>,
    /// The chosen entry of `accepts`, whole.
    pub accepted: Accepted,
    /// What the scheme asks for.
    #[serde(deserialize_with = "object")]
    pub payload: ExactPayload,
    /// Optional functionality, echoed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Map<String, Value>>,
}

impl PaymentPayload {
    /// Reads the value of a `PAYMENT-SIGNATURE` header.
    ///
    /// # Errors
    /// Whatever keeps it from being a payment's payload. The transaction in it is not read yet.
    pub fn from_header(value: &str) -> Result<Self, HeaderError> {
        decode_header(value)
    }
}

/// The `exact` scheme's payload on Cardano.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExactPayload {
    /// The signed transaction, not broadcast: base64 of its CBOR.
    pub transaction: String,
    /// `txHash#index` of an unspent output that the transaction spends: proves who pays, and that it was not paid before.
    pub nonce: String,
}
