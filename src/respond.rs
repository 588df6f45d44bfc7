//! JSON answers, and conditional requests.

use edge::{
    answer::Fault,
    serve::{Request, Response},
};
use serde::Serialize;
use worker::Result;

use crate::error::ApiError;

/// Creates a JSON response.
pub fn json(value: &impl Serialize) -> std::result::Result<Response, ApiError> {
    Ok(Response::json(serde_json::to_string(value).map_err(Fault::inconsistent("an answer"))?))
}

/// Creates a JSON response that must not be cached.
pub fn private(value: &impl Serialize) -> std::result::Result<Response, ApiError> {
    Ok(json(value)?.with_header("cache-control", "no-store"))
}

/// Adds an ETag to a response that caches must revalidate.
pub fn tagged(response: Response, etag: &str) -> Response {
    response.with_header("etag", etag).with_header("cache-control", "public, no-cache")
}

/// Returns a 304 response if the client already has the version with this ETag, or else `None`.
pub fn not_modified(request: &Request, etag: &str) -> Result<Option<Response>> {
    let known = request.headers().get("if-none-match")?.unwrap_or_default();
    let matches = known.split(',').map(str::trim).any(|tag| tag == "*" || weak(tag) == weak(etag));
    Ok(matches.then(|| tagged(Response::empty(304), etag)))
}

/// Redirects to another path with status 308, which keeps method and body (RFC 9110, 15.4.9).
pub fn moved(request: &Request, path: &str) -> Response {
    let query = request.query().map(|query| format!("?{query}")).unwrap_or_default();
    Response::empty(308).with_header("location", format!("{path}{query}"))
}

/// Removes the prefix `W/` of a weak ETag, because If-None-Match compares weakly (RFC 9110, 13.1.2).
fn weak(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// Adds a link to the next page: the same address with another cursor (RFC 8288).
pub fn linked(response: Response, request: &Request, next: Option<&str>) -> Result<Response> {
    let Some(cursor) = next else { return Ok(response) };
    let mut url = request.url()?;
    let others: Vec<(String, String)> =
        url.query_pairs().filter(|(name, _)| name != "cursor").map(|(n, v)| (n.into_owned(), v.into_owned())).collect();
    url.query_pairs_mut().clear().extend_pairs(others).append_pair("cursor", cursor);
    Ok(response.with_header("link", format!("<{url}>; rel=\"next\"")))
}
