//! `GET /supported`, `GET /discovery/resources`, `GET /discovery/search`: what x402 clients and directories ask before
//! anyone pays.

use std::borrow::Cow;

use edge::answer::{ErrorAnswer, Fault};
use edge::serve::{Request, Response};
use market::{
    DeliveryMode,
    catalogue::discovery::{self, ForSale, Found, Paid, Question, SalesPage},
};
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

use crate::{
    app::App,
    error::{ApiError, Refused},
    limits::Weight,
    methods::Methods,
    paywall,
};

/// How far into the listings a page may begin.
const MAX_OFFSET: u32 = 1_000_000;
/// How far into what was found a page may begin: readers do not go further.
const MAX_CURSOR: u32 = 1_000;
/// What each resource's 402 carries.
const EXTENSIONS: [&str; 2] = [bazaar::NAME, payment_identifier::NAME];

/// A parameter that is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryError {
    /// `limit` is out of range.
    #[error("limit: must be a whole number from 1 to {MAX_LIMIT}")]
    Limit,
    /// After how many.
    #[error("offset: must be a whole number from 0 to {MAX_OFFSET}")]
    Offset,
    /// What for.
    #[error("query: is required, at most 200 characters")]
    Query,
    /// Where to go on.
    #[error("cursor: must come from a page of this search")]
    Cursor,
}

impl Refused for DiscoveryError {
    fn answer(&self) -> ErrorAnswer {
        ErrorAnswer::bad_request(self.to_string())
    }
}

fn cacheable(value: &impl serde::Serialize) -> Result<Response, ApiError> {
    let unwritten = |error| Fault::Inconsistent(format!("a document cannot be written: {error}"));
    let text = serde_json::to_string(value).map_err(unwritten)?;
    Ok(Response::json(text).with_header("cache-control", "public, max-age=60"))
}

/// The ways to pay, and the extensions.
pub fn supported(app: &App) -> Result<Response, ApiError> {
    let methods = app.methods()?;
    let names = methods.options().iter().map(|(_, method)| method.name()).collect();
    let extensions = EXTENSIONS.into_iter().chain([offer_receipt::NAME, request_commitment::NAME]).collect();
    cacheable(&Supported::new(api_types::NETWORK, names, extensions))
}

/// Which resources.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    /// Whether any can match.
    possible: bool,
    pay_to: Option<String>,
}

impl Wanted {
    const ALL: Self = Self { possible: true, pay_to: None };

    /// Reads a filter. Unknown names are ignored, and every filter is applied: what nothing has matches nothing.
    fn set(&mut self, name: &str, value: Cow<'_, str>) {
        self.possible &= match name {
            "type" => value == "http",
            "scheme" => value == SCHEME_EXACT,
            "network" => value.parse::<Network>() == Ok(api_types::NETWORK),
            "extensions" => EXTENSIONS.contains(&&*value),
            _ => true,
        };
        if name == "payTo" {
            self.pay_to = Some(value.into_owned());
        }
    }

    /// Which listings these are; `None` where none can be.
    fn paid(&self, methods: &Methods) -> Option<Paid> {
        if !self.possible {
            return None;
        }
        match &self.pay_to {
            None => Some(Paid::Any),
            Some(address)
                if methods.deployment().map(|deployment| deployment.address().to_string()).as_ref()
                    == Some(address) =>
            {
                Some(Paid::IntoEscrow)
            }
            Some(address) => Some(Paid::To(address.parse().ok()?)),
        }
    }
}

type Pairs<'a> = dyn Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> + 'a;

/// Which resources, and which page of them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    wanted: Wanted,
    limit: u32,
    offset: u32,
}

impl Asked {
    fn from_query(pairs: &mut Pairs<'_>) -> Result<Self, DiscoveryError> {
        let mut asked = Self { wanted: Wanted::ALL, limit: DEFAULT_LIMIT, offset: 0 };
        for (name, value) in pairs {
            match &*name {
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
                    asked.limit = limit.ok_or(DiscoveryError::Limit)?;
                }
                "offset" => {
                    let offset = value.parse().ok().filter(|offset| *offset <= MAX_OFFSET);
                    asked.offset = offset.ok_or(DiscoveryError::Offset)?;
                }
                name => asked.wanted.set(name, value),
            }
        }
        Ok(asked)
    }
}

/// What is searched for. The limit is advice: a greater one is taken for the greatest.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Searched {
    wanted: Wanted,
    question: Question,
    limit: u32,
    /// How many were on the pages before: the cursor.
    before: u32,
}

impl Searched {
    fn from_query(pairs: &mut Pairs<'_>) -> Result<Self, DiscoveryError> {
        let (mut wanted, mut question, mut limit, mut before) = (Wanted::ALL, None, DEFAULT_LIMIT, 0);
        for (name, value) in pairs {
            match &*name {
                "query" => question = Question::read(&value),
                "limit" => {
                    let asked: Option<u32> = value.parse().ok().filter(|limit| *limit > 0);
                    limit = asked.ok_or(DiscoveryError::Limit)?.min(MAX_LIMIT);
                }
                "cursor" => {
                    let asked = value.parse().ok().filter(|before| *before <= MAX_CURSOR);
                    before = asked.ok_or(DiscoveryError::Cursor)?;
                }
                name => wanted.set(name, value),
            }
        }
        Ok(Self { wanted, question: question.ok_or(DiscoveryError::Query)?, limit, before })
    }
}

