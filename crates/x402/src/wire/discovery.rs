//! Answers that describe a service before any payment: `GET /supported`, `GET /discovery/resources` and `GET
//! /discovery/search`.
//!
//! Sources: x402 specification v2, sections 7.3 and 8; `specs/extensions/bazaar.md`. `lastUpdated` is a number in the
//! specification and an ISO 8601 string in every published client, one of which rejects numbers. Here it is a string.

use serde::Serialize;
use serde_json::{Map, Value};

use super::{DefaultExtra, Extensions, Network, PaymentRequirements, ResourceInfo, SCHEME_EXACT, Version2};

/// Default number of resources on a page.
pub const DEFAULT_LIMIT: u32 = 20;
/// Maximum number of resources on a page.
pub const MAX_LIMIT: u32 = 100;

/// Answer to `GET /supported`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Supported {
    /// Supported ways to pay.
    pub kinds: Vec<SupportedKind>,
    /// Names of the supported extensions.
    pub extensions: Vec<&'static str>,
    /// Signers that act for clients, by network. Empty on Cardano, where clients sign.
    pub signers: Map<String, Value>,
}

/// A way to pay.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SupportedKind {
    /// Protocol version.
    #[cfg_attr(feature = "schema", schemars(with = "u8"))]
    pub x402_version: Version2,
    /// Scheme.
    pub scheme: &'static str,
    /// CAIP-2 network id.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub network: Network,
    /// Details of the scheme.
    pub extra: SupportedExtra,
}

/// The transfer methods of the scheme `exact` on Cardano.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SupportedExtra {
    /// Names of the transfer methods.
    pub asset_transfer_methods: Vec<&'static str>,
}

impl Supported {
    /// Creates the answer for a network, transfer methods and extensions.
    #[must_use]
    pub fn new(network: Network, asset_transfer_methods: Vec<&'static str>, extensions: Vec<&'static str>) -> Self {
        let kind = SupportedKind {
            x402_version: Version2,
            scheme: SCHEME_EXACT,
            network,
            extra: SupportedExtra { asset_transfer_methods },
        };
        Self { kinds: vec![kind], extensions, signers: Map::new() }
    }
}

/// A page of `GET /discovery/resources`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DiscoveryPage {
    /// Protocol version.
    #[cfg_attr(feature = "schema", schemars(with = "u8"))]
    pub x402_version: Version2,
    /// Resources, newest first.
    pub items: Vec<DiscoveredResource>,
    /// Position of the page.
    pub pagination: Pagination,
}

/// Position of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pagination {
    /// Maximum number of resources on the page.
    pub limit: u32,
    /// Number of resources before the page.
    pub offset: u32,
    /// Total number of matching resources.
    pub total: u64,
}

/// A page of `GET /discovery/search`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SearchPage {
    /// Protocol version.
    #[cfg_attr(feature = "schema", schemars(with = "u8"))]
    pub x402_version: Version2,
    /// Resources, best match first.
    pub resources: Vec<DiscoveredResource>,
    /// `true` if more resources match.
    pub partial_results: bool,
    /// How to request the next page.
    pub pagination: SearchPagination,
}

/// How to request the next page of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchPagination {
    /// Number of resources on this page.
    pub limit: usize,
    /// Cursor of the next page; `null` on the last one.
    #[cfg_attr(feature = "schema", schemars(schema_with = "text_or_null"))]
    pub cursor: Option<String>,
}

/// Returns the schema of a nullable string. Other optional fields are absent rather than null.
#[cfg(feature = "schema")]
fn text_or_null(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "oneOf": [{ "type": "string" }, { "type": "null" }] })
}

/// A resource that can be paid for.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DiscoveredResource {
    /// URL of the resource.
    #[cfg_attr(feature = "schema", schemars(url))]
    pub resource: String,
    /// Always `http`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Protocol version.
    #[cfg_attr(feature = "schema", schemars(with = "u8"))]
    pub x402_version: Version2,
    /// Ways to pay, without the parts that are specific to a buyer or a time. Request the resource itself for those.
    pub accepts: Vec<PaymentRequirements<DefaultExtra>>,
    /// Time of the last change, ISO 8601 in UTC.
    pub last_updated: String,
    /// Description from the resource's own 402.
    #[serde(flatten)]
    pub about: About,
    /// Extensions, as in the resource's own 402.
    #[cfg_attr(feature = "schema", schemars(with = "Map<String, Value>"))]
    pub extensions: Extensions,
}

/// Description of a resource, without its URL.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct About {
    /// Description for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Media type of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Name of the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    /// Topics of the service.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

impl DiscoveredResource {
    /// Creates the entry of an HTTP resource from its 402.
    #[must_use]
    pub fn http(
        resource: ResourceInfo,
        accepts: Vec<PaymentRequirements<DefaultExtra>>,
        last_updated: String,
        extensions: Extensions,
    ) -> Self {
        let ResourceInfo { url, description, mime_type, service_name, tags } = resource;
        let about = About { description, mime_type, service_name, tags };
        Self { resource: url, kind: "http", x402_version: Version2, accepts, last_updated, about, extensions }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_supported_answer_has_the_specifications_form() {
        let supported = Supported::new(Network::Preprod, vec!["default", "escrow"], vec!["bazaar"]);
        assert_eq!(
            json!(supported),
            json!({
                "kinds": [{
                    "x402Version": 2,
                    "scheme": "exact",
                    "network": "cardano:preprod",
                    "extra": { "assetTransferMethods": ["default", "escrow"] },
                }],
                "extensions": ["bazaar"],
                "signers": {},
            })
        );
    }
}
