//! `GET /supported`, `GET /discovery/resources` and `GET /discovery/search`, for x402 clients and directories.

use std::{borrow::Cow, ops::RangeInclusive};

use api_types::{Error, ErrorCode};
use edge::{
    answer::{ErrorAnswer, Fault},
    serve::Response,
};
use market::{
    DeliveryMode,
    catalogue::discovery::{self, ForSale, PaymentFilter, Question, SalesPage, SearchResult},
};
#[cfg(test)]
use serde_json::json;
use x402_cardano::{
    request_commitment,
    wire::{
        Network, SCHEME_EXACT, Version2, bazaar,
        discovery::{
            DEFAULT_LIMIT, DiscoveredResource, DiscoveryPage, MAX_LIMIT, Pagination, SearchPage, SearchPagination,
            Supported,
        },
        offer_receipt, payment_identifier,
    },
};

#[cfg(test)]
use crate::openapi::operations::Operation;
use crate::{
    app::App,
    error::ApiError,
    limits::{AnswerMemory, Counted},
    methods::Methods,
    paywall,
    route::{Limit, Route, route},
};

/// Maximum offset of a page in the list of resources.
const MAX_OFFSET: u32 = 1_000_000;
/// Maximum offset in search results.
const MAX_CURSOR: u32 = 1_000;
/// Names of the x402 extensions in the 402 answer of each resource.
const EXTENSIONS: [&str; 2] = [bazaar::NAME, payment_identifier::NAME];

pub const ROUTES: &[Route] = &[
    route! {
        GET "/supported", Limit::Free => supported();
        docs |of| of
            .names("supported", "x402", "List the supported payment methods and extensions")
            .answers::<Supported>(200, "The answer that section 7.3 of the x402 specification describes.")
    },
    route! {
        GET "/discovery/resources", Limit::Client(Counted::SEARCH) => resources();
        docs |of| filtered(of.names("discoveryResources", "x402", "List the paid resources, for x402 directories"))
            .query("offset", "Number of resources to skip.", json!({ "type": "integer", "minimum": 0, "maximum": MAX_OFFSET, "default": 0 }))
            .answers::<DiscoveryPage>(200, "A page of resources, newest first.")
            .fails(&[400])
    },
    route! {
        GET "/discovery/search", Limit::Client(Counted::SEARCH) => search();
        docs |of| filtered(of.names("discoverySearch", "x402", "Search the paid resources"))
            .parameter("query", "query", true, "The search, in natural language.", json!({ "type": "string", "maxLength": 200 }))
            .query("cursor", "Cursor from the previous page.", json!({ "type": "string" }))
            .answers::<SearchPage>(200, "A page of resources, best match first.")
            .fails(&[400])
    },
];

/// Describes in an OpenAPI operation the query filters that `/discovery/resources` and `/discovery/search` share.
#[cfg(test)]
fn filtered(operation: Operation<'_>) -> Operation<'_> {
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT });
    operation
        .query("type", "Type of resource. Only `http` exists.", json!({ "type": "string" }))
        .query("payTo", "Restricts the result to resources that are paid to this address.", json!({ "type": "string" }))
        .query("scheme", "Payment scheme. Only `exact` is supported.", json!({ "type": "string" }))
        .query("network", "Network of the payment. Only `cardano:preprod` is supported.", json!({ "type": "string" }))
        .query("extensions", "Restricts the result to resources with this x402 extension.", json!({ "type": "string" }))
        .query("limit", "Maximum number of results.", limit)
}

fn cacheable(value: &impl serde::Serialize) -> Result<Response, ApiError> {
    let text = serde_json::to_string(value).map_err(Fault::inconsistent("a document"))?;
    Ok(Response::json(text).with_header("cache-control", "public, max-age=60"))
}

/// Lists the payment methods and extensions.
async fn supported(app: &App) -> Result<Response, ApiError> {
    let methods = app.methods()?;
    let names = methods.options().iter().map(|(_, method)| method.name()).collect();
    let extensions = EXTENSIONS.into_iter().chain([offer_receipt::NAME, request_commitment::NAME]).collect();
    cacheable(&Supported::new(api_types::NETWORK, names, extensions))
}

