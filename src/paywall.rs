//! The paywall: what a listing costs, as x402 says it, and unlocking it.

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
use sql::Database;
use x402_cardano::{
    request_commitment::{HttpRequest, RequestDigest},
    wire::{ResourceInfo, bazaar, payment_identifier},
};

pub use unlock::{Outcome, Paywall};

use crate::{app::App, error::ApiError, methods::Methods, read_cache};

/// The clock of escrow matters.
#[derive(Clone, Copy, Debug)]
pub struct ChainClock {
    /// The later of the wall clock and the newest block's time, POSIX ms.
    pub ms: Millis,
    /// Whether the newest known block is too old for a protected sale to be quoted.
    pub is_behind: bool,
}

impl ChainClock {
    fn of(app: &App, state: ShopState) -> Result<Self, ApiError> {
        let (lead, now) = (app.settings()?.lead, app.now_ms);
        Ok(Self { ms: lead.clock(state.block_ms, now), is_behind: lead.is_behind(state.block_ms, now) })
    }
}

/// A listing's terms, and the clock of escrow matters.
#[derive(Clone, Debug)]
pub struct Priced {
    pub terms: Rc<ListingTerms>,
    pub clock: ChainClock,
}

impl Priced {
    /// The ways that new terms offer: nothing protected while the newest known block is too old.
    pub fn options<'a>(&self, methods: &'a Methods) -> Vec<PaymentOption<'a>> {
        let mut options = methods.options_for(&self.terms);
        options.retain(|(mode, _)| *mode != DeliveryMode::Protected || !self.clock.is_behind);
        options
    }
}

/// A listing's terms, at most a second old; read in one batch with the shop's state where they are not known.
pub async fn priced(app: &App, id: &ListingId) -> Result<Option<Priced>, ApiError> {
    app.line.note("listing", id.as_str());
    let lead = app.settings()?.lead;
    let Some((terms, state)) = read_cache::terms(app, lead, id).await? else { return Ok(None) };
    Ok(Some(Priced { terms, clock: ChainClock::of(app, state)? }))
}

/// The clock of escrow matters alone, for what is drafted: the ledger's time may be ahead of the worker's, sold protected
/// or not.
pub async fn clock(app: &App, database: &impl Database) -> Result<ChainClock, ApiError> {
    ChainClock::of(app, state::of(&database.run(state::read()).await?)?)
}

/// The path of a listing's paywall, as directories know all of them.
const ROUTE: &str = "/listings/:id/unlock";
/// Who sells, as directories show it.
const SERVICE_NAME: &str = "Surety";
/// What is sold, as directories find it.
const TAGS: [&str; 3] = ["design", "prompts", "cardano"];

/// The address of a listing's paywall.
pub fn resource_url(origin: &str, listing: &ListingId) -> String {
    format!("{origin}/listings/{listing}/unlock")
}

/// What is paid for, at this address.
pub fn resource_info(terms: &ListingTerms, url: String) -> ResourceInfo {
    ResourceInfo {
        url,
        // A client that presents its own payment for a hidden listing learns of the payment.
        description: (!terms.hidden).then(|| terms.title.clone()),
        mime_type: Some("text/plain".to_owned()),
        service_name: Some(SERVICE_NAME.to_owned()),
        tags: TAGS.map(str::to_owned).to_vec(),
    }
}

/// A secret for one 402 (`request-binding`): 144 random bits.
pub fn secret() -> Result<String, ApiError> {
    Ok(hex::encode(edge::random::<18>()?))
}

/// The extensions of a listing's 402 over HTTP: the same each time, but for the secret that belongs to each
/// ([`request_binding`]).
pub fn extensions(terms: &ListingTerms) -> Map<String, Value> {
    let get = bazaar::Get { route_template: ROUTE, path_params: &[("id", terms.id.as_str())], output: "text" };
    let mut extensions = payment_identifier::offered();
    extensions.extend(get.extension());
    extensions
}

/// The digest of an incoming request, for the commitment of its payment: its method, and its path and query under our
/// one origin. `None` where no origin is configured, and where the request cannot be described: one with a body, or
/// with a URL beyond ASCII. A payment that commits to such a request is refused.
pub fn request_digest(app: &App) -> Option<RequestDigest> {
    let origin = app.origin().ok()?;
    let query = app.request.query().map(|query| format!("?{query}")).unwrap_or_default();
    let url = format!("{origin}{}{query}", app.request.path());
    let described = HttpRequest { method: app.request.method(), url: &url, body: b"", headers: &[] };
    RequestDigest::of(&described).ok().filter(|_| !app.request.has_body())
}

/// The digest of the request that pays a listing at the paywall, whatever brings the payment: a draft, or a tool call.
pub fn unlock_digest(app: &App, listing: &ListingId) -> Option<RequestDigest> {
    let url = resource_url(&app.origin().ok()?, listing);
    RequestDigest::of(&HttpRequest { method: "GET", url: &url, body: b"", headers: &[] }).ok()
}
