//! `GET /listings`, `POST /listings`, `GET /listings/{id}`

use std::rc::Rc;

use api_types::{Error, ErrorCode};
use cardano::Address;
use edge::{
    answer::{ErrorAnswer, Fault},
    ed25519::WebCrypto,
    http::{BodyError, hold_request},
    semaphore::Permit,
    serve::Response,
};
use market::{
    ListingId,
    catalogue::{self, Filter, Page, QuotaExceeded, Source, Stored},
    listing::{self, NewListing},
    proof::{Proof, ProofError},
};
use url::form_urlencoded;

use crate::{
    app::App,
    error::ApiError,
    limits::{Counted, Weight, client},
    read_cache::{self, VersionedDatabase},
    respond,
    session::Session,
};

/// 404: the listing does not exist, or an operator hid it.
pub fn unknown() -> ErrorAnswer {
    ErrorAnswer::not_found(Error::new(ErrorCode::UnknownListing, "no such listing"))
}

/// Parses a listing's id.
pub fn id(text: &str) -> Result<ListingId, ErrorAnswer> {
    text.parse().map_err(|_| unknown())
}

/// Returns the whole catalogue, or the page selected by the query.
pub async fn list(app: &App) -> Result<Response, ApiError> {
    let query = app.request.query().unwrap_or_default();
    let filter = Filter::from_query(form_urlencoded::parse(query.as_bytes())).map_err(ErrorAnswer::bad_request)?;
    let page = match filter {
        // Unknown parameters are ignored.
        None => read_cache::newest(app).await?,
        Some(filter) => {
            let read = async |database: Rc<VersionedDatabase>| catalogue::page(&*database, &filter).await;
            let weight = Weight::of_listings(filter.page_size());
            read_cache::list(app, weight, &format!("/listings?{query}"), read).await?
        }
    };
    let etag = format!("W/\"catalogue-{}\"", page.version);
    if let Some(response) = respond::not_modified(&app.request, &etag)? {
        return Ok(response);
    }
    let response = respond::tagged(Response::kept_json(&page.json), &etag);
    Ok(respond::linked(response, &app.request, page.next.as_deref())?)
}

/// Returns a listing.
pub async fn show(app: &App, id: &str) -> Result<Response, ApiError> {
    let id = self::id(id)?;
    app.line.note("listing", id.as_str());
    let read = async |database: Rc<VersionedDatabase>| {
        let json = catalogue::one(&*database, &id).await?;
        Ok(json.map(|json| Page { json, ..Page::default() }))
    };
    let page = read_cache::answer(app, None, id.as_str(), read).await?;
    Ok(Response::kept_json(&page.ok_or_else(unknown)?.json))
}

/// Maximum size in bytes of a new listing's body: the content, of which JSON may escape every byte, and the other
/// fields.
const MAX_BODY: usize = 6 * listing::MAX_CONTENT_BYTES + (64 << 10);

/// The seller of an offer.
pub enum Seller {
    /// The owner of the session's account.
    Owner(Address),
    /// The signer of a recent proof. Its signature is verified later, when the offer's digest is known.
    Signer(Proof),
}

impl Seller {
    /// Determines the seller before the offer is read.
    pub async fn of(app: &App) -> Result<Self, ApiError> {
        if let Some(Session { account, .. }) = Session::shown(app).await? {
            return Ok(Self::Owner(account.owner.parse().map_err(Fault::in_making("an owner that sells"))?));
        }
        let unproven = "sign in, or sign the offer with the seller's wallet (header X-Service-Proof)";
        let unproven = || ErrorAnswer::unauthorized(Error::new(ErrorCode::NotSignedIn, unproven));
        let header = app.request.headers().get("x-service-proof")?.ok_or_else(unproven)?;
        Ok(Self::Signer(Proof::recent(&header, app.now_ms).map_err(ErrorAnswer::unauthorized)?))
    }

    const fn owner(&self) -> Option<Address> {
        match self {
            Self::Owner(owner) => Some(*owner),
            Self::Signer(_) => None,
        }
    }

    /// Verifies the signer's signature of this offer. Returns the signed digest, or `None` for an offer in a session,
    /// which needs no signature.
    async fn check(&self, offer: &NewListing, now_ms: u64) -> Result<Option<String>, ProofError> {
        let Self::Signer(proof) = self else { return Ok(None) };
        if proof.address != offer.seller {
            return Err(ProofError::OtherAddress(offer.seller));
        }
        let digest = proof.listing_digest(&offer.content_hash(), &offer.signed_price);
        proof.check(&WebCrypto, &digest, now_ms).await?;
        Ok(Some(digest.to_string()))
    }
}

/// Creates a listing of the session's owner, or of the signer.
pub async fn create(app: &App) -> Result<Response, ApiError> {
    app.limit_client(Counted::OFFER).await?;
    app.ample_room().await?;
    let seller = Seller::of(app).await?;
    let (offer, _held) = read(app, seller.owner()).await?;
    let proof = seller.check(&offer, app.now_ms).await.map_err(ErrorAnswer::unauthorized)?;
    let id = ListingId::new(app.now_ms, edge::random()?);
    let (database, contents, quota) = (app.database(), app.contents()?, app.settings()?.quota);
    let source = Source { proof: proof.as_deref(), network: &client(&app.request)? };
    match catalogue::store(&database, &contents, &id, &offer, source, quota, app.now_ms).await? {
        Stored::Listing { id, json } => {
            Ok(Response::json(json).with_status(201).with_header("location", format!("/listings/{id}")))
        }
        Stored::OfferChanged => {
            let text = "this signature already made another listing: sign the changed offer anew";
            Err(ErrorAnswer::unauthorized(Error::new(ErrorCode::ProofReused, text)).into())
        }
        Stored::QuotaExceeded(quota) => Err(match quota {
            QuotaExceeded::Today { wait_s, .. } => ErrorAnswer::unavailable_for(wait_s, quota).into(),
            _ => ErrorAnswer::bad_request(quota).into(),
        }),
    }
}

/// Parses the offer. The returned permit counts its memory against the client's limit until it is stored.
async fn read(app: &App, seller: Option<Address>) -> Result<(NewListing, Option<Permit>), ApiError> {
    let (body, held) = hold_request(&app.request, MAX_BODY).await.map_err(|error| match error {
        BodyError::TooLarge(_) => ErrorAnswer::bad_request(listing::content_too_long()).into(),
        error => ApiError::from(error),
    })?;
    Ok((NewListing::read(&body, seller).map_err(ErrorAnswer::bad_request)?, held))
}
