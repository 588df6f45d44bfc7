//! What a service says of itself before anyone pays: `GET /supported`, `GET /discovery/resources` and
//! `GET /discovery/search`.
//!
//! Sources: x402 specification v2, sections 7.3 and 8; `specs/extensions/bazaar.md`. `lastUpdated` is a number in the
//! specification and an ISO 8601 text in every published client (one of them refuses a number): here it is the text.

use serde::Serialize;
use serde_json::{Map, Value};

use super::{DefaultExtra, Network, PaymentRequirements, ResourceInfo, SCHEME_EXACT, Version2};

/// Resources on a page where the client does not say.
pub const DEFAULT_LIMIT: u32 = 20;
/// The most resources on a page.
pub const MAX_LIMIT: u32 = 100;

/// The answer to `GET /supported`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Supported {
    /// What may be paid by.
    pub kinds: Vec<SupportedKind>,
    /// The extensions that are understood, by name.
    pub extensions: Vec<&'static str>,
    /// Who signs transactions on the clients' behalf, by network: on Cardano the clients sign, so it is empty.
    pub signers: Map<String, Value>,
}

/// One way to pay.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SupportedKind {
    /// The protocol's version.
    #[cfg_attr(feature = "schema", schemars(with = "u8"))]
    pub x402_version: Version2,
    /// The scheme.
    pub scheme: &'static str,
    /// The CAIP-2 network id.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub network: Network,
    /// What the scheme adds.
    pub extra: SupportedExtra,
}

/// The transfer methods of the scheme `exact` on Cardano.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SupportedExtra {
    /// By name.
    pub asset_transfer_methods: Vec<&'static str>,
}

impl Supported {
    /// On this network by these transfer methods, with these extensions.
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
    /// The protocol's version.
    #[cfg_attr(feature = "schema", schemars(with = "u8"))]
    pub x402_version: Version2,
    /// The resources, newest first.
    pub items: Vec<DiscoveredResource>,
    /// Where in all of them this is.
    pub pagination: Pagination,
}

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pagination {
    /// At most this many are on it.
    pub limit: u32,
    /// So many come before it.
    pub offset: u32,
    /// So many match in all.
    pub total: u64,
}

/// A page of `GET /discovery/search`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SearchPage {
    /// The protocol's version.
    #[cfg_attr(feature = "schema", schemars(with = "u8"))]
    pub x402_version: Version2,
    /// The resources, the best first.
    pub resources: Vec<DiscoveredResource>,
    /// Whether more match.
    pub partial_results: bool,
    /// How to go on.
    pub pagination: SearchPagination,
}

/// How to go on after a page of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchPagination {
    /// So many are on this page.
    pub limit: usize,
    /// What asks for the next one; `None` where this is the last.
    #[cfg_attr(feature = "schema", schemars(schema_with = "text_or_null"))]
    pub cursor: Option<String>,
}

/// What is there and null: other fields that may be missing are never null.
#[cfg(feature = "schema")]
fn text_or_null(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "oneOf": [{ "type": "string" }, { "type": "null" }] })
}

/// A resource that can be paid for.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DiscoveredResource {
    /// Its address.
    #[cfg_attr(feature = "schema", schemars(url))]
    pub resource: String,
    /// `http`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The protocol's version.
    #[cfg_attr(feature = "schema", schemars(with = "u8"))]
    pub x402_version: Version2,
    /// The ways to pay. What is made for one buyer at one time is not in them: the resource itself is asked for that.
    pub accepts: Vec<PaymentRequirements<DefaultExtra>>,
    /// ISO 8601, UTC.
    pub last_updated: String,
    /// What the resource's own 402 says of it.
    #[serde(flatten)]
    pub about: About,
    /// As in the resource's own 402.
    pub extensions: Map<String, Value>,
}

/// What a resource is, without its address.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct About {
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Who offers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    /// What the service is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

impl DiscoveredResource {
    /// An HTTP resource as its 402 describes it.
    #[must_use]
    pub fn http(
        resource: ResourceInfo,
        accepts: Vec<PaymentRequirements<DefaultExtra>>,
        last_updated: String,
        extensions: Map<String, Value>,
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
