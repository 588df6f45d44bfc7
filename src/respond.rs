//! Answers that are finished JSON texts, with their validators.

use worker::{Request, Response, Result};

/// A JSON text as it is.
pub fn json(text: String) -> Result<Response> {
    let mut response = Response::ok(text)?;
    response.headers_mut().set("content-type", "application/json")?;
    Ok(response)
}

/// Plain text that nobody but the payer may keep.
#[allow(dead_code, reason = "content routes follow")]
pub fn private_text(text: String) -> Result<Response> {
    let mut response = Response::ok(text)?;
    response.headers_mut().set("content-type", "text/plain; charset=utf-8")?;
    response.headers_mut().set("cache-control", "private, no-store")?;
    Ok(response)
}

/// Puts a validator on an answer that may be kept if it is asked for again each time.
pub fn tagged(mut response: Response, etag: &str) -> Result<Response> {
    response.headers_mut().set("etag", etag)?;
    response.headers_mut().set("cache-control", "public, no-cache")?;
    Ok(response)
}

/// 304, when the client has what this validator names.
pub fn not_modified(request: &Request, etag: &str) -> Result<Option<Response>> {
    let known = request.headers().get("if-none-match")?.unwrap_or_default();
    let matches = known.split(',').map(str::trim).any(|tag| tag == "*" || weak(tag) == weak(etag));
    if !matches {
        return Ok(None);
    }
    tagged(Response::empty()?.with_status(304), etag).map(Some)
}

/// If-None-Match compares weakly (RFC 9110, 13.1.2).
fn weak(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}
