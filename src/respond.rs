//! Answers of a type, answers with validators.

use edge::{
    answer::{self, Fault},
    serve::{Request, Response},
};
use serde::Serialize;
use worker::Result;

use crate::error::ApiError;

/// An answer for one client alone.
pub fn private(value: &impl Serialize) -> std::result::Result<Response, ApiError> {
    Ok(answer::private_json(serde_json::to_string(value).map_err(Fault::in_making("an answer"))?))
}

/// Puts a validator on an answer that may be kept if it is asked for again each time.
pub fn tagged(response: Response, etag: &str) -> Response {
    response.with_header("etag", etag).with_header("cache-control", "public, no-cache")
}

/// 304, when the client has what this validator names.
pub fn not_modified(request: &Request, etag: &str) -> Result<Option<Response>> {
    let known = request.headers().get("if-none-match")?.unwrap_or_default();
    let matches = known.split(',').map(str::trim).any(|tag| tag == "*" || weak(tag) == weak(etag));
    Ok(matches.then(|| tagged(Response::empty(304), etag)))
}

/// A redirect to this address with another path: 308 keeps method and body (RFC 9110, 15.4.9).
pub fn moved(request: &Request, path: &str) -> Response {
    let query = request.query().map(|query| format!("?{query}")).unwrap_or_default();
    Response::empty(308).with_header("location", format!("{path}{query}"))
}

/// If-None-Match compares weakly (RFC 9110, 13.1.2).
fn weak(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// Says where the next page is, if there is one: the same address with another cursor (RFC 8288).
pub fn linked(response: Response, request: &Request, next: Option<&str>) -> Result<Response> {
    let Some(cursor) = next else { return Ok(response) };
    let mut url = request.url()?;
    let others: Vec<(String, String)> =
        url.query_pairs().filter(|(name, _)| name != "cursor").map(|(n, v)| (n.into_owned(), v.into_owned())).collect();
    url.query_pairs_mut().clear().extend_pairs(others).append_pair("cursor", cursor);
    Ok(response.with_header("link", format!("<{url}>; rel=\"next\"")))
}