type Pairs<'a> = dyn Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> + 'a;

/// Filters and page that a directory request asks for.
#[derive(Debug, PartialEq)]
struct Asked {
    /// Whether any listing can match. `false` if the query filters by a value that no listing has.
    possible: bool,
    pay_to: Option<String>,
    question: Option<Question>,
    limit: u32,
    /// Number of resources on earlier pages.
    before: u32,
}

fn whole(field: &str, value: &str, allowed: RangeInclusive<u32>, rule: &str) -> Result<u32, ErrorAnswer> {
    let number = value.parse().ok().filter(|number| allowed.contains(number));
    number.ok_or_else(|| ErrorAnswer::bad_request(Error::of_field(ErrorCode::InvalidValue, field, rule)))
}

impl Asked {
    /// Parses a query. Unknown parameters are ignored. If `searches`, a `limit` above the maximum counts as the
    /// maximum; otherwise it is an error.
    fn from_query(pairs: &mut Pairs<'_>, searches: bool) -> Result<Self, ErrorAnswer> {
        let mut asked = Self { possible: true, pay_to: None, question: None, limit: DEFAULT_LIMIT, before: 0 };
        let limits = 1..=if searches { u32::MAX } else { MAX_LIMIT };
        for (name, value) in pairs {
            match &*name {
                "limit" => {
                    let rule = format!("must be a whole number from 1 to {MAX_LIMIT}");
                    asked.limit = whole(&name, &value, limits.clone(), &rule)?.min(MAX_LIMIT);
                }
                "offset" if !searches => {
                    let rule = format!("must be a whole number from 0 to {MAX_OFFSET}");
                    asked.before = whole(&name, &value, 0..=MAX_OFFSET, &rule)?;
                }
                "cursor" if searches => {
                    asked.before = whole(&name, &value, 0..=MAX_CURSOR, "must come from a page of this search")?;
                }
                "query" => asked.question = Question::read(&value),
                "payTo" => asked.pay_to = Some(value.into_owned()),
                "type" => asked.possible &= value == "http",
                "scheme" => asked.possible &= value == SCHEME_EXACT,
                "network" => asked.possible &= value.parse::<Network>() == Ok(api_types::NETWORK),
                "extensions" => asked.possible &= EXTENSIONS.contains(&&*value),
                _ => {}
            }
        }
        Ok(asked)
    }

    /// Returns the filter that selects the listings by their payment address, or `None` if no listing can match.
    fn payment_filter(&self, methods: &Methods) -> Option<PaymentFilter> {
        let escrow = methods.deployment().map(|deployment| deployment.address().to_string());
        match &self.pay_to {
            _ if !self.possible => None,
            None => Some(PaymentFilter::Any),
            Some(address) if escrow.as_ref() == Some(address) => Some(PaymentFilter::IntoEscrow),
            Some(address) => Some(PaymentFilter::To(address.parse().ok()?)),
        }
    }
}

/// Lists what is for sale.
async fn resources(app: &App) -> Result<Response, ApiError> {
    let asked = Asked::from_query(&mut app.request.url()?.query_pairs(), false)?;
    let (methods, limit, offset) = (app.methods()?, asked.limit, asked.before);
    let SalesPage { listings, total } = match asked.payment_filter(&methods) {
        None => SalesPage { listings: vec![], total: 0 },
        Some(paid) => {
            let _permit = AnswerMemory::of_listings(limit).hold(&app.request).await?;
            let with_escrow = methods.quotes(&[DeliveryMode::Protected]);
            discovery::for_sale(&app.nearest(), paid, with_escrow, (limit, offset)).await?
        }
    };
    let items = described(app, listings)?;
    let page = DiscoveryPage { x402_version: Version2, items, pagination: Pagination { limit, offset, total } };
    cacheable(&page)
}

