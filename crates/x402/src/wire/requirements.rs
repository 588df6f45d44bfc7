//! `PaymentRequired`: what a resource costs and the ways to pay.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Amount, Asset, Extra, Network, Version2,
    object::{list, object},
};

/// The answer to an unpaid request, carried by the `PAYMENT-REQUIRED` header of a 402.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentRequired {
    /// The protocol's version.
    pub x402_version: Version2,
    /// Why payment is required: that there was none, or the code of why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What is paid for.
    #[serde(deserialize_with = "object")]
    pub resource: ResourceInfo,
    /// The ways to pay; a buyer chooses one.
    #[serde(deserialize_with = "list")]
    pub accepts: Vec<PaymentRequirements>,
    /// Optional functionality beyond payment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Map<String, Value>>,
}

impl PaymentRequired {
    /// The answer to a request without a payment, or with one that was refused with this code.
    #[must_use]
    pub fn new(resource: ResourceInfo, accepts: Vec<PaymentRequirements>, refused: Option<&str>) -> Self {
        let error = refused.unwrap_or("PAYMENT-SIGNATURE header is required").to_owned();
        Self { x402_version: Version2, error: Some(error), resource, accepts, extensions: None }
    }
}

/// A protected resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceInfo {
    /// Where it is.
    pub url: String,
    /// What it is, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Who offers it: at most 32 printable ASCII characters (extension `bazaar`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    /// What the service is about: at most 5, each of at most 32 printable ASCII characters (extension `bazaar`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// One way to pay. Read from JSON it is a closed object, `extra` included; the network's alias is that network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "PaymentRequirements", bound = "E: Default + Serialize")
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PaymentRequirements<E = Extra> {
    /// `exact` in this crate.
    pub scheme: String,
    /// The network to pay on.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub network: Network,
    /// How much, in the asset's smallest units.
    #[cfg_attr(feature = "schema", schemars(with = "String", regex(pattern = "^[0-9]+$")))]
    pub amount: Amount,
    /// Of what.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub asset: Asset,
    /// The address to pay to (bech32).
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^addr_test1[a-z0-9]+$")))]
    pub pay_to: String,
    /// How long a payment may take. Bounds the transaction's time to live.
    pub max_timeout_seconds: u32,
    /// What the transfer method adds.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Map<String, Value>"))]
    pub extra: E,
}
