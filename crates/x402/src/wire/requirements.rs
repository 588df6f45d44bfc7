//! The object `PaymentRequired` of a 402: the price of a resource and the ways to pay.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Amount, Asset, Extra, Network, Version2,
    object::{list, object},
};

/// Answer to an unpaid request, carried by the `PAYMENT-REQUIRED` header of a 402.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentRequired<E = Map<String, Value>> {
    /// Protocol version.
    pub x402_version: Version2,
    /// Reason why payment is required: a missing payment, or the code of a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Resource to be paid for.
    #[serde(deserialize_with = "object")]
    pub resource: ResourceInfo,
    /// Ways to pay, of which the buyer chooses one.
    #[serde(deserialize_with = "list")]
    pub accepts: Vec<PaymentRequirements>,
    /// Extensions of the protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<E>,
}

impl PaymentRequired {
    /// Creates the answer to a request. `refused` is the code of the refused payment, or `None` if the request carries
    /// no payment.
    #[must_use]
    pub fn new(resource: ResourceInfo, accepts: Vec<PaymentRequirements>, refused: Option<&str>) -> Self {
        let error = refused.unwrap_or("PAYMENT-SIGNATURE header is required").to_owned();
        Self { x402_version: Version2, error: Some(error), resource, accepts, extensions: None }
    }

    /// Returns this answer with other extensions.
    #[must_use]
    pub fn with_extensions<E>(self, extensions: E) -> PaymentRequired<E> {
        let Self { x402_version, error, resource, accepts, extensions: _ } = self;
        PaymentRequired { x402_version, error, resource, accepts, extensions: Some(extensions) }
    }
}

/// A resource that must be paid for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceInfo {
    /// URL of the resource.
    pub url: String,
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Media type of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Name of the service: at most 32 printable ASCII characters (extension `bazaar`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    /// Topics of the service: at most 5, each of at most 32 printable ASCII characters (extension `bazaar`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// A way to pay. Unknown fields are rejected, also in `extra`. An alias of the network's name is accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "PaymentRequirements", bound = "E: Default + Serialize")
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PaymentRequirements<E = Extra> {
    /// Scheme, always `exact` in this crate.
    pub scheme: String,
    /// Network to pay on.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub network: Network,
    /// Amount in the asset's smallest units.
    #[cfg_attr(feature = "schema", schemars(with = "String", regex(pattern = "^[0-9]+$")))]
    pub amount: Amount,
    /// Asset to pay with.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub asset: Asset,
    /// Address to pay to, in bech32.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^addr_test1[a-z0-9]+$")))]
    pub pay_to: String,
    /// Maximum number of seconds from now until the end of the transaction's validity.
    pub max_timeout_seconds: u32,
    /// Details of the transfer method.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Map<String, Value>"))]
    pub extra: E,
}