/// Searches what is for sale.
async fn search(app: &App) -> Result<Response, ApiError> {
    let asked = Asked::from_query(&mut app.request.url()?.query_pairs(), true)?;
    let missing = || {
        let rule = "is required, at most 200 characters";
        ErrorAnswer::bad_request(Error::of_field(ErrorCode::MissingField, "query", rule))
    };
    let question = asked.question.as_ref().ok_or_else(missing)?;
    let (methods, limit, before) = (app.methods()?, asked.limit, asked.before);
    let SearchResult { listings, more } = match asked.payment_filter(&methods) {
        None => SearchResult { listings: vec![], more: false },
        Some(paid) => {
            let _permit = AnswerMemory::of_listings(limit).hold(&app.request).await?;
            let with_escrow = methods.quotes(&[DeliveryMode::Protected]);
            discovery::search(&app.nearest(), question, paid, with_escrow, (limit, before)).await?
        }
    };
    let resources = described(app, listings)?;
    let after = before.saturating_add(limit);
    let cursor = (more && after <= MAX_CURSOR).then(|| after.to_string());
    let pagination = SearchPagination { limit: resources.len(), cursor };
    cacheable(&SearchPage { x402_version: Version2, resources, partial_results: more, pagination })
}

fn described(app: &App, listings: Vec<ForSale>) -> Result<Vec<DiscoveredResource>, ApiError> {
    let (methods, origin) = (app.methods()?, app.public_origin()?);
    listings.into_iter().map(|listing| resource(&methods, &origin, listing)).collect()
}

fn resource(methods: &Methods, origin: &str, listing: ForSale) -> Result<DiscoveredResource, ApiError> {
    let ForSale { terms, changed_at: since } = listing;
    let offered = |mode: &DeliveryMode| terms.modes.contains(mode);
    let accepts =
        methods.options().into_iter().filter(|(mode, _)| offered(mode)).map(|(_, way)| way.listed(&terms.sale()));
    let accepts = accepts.collect::<Result<_, _>>().map_err(Fault::inconsistent(terms.id.as_str()))?;
    let resource = paywall::resource_info(&terms, paywall::resource_url(origin, &terms.id));
    Ok(DiscoveredResource::http(resource, accepts, since, paywall::extensions(&terms)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str, searches: bool) -> Result<Asked, ErrorAnswer> {
        Asked::from_query(&mut url::form_urlencoded::parse(query.as_bytes()), searches)
    }

    fn refused(query: &str, searches: bool, field: &str) {
        let refusal = asked(query, searches).unwrap_err();
        assert!(refusal.status() == 400 && refusal.text().starts_with(field), "{query}: {refusal}");
    }

    #[test]
    fn a_discovery_page_is_bounded() {
        let plain = asked("", false).unwrap();
        assert_eq!((plain.limit, plain.before, plain.possible), (20, 0, true));
        assert_eq!(asked("limit=100&offset=7&unknown=1", false), Ok(Asked { limit: 100, before: 7, ..plain }));
        for query in ["limit=0", "limit=101", "limit=-1", "limit=x", "limit="] {
            refused(query, false, "limit: ");
        }
        for query in ["offset=-1", "offset=1000001", "offset=1.5"] {
            refused(query, false, "offset: ");
        }
    }

    #[test]
    fn a_discovery_search_needs_a_query_and_is_bounded() {
        let found = asked("query=aurora+hero&limit=1000&cursor=40", true).unwrap();
        assert_eq!((found.limit, found.before, found.possible), (MAX_LIMIT, 40, true));
        assert!(found.question.is_some());
        for query in [String::new(), format!("query={}", "a".repeat(201))] {
            assert_eq!(asked(&query, true).unwrap().question, None, "{query}");
        }
        for (query, field) in [
            ("query=a&limit=0", "limit: "),
            ("query=a&limit=x", "limit: "),
            ("query=a&cursor=1001", "cursor: "),
            ("query=a&cursor=x", "cursor: "),
        ] {
            refused(query, true, field);
        }
    }

    #[test]
    fn a_filter_that_no_listing_can_match_is_impossible() {
        for query in ["type=http", "scheme=exact", "network=cardano:preprod", "network=cip34:0-1", "extensions=bazaar"]
        {
            assert!(asked(query, false).unwrap().possible, "{query}");
        }
        for query in
            ["type=mcp", "scheme=upto", "network=eip155:8453", "network=!!!", "extensions=x", "type=mcp&type=http"]
        {
            assert!(!asked(query, false).unwrap().possible, "{query}");
        }
    }
}
