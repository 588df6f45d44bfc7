//! The paywall: determines a listing's terms and unlocks its content.

mod unlock;

use std::rc::Rc;

use cardano::slots::Millis;
use market::{
    DeliveryMode, ListingId,
    catalogue::ListingTerms,
    checkout::PaymentOption,
    state::{self, ShopState},
};
use serde_json::{Map, Value};
use sql::{Database, One};
use x402_cardano::{
    request_commitment::{HttpRequest, RequestDigest},
    wire::{ResourceInfo, bazaar, payment_identifier},
};

pub use unlock::{Outcome, Paywall};

use crate::{app::App, error::ApiError, methods::Methods, read_cache};

/// The time against which escrow deadlines are checked.
#[derive(Clone, Copy, Debug)]
pub struct ChainClock {
    /// The later of the wall clock and the newest block's time, POSIX ms.
    pub ms: Millis,
    /// Whether the newest known block is too old to offer protected sales.
    pub is_behind: bool,
}

impl ChainClock {
    fn of(app: &App, state: ShopState) -> Result<Self, ApiError> {
        let (lead, now) = (app.settings()?.lead, app.now_ms);
        Ok(Self { ms: lead.clock(state.block_ms, now), is_behind: lead.is_behind(state.block_ms, now) })
    }
}

/// A listing's terms, with the time against which escrow deadlines are checked.
#[derive(Clone, Debug)]
pub struct Priced {
    pub terms: Rc<ListingTerms>,
    pub clock: ChainClock,
}

impl Priced {
    /// Returns the payment methods for a new offer, without protected payment while the newest known block is too old.
    pub fn options<'a>(&self, methods: &'a Methods) -> Vec<PaymentOption<'a>> {
        let mut options = methods.options_for(&self.terms);
        options.retain(|(mode, _)| *mode != DeliveryMode::Protected || !self.clock.is_behind);
        options
    }
}

/// Returns a listing's terms with the time for escrow deadlines, or `None` if there is no such listing. The terms may
/// be some seconds old, because they are cached and a replica of the database may lag. If the listing was taken off
/// sale meanwhile, a payment for it is still rejected.
pub async fn priced(app: &App, id: &ListingId) -> Result<Option<Priced>, ApiError> {
    app.line.note("listing", id.as_str());
    let lead = app.settings()?.lead;
    let Some((terms, state)) = read_cache::terms(app, lead, id).await? else { return Ok(None) };
    Ok(Some(Priced { terms, clock: ChainClock::of(app, state)? }))
}

/// Returns the time for escrow deadlines. On a local ledger, the chain's time may be ahead of the worker's clock.
pub async fn clock(app: &App, database: &impl Database) -> Result<ChainClock, ApiError> {
    let One(state) = database.fetch(state::read()).await?;
    ChainClock::of(app, state)
}

/// Path template of the paywall, for x402 directories of paid resources.
const ROUTE: &str = "/listings/:id/unlock";
/// Name of the shop in x402 directories.
const SERVICE_NAME: &str = "Surety";
/// Keywords under which x402 directories list the shop.
const TAGS: [&str; 3] = ["design", "prompts", "cardano"];

/// Returns the address of a listing's paywall.
pub fn resource_url(origin: &str, listing: &ListingId) -> String {
    format!("{origin}/listings/{listing}/unlock")
}

/// Describes the paid resource at this address.
pub fn resource_info(terms: &ListingTerms, url: String) -> ResourceInfo {
    ResourceInfo {
        url,
        // The payer of a hidden listing still learns of the payment's state.
        description: (!terms.hidden).then(|| terms.description()),
        mime_type: Some("text/plain".to_owned()),
        service_name: Some(SERVICE_NAME.to_owned()),
        tags: TAGS.map(str::to_owned).to_vec(),
    }
}

/// Creates the secret that a 402 answer contains (x402 extension `request-binding`): 144 random bits.
pub fn secret() -> Result<String, ApiError> {
    Ok(hex::encode(edge::random::<18>()?))
}

/// Returns the x402 extensions of a listing's 402 answer over HTTP, except `request-binding`, which has a new secret
/// in each answer.
pub fn extensions(terms: &ListingTerms) -> Map<String, Value> {
    let get = bazaar::Get { route_template: ROUTE, path_params: &[("id", terms.id.as_str())], output: "text" };
    let mut extensions = payment_identifier::offered();
    extensions.extend(get.extension());
    extensions
}

/// Returns the digest of an incoming request: method, path and query under our own origin. A payment that contains this
/// digest is valid in this request only.
///
/// Returns `None` if no origin is configured, if the request has a body, or if its URL contains non-ASCII characters.
/// In these cases, a payment that contains a digest is rejected.
pub fn request_digest(app: &App) -> Option<RequestDigest> {
    let origin = app.origin().ok()?;
    let query = app.request.query().map(|query| format!("?{query}")).unwrap_or_default();
    let url = format!("{origin}{}{query}", app.request.path());
    let described = HttpRequest { method: app.request.method(), url: &url, body: b"", headers: &[] };
    RequestDigest::of(&described).ok().filter(|_| !app.request.has_body())
}

/// Returns the digest of the HTTP request that unlocks a listing. A payment that is prepared outside of such a request
/// contains this digest: a draft for a wallet, or a payment in an MCP tool call. `None` if no origin is configured.
pub fn unlock_digest(app: &App, listing: &ListingId) -> Option<RequestDigest> {
    let url = resource_url(&app.origin().ok()?, listing);
    RequestDigest::of(&HttpRequest { method: "GET", url: &url, body: b"", headers: &[] }).ok()
}
