//! `GET /listings`, `POST /listings`, `GET /listings/{id}`

use std::{cell::RefCell, rc::Rc};

use cardano::ContentHash;
use market::{
    ListingId,
    catalogue::{self, Filter},
};
use worker::{Request, Response};

use crate::{app::App, error::ApiError, respond};

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

/// A new listing.
pub async fn create(_app: &App, _request: Request) -> Result<Response, ApiError> {
    Err(ApiError::unauthorized("sign in, or sign the offer with the seller's wallet (X-Service-Proof)"))
}
