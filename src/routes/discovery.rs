//! `GET /supported`, `GET /discovery/resources`: what x402 clients and directories ask before anybody pays.

use std::borrow::Cow;

use edge::answer::{self, Fault};
use edge::serve::{Request, Response};
use market::{
    DeliveryMode,
    catalogue::discovery::{self, ForSale, Paid, SalesPage},
};
use x402_cardano::wire::{
    NETWORK, Network, SCHEME_EXACT, Version2, bazaar,
    discovery::{DEFAULT_LIMIT, DiscoveredResource, DiscoveryPage, MAX_LIMIT, Pagination, Supported},
    offer_receipt, payment_identifier,
};

use crate::{
    app::App,
    error::ApiError,
    paywall::{self, Methods},
};

/// How far into the listings a page may begin.
const MAX_OFFSET: u32 = 1_000_000;
/// What each resource's 402 carries.
const EXTENSIONS: [&str; 2] = [bazaar::NAME, payment_identifier::NAME];

/// A parameter that is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryError {
    /// How many.
    #[error("limit: must be a whole number from 1 to {MAX_LIMIT}")]
    Limit,
    /// After how many.
    #[error("offset: must be a whole number from 0 to {MAX_OFFSET}")]
    Offset,
}

fn cacheable(text: String) -> Result<Response, ApiError> {
    let mut response = answer::json(text)?;
    response.headers_mut().set("cache-control", "public, max-age=60")?;
    Ok(response)
}

fn written(value: &impl serde::Serialize) -> Result<String, ApiError> {
    let unwritten = |error| Fault::Inconsistent(format!("a document cannot be written: {error}"));
    Ok(serde_json::to_string(value).map_err(unwritten)?)
}

/// The ways to pay, and the extensions.
pub fn supported(app: &App) -> Result<Response, ApiError> {
    let methods = app.methods()?;
    let names = methods.ways().iter().map(|(_, method)| method.name()).collect();
    let extensions = EXTENSIONS.into_iter().chain([offer_receipt::NAME]).collect();
    cacheable(written(&Supported::new(names, extensions))?)
}

/// Which resources, and which page of them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    /// Whether any can match.
    possible: bool,
    pay_to: Option<String>,
    limit: u32,
    offset: u32,
}

impl Asked {
    /// Reads the query. Unknown names are ignored, and every filter is applied: what nothing has matches nothing.
    fn from_query<'a>(pairs: impl IntoIterator<Item = (Cow<'a, str>, Cow<'a, str>)>) -> Result<Self, DiscoveryError> {
        let mut asked = Self { possible: true, pay_to: None, limit: DEFAULT_LIMIT, offset: 0 };
        for (name, value) in pairs {
            let matches = match &*name {
                "type" => value == "http",
                "scheme" => value == SCHEME_EXACT,
                "network" => value.parse::<Network>() == Ok(NETWORK),
                "extensions" => EXTENSIONS.contains(&&*value),
                "payTo" => {
                    asked.pay_to = Some(value.into_owned());
                    true
                }
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
                    asked.limit = limit.ok_or(DiscoveryError::Limit)?;
                    true
                }
                "offset" => {
                    let offset = value.parse().ok().filter(|offset| *offset <= MAX_OFFSET);
                    asked.offset = offset.ok_or(DiscoveryError::Offset)?;
                    true
                }
                _ => true,
            };
            asked.possible &= matches;
        }
        Ok(asked)
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

/// What is for sale here, as x402's directories list it.
pub async fn resources(app: &App, request: &Request) -> Result<Response, ApiError> {
    let asked = Asked::from_query(request.url()?.query_pairs())?;
    let (methods, origin) = (app.methods()?, app.public_origin(request)?);
    let Asked { limit, offset, .. } = asked;
    let SalesPage { listings, total } = match asked.paid(&methods) {
        None => SalesPage { listings: vec![], total: 0 },
        Some(paid) => {
            let with_escrow = methods.deployment().is_some();
            discovery::for_sale(&app.database(), paid, with_escrow, (limit, offset)).await?
        }
    };
    let items = listings.into_iter().map(|listing| resource(&methods, &origin, listing)).collect::<Result<_, _>>()?;
    let page = DiscoveryPage { x402_version: Version2, items, pagination: Pagination { limit, offset, total } };
    cacheable(written(&page)?)
}

fn resource(methods: &Methods, origin: &str, listing: ForSale) -> Result<DiscoveredResource, ApiError> {
    let ForSale { terms, since } = listing;
    let offered = |mode: &DeliveryMode| terms.modes.contains(mode);
    let accepts =
        methods.ways().into_iter().filter(|(mode, _)| offered(mode)).map(|(_, way)| way.listed(&terms.sale()));
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
        Asked::from_query(url::form_urlencoded::parse(query.as_bytes()))
    }

    #[test]
    fn a_page_is_bounded() {
        let plain = Asked { possible: true, pay_to: None, limit: 20, offset: 0 };
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
    fn what_nothing_has_matches_nothing() {
        for query in ["type=http", "scheme=exact", "network=cardano:preprod", "network=cip34:0-1", "extensions=bazaar"]
        {
            assert!(asked(query).unwrap().possible, "{query}");
        }
        for query in
            ["type=mcp", "scheme=upto", "network=eip155:8453", "network=!!!", "extensions=x", "type=mcp&type=http"]
        {
            assert!(!asked(query).unwrap().possible, "{query}");
        }
    }
}
