//! The paywall: describes a listing as a paid resource and unlocks its content.

mod unlock;

use std::sync::LazyLock;

use market::{ListingId, catalogue::ListingTerms};
use x402_cardano::{
    request_commitment::{HttpRequest, RequestDigest},
    wire::{Extensions, ResourceInfo, bazaar, payment_identifier},
};

pub use unlock::{Outcome, Paywall};

use crate::{app::App, error::ApiError};

/// Description of the paywall for x402 directories of paid resources.
static BAZAAR: LazyLock<bazaar::Get> = LazyLock::new(|| bazaar::Get::new("/listings/:id/unlock", "text"));
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
pub fn extensions(terms: &ListingTerms) -> Extensions {
    let mut extensions = payment_identifier::offered();
    extensions.extend(BAZAAR.extension(&[terms.id.as_str()]));
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
