//! Listings: `GET /listings`, `POST /listings`, `GET /listings/{id}`.

use std::rc::Rc;

use api_types::{Error, ErrorCode};
use edge::{
    answer::ErrorAnswer,
    http::{BodyError, hold_request},
    semaphore::Permit,
    serve::Response,
};
use market::{
    ListingId,
    catalogue::{self, Filter, Page, QuotaExceeded, Source, Stored},
    listing::{self, NewListing},
};
#[cfg(test)]
use serde_json::json;
use url::form_urlencoded;

#[cfg(test)]
use crate::openapi::operations::Operation;
use crate::{
    app::App,
    error::ApiError,
    limits::{AnswerMemory, Counted, client},
    proof::Seller,
    read_cache::{self, VersionedDatabase},
    respond,
    route::{Argument, Asked, Body, Limit, OnMiss, Route, route},
    routes::pages,
};

/// 404: the listing does not exist, or an operator hid it.
pub fn unknown() -> ErrorAnswer {
    ErrorAnswer::not_found(Error::new(ErrorCode::UnknownListing, "no such listing"))
}

impl Argument for ListingId {
    async fn of(asked: Asked<'_>) -> Result<Self, ApiError> {
        Ok(asked.parameter.parse().map_err(|_| unknown())?)
    }

    #[cfg(test)]
    fn describe(operation: Operation<'_>) -> Operation<'_> {
        operation.path("id", "The listing's id.").fails(&[404])
    }
}

pub const ROUTES: &[Route] = &[
    route! {
        GET "/listings", Limit::OnMiss(Counted::SEARCH) => list(OnMiss);
        docs |of| of
            .names("listListings", "Catalogue", "List what is for sale")
            .more("Without a query, returns the newest listings. The `Link` header (rel=\"next\") has the address of the next page. A page examines at most 10,000 listings, or with `q` the newest 10,000 that contain the words. If few of them match, the page is short, and its `Link` continues the search.")
            .query("q", "Words to find in title or description. The first twelve count, and the last may be a prefix.", json!({ "type": "string", "maxLength": 200 }))
            .query_of::<api_types::Category>("category", "Restricts the result to listings in this category.")
            .query_of::<api_types::DeliveryMode>("mode", "Restricts the result to listings offered in this delivery mode.")
            .query_of::<api_types::Sort>("sort", "Sort order.")
            .query("limit", "Maximum number of results.", json!({ "type": "integer", "minimum": 1, "maximum": 200 }))
            .cursor()
            .answers::<Vec<api_types::Listing>>(200, "Listings.")
            .header(200, "Link", "Address of the next page; absent on the last page.", false)
            .tagged()
            .fails(&[400])
    },
    route! {
        POST "/listings", Limit::Client(Counted::OFFER) => create(Seller, OfferBody);
        docs |of| of
            .names("createListing", "Catalogue", "Offer a new listing")
            .more("With a session, its owner is the seller. Without one, the wallet of `sellerAddress` signs sha256 of `service:listing:v1` LF sellerAddress LF sha256(content) LF priceLovelace LF timestamp. Quotas limit what one seller may store (400), and what all sellers may add on one day (503); the error names the limit.")
            .answers::<api_types::Listing>(201, "The listing.")
            .header(201, "Location", "Path of the listing.", true)
    },
    route! {
        GET "/listings/{id}", Limit::OnMiss(Counted::READ) => show(ListingId, OnMiss);
        page Limit::Client(Counted::READ) => pages::listing(ListingId);
        docs |of| of.names("getListing", "Catalogue", "Get a listing").answers::<api_types::Listing>(200, "The listing.").page(200)
    },
];

/// Returns the whole catalogue, or the page selected by the query.
pub async fn list(app: &App, limit: OnMiss) -> Result<Response, ApiError> {
    let query = app.request.query().unwrap_or_default();
    let filter = Filter::from_query(form_urlencoded::parse(query.as_bytes())).map_err(ErrorAnswer::bad_request)?;
    let page = match filter {
        // Unknown parameters are ignored.
        None => read_cache::newest(app, limit).await?,
        Some(filter) => {
            let read = async |database: Rc<VersionedDatabase>| catalogue::page(&*database, &filter).await;
            let weight = AnswerMemory::of_listings(filter.page_size());
            read_cache::list(app, limit, weight, &format!("/listings?{query}"), read).await?
        }
    };
    let etag = format!("W/\"catalogue-{}\"", page.version);
    if let Some(response) = respond::not_modified(&app.request, &etag)? {
        return Ok(response);
    }
    let response = respond::tagged(Response::js_json(&page.json), &etag);
    Ok(respond::linked(response, &app.request, page.next.as_deref())?)
}

/// Returns a listing.
pub async fn show(app: &App, id: ListingId, limit: OnMiss) -> Result<Response, ApiError> {
    app.line.note("listing", id.as_str());
    let read = async |database: Rc<VersionedDatabase>| {
        let json = catalogue::one(&*database, &id).await?;
        Ok(json.map(|json| Page { json, ..Page::default() }))
    };
    let page = read_cache::answer(app, limit, None, id.as_str(), read).await?;
    Ok(Response::js_json(&page.ok_or_else(unknown)?.json))
}

/// Maximum size in bytes of the body of a new listing. JSON may escape each byte of the content as six characters, and
/// 64 KiB remain for the other fields.
const MAX_BODY: usize = 6 * listing::MAX_CONTENT_BYTES + (64 << 10);

/// The body of an offer. It counts against the client's memory limit until the offer is stored.
pub struct OfferBody(Vec<u8>, Option<Permit>);

impl Argument for OfferBody {
    /// Limit on the body. A larger body is answered with 400, like any content that is too long.
    const BODY: Option<Body> = Some(Body { max: MAX_BODY, refusal: 400 });

    async fn of(asked: Asked<'_>) -> Result<Self, ApiError> {
        match hold_request(&asked.app.request, MAX_BODY).await {
            Ok((body, held)) => Ok(Self(body, held)),
            Err(BodyError::TooLarge(_)) => Err(ErrorAnswer::bad_request(listing::content_too_long()).into()),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(test)]
    fn describe(operation: Operation<'_>) -> Operation<'_> {
        operation.body::<api_types::NewListing>("application/json").fails(&[400])
    }
}

/// Creates a listing for the session's owner, or for the signer of the proof.
pub async fn create(app: &App, seller: Seller, OfferBody(body, _held): OfferBody) -> Result<Response, ApiError> {
    app.ample_room().await?;
    let offer = NewListing::read(&body, seller.owner()).map_err(ErrorAnswer::bad_request)?;
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
            QuotaExceeded::Today { retry_after_s, .. } => ErrorAnswer::unavailable_for(retry_after_s, quota).into(),
            _ => ErrorAnswer::bad_request(quota).into(),
        }),
    }
}