/// What is for sale here, as x402's directories list it.
pub async fn resources(app: &App, request: &Request) -> Result<Response, ApiError> {
    let Asked { wanted, limit, offset } = Asked::from_query(&mut request.url()?.query_pairs())?;
    let methods = app.methods()?;
    let SalesPage { listings, total } = match wanted.paid(&methods) {
        None => SalesPage { listings: vec![], total: 0 },
        Some(paid) => {
            let _permit = app.limit_search(Weight::of_listings(limit), request).await?;
            let with_escrow = methods.quoting(&[DeliveryMode::Protected]).is_some();
            discovery::for_sale(&app.database(), paid, with_escrow, (limit, offset)).await?
        }
    };
    let items = described(app, request, listings)?;
    let page = DiscoveryPage { x402_version: Version2, items, pagination: Pagination { limit, offset, total } };
    cacheable(&page)
}

/// What of it answers a question.
pub async fn search(app: &App, request: &Request) -> Result<Response, ApiError> {
    let Searched { wanted, question, limit, before } = Searched::from_query(&mut request.url()?.query_pairs())?;
    let methods = app.methods()?;
    let Found { listings, more } = match wanted.paid(&methods) {
        None => Found { listings: vec![], more: false },
        Some(paid) => {
            let _permit = app.limit_search(Weight::of_listings(limit), request).await?;
            let with_escrow = methods.quoting(&[DeliveryMode::Protected]).is_some();
            discovery::search(&app.database(), &question, paid, with_escrow, (limit, before)).await?
        }
    };
    let resources = described(app, request, listings)?;
    let after = before.saturating_add(limit);
    let cursor = (more && after <= MAX_CURSOR).then(|| after.to_string());
    let pagination = SearchPagination { limit: resources.len(), cursor };
    cacheable(&SearchPage { x402_version: Version2, resources, partial_results: more, pagination })
}

fn described(app: &App, request: &Request, listings: Vec<ForSale>) -> Result<Vec<DiscoveredResource>, ApiError> {
    let (methods, origin) = (app.methods()?, app.public_origin(request)?);
    listings.into_iter().map(|listing| resource(&methods, &origin, listing)).collect()
}

fn resource(methods: &Methods, origin: &str, listing: ForSale) -> Result<DiscoveredResource, ApiError> {
    let ForSale { terms, since } = listing;
    let offered = |mode: &DeliveryMode| terms.modes.contains(mode);
    let accepts =
        methods.options().into_iter().filter(|(mode, _)| offered(mode)).map(|(_, way)| way.listed(&terms.sale()));
    let accepts = accepts
        .collect::<Result<_, _>>()
        .map_err(|error| Fault::Inconsistent(format!("{} cannot be offered: {error}", terms.id)))?;
    let resource = paywall::resource_info(&terms, paywall::resource_url(origin, &terms.id));
    Ok(DiscoveredResource::http(resource, accepts, since, paywall::extensions(&terms)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str) -> Result<Asked, DiscoveryError> {
        Asked::from_query(&mut url::form_urlencoded::parse(query.as_bytes()))
    }

    fn searched(query: &str) -> Result<Searched, DiscoveryError> {
        Searched::from_query(&mut url::form_urlencoded::parse(query.as_bytes()))
    }

    #[test]
    fn a_discovery_page_is_bounded() {
        let plain = Asked { wanted: Wanted::ALL, limit: 20, offset: 0 };
        assert_eq!(asked(""), Ok(plain.clone()));
        assert_eq!(asked("limit=100&offset=7&unknown=1"), Ok(Asked { limit: 100, offset: 7, ..plain }));
        for query in ["limit=0", "limit=101", "limit=-1", "limit=x", "limit="] {
            assert_eq!(asked(query), Err(DiscoveryError::Limit), "{query}");
        }
        for query in ["offset=-1", "offset=1000001", "offset=1.5"] {
            assert_eq!(asked(query), Err(DiscoveryError::Offset), "{query}");
        }
    }

    #[test]
    fn a_discovery_search_needs_a_query_and_is_bounded() {
        let found = searched("query=aurora+hero&limit=1000&cursor=40").unwrap();
        assert_eq!((found.limit, found.before, found.wanted), (MAX_LIMIT, 40, Wanted::ALL));
        let long = format!("query={}", "a".repeat(201));
        for (query, error) in [
            ("", DiscoveryError::Query),
            (long.as_str(), DiscoveryError::Query),
            ("query=a&limit=0", DiscoveryError::Limit),
            ("query=a&limit=x", DiscoveryError::Limit),
            ("query=a&cursor=1001", DiscoveryError::Cursor),
            ("query=a&cursor=x", DiscoveryError::Cursor),
        ] {
            assert_eq!(searched(query), Err(error), "{query}");
        }
    }

    #[test]
    fn a_filter_that_no_listing_can_match_is_impossible() {
        for query in ["type=http", "scheme=exact", "network=cardano:preprod", "network=cip34:0-1", "extensions=bazaar"]
        {
            assert!(asked(query).unwrap().wanted.possible, "{query}");
        }
        for query in
            ["type=mcp", "scheme=upto", "network=eip155:8453", "network=!!!", "extensions=x", "type=mcp&type=http"]
        {
            assert!(!asked(query).unwrap().wanted.possible, "{query}");
        }
    }
}
