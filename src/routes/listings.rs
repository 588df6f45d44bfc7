//! `GET /listings`, `POST /listings`, `GET /listings/{id}`

use sql::Database;
use std::{cell::RefCell, rc::Rc};

use cardano::{Address, ContentHash};
use edge::{
    ed25519::WebCrypto,
    http::{BodyError, read_request},
};
use market::{
    ListingId,
    account::{self, Account},
    catalogue::{self, Filter, Stored},
    listing::{self, NewListing},
    proof::{Proof, ProofError},
};
use serde_json::Value;
use worker::{Request, Response};

use crate::{app::App, error::ApiError, respond, session};

thread_local! {
    /// The whole catalogue as this isolate last read it, by its version. D1 is asked for the version each time.
    static CATALOGUE: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

#[derive(Clone)]
struct Kept {
    version: i64,
    json: Rc<str>,
}

/// Bytes of catalogue that an isolate keeps in its memory (of 128 MB).
const MAX_KEPT: usize = 8 << 20;

/// The catalogue, or the page of it that the query names.
pub async fn list(app: &App, request: &Request) -> Result<Response, ApiError> {
    let url = request.url()?;
    match Filter::from_query(url.query_pairs()).map_err(|error| ApiError::bad_request(error.to_string()))? {
        None => whole(app, request).await,
        Some(filter) => page(app, request, &filter).await,
    }
}

async fn whole(app: &App, request: &Request) -> Result<Response, ApiError> {
    let kept = CATALOGUE.with_borrow(Clone::clone);
    let read = catalogue::whole(&app.database()?, kept.as_ref().map(|kept| kept.version)).await?;
    let etag = format!("W/\"catalogue-{}\"", read.version);
    let json = match (read.json, kept) {
        (None, Some(kept)) => kept.json,
        (json, _) => {
            let json: Rc<str> = json.unwrap_or_default().into();
            let keep = (json.len() <= MAX_KEPT).then(|| Kept { version: read.version, json: json.clone() });
            CATALOGUE.set(keep);
            json
        }
    };
    match respond::not_modified(request, &etag)? {
        Some(response) => Ok(response),
        None => Ok(respond::tagged(respond::json(json.as_ref().to_owned())?, &etag)?),
    }
}

async fn page(app: &App, request: &Request, filter: &Filter) -> Result<Response, ApiError> {
    let page = catalogue::page(&app.database()?, filter).await?;
    let etag = format!("W/\"{}\"", ContentHash::of(page.json.as_bytes()));
    if let Some(response) = respond::not_modified(request, &etag)? {
        return Ok(response);
    }
    let mut response = respond::tagged(respond::json(page.json)?, &etag)?;
    if let Some(cursor) = page.next {
        let mut next = request.url()?;
        let pairs: Vec<(String, String)> = next
            .query_pairs()
            .filter(|(name, _)| name != "cursor")
            .map(|(n, v)| (n.into_owned(), v.into_owned()))
            .collect();
        next.query_pairs_mut().clear().extend_pairs(pairs).append_pair("cursor", &cursor);
        response.headers_mut().set("link", &format!("<{next}>; rel=\"next\""))?;
    }
    Ok(response)
}

/// One listing.
pub async fn show(app: &App, id: &str) -> Result<Response, ApiError> {
    let unknown = || ApiError::not_found("no such listing");
    let id: ListingId = id.parse().map_err(|_| unknown())?;
    let json = catalogue::one(&app.database()?, &id).await?.ok_or_else(unknown)?;
    Ok(respond::json(json)?)
}

/// Bytes of a new listing's body: its content, in which JSON may spell a byte with six, and all the rest.
const MAX_BODY: usize = 6 * listing::MAX_CONTENT_BYTES + (64 << 10);

/// A new listing: the session's owner sells, or the address that signed the offer.
pub async fn create(app: &App, mut request: Request) -> Result<Response, ApiError> {
    if let Some(token) = session::token(&request)? {
        let session = app.database()?.run(account::by_session(&token.hash(), app.now_ms())).await?;
        let account: Account = session.first_json()?.ok_or_else(|| ApiError::unauthorized(session::SIGN_IN))?;
        let owner = account.owner.parse().map_err(|error| ApiError::internal("owner", error))?;
        let offer = offer(&body(&mut request).await?, Some(owner))?;
        return store(app, &offer, None).await;
    }
    let header = request.headers().get("x-service-proof")?.ok_or_else(|| {
        ApiError::unauthorized("sign in, or sign the offer with the seller's wallet (header X-Service-Proof)")
    })?;
    let proof = Proof::from_header(&header).map_err(|error| ApiError::unauthorized(error.to_string()))?;
    let body = body(&mut request).await?;
    let offer = offer(&body, None)?;
    // What the wallet signed is the price as it was sent: it may begin with zeros.
    let price = body.get("priceLovelace").and_then(Value::as_str).unwrap_or_default();
    let digest = proof.listing_digest(&offer.content_hash(), price);
    let checked = if proof.address == offer.seller {
        proof.check(&WebCrypto, &digest, app.now_ms()).await
    } else {
        Err(ProofError::OtherAddress(offer.seller))
    };
    checked.map_err(|error| ApiError::unauthorized(error.to_string()))?;
    store(app, &offer, Some(&digest.to_string())).await
}

fn offer(body: &Value, seller: Option<Address>) -> Result<NewListing, ApiError> {
    NewListing::from_json(body, seller).map_err(|error| ApiError::bad_request(error.to_string()))
}

async fn store(app: &App, offer: &NewListing, proof: Option<&str>) -> Result<Response, ApiError> {
    let random = edge::random().map_err(|error| ApiError::internal("randomness", error))?;
    let id = ListingId::new(app.now_ms(), random);
    match catalogue::store(&app.database()?, &id, offer, proof, app.now_ms()).await? {
        Stored::Listing { id, json } => {
            let mut response = respond::json(json)?.with_status(201);
            response.headers_mut().set("location", &format!("/listings/{id}"))?;
            Ok(response)
        }
        Stored::OfferChanged => Err(ApiError::unauthorized(
            "this signature already made a listing with other words: sign the changed offer anew",
        )),
    }
}

async fn body(request: &mut Request) -> Result<Value, ApiError> {
    let body = read_request(request, MAX_BODY).await.map_err(|error| match error {
        BodyError::TooLarge(_) => {
            ApiError::bad_request(format!("content: must be at most {} bytes of UTF-8", listing::MAX_CONTENT_BYTES))
        }
        BodyError::Broken => error.into(),
    })?;
    serde_json::from_slice(&body).map_err(|error| ApiError::bad_request(format!("body: must be JSON ({error})")))
}
