//! Cross-origin requests: the API is public and carries no cookies, so any page may call it.

use edge::serve::{HeaderList, Request, Response};
use worker::Result;

use crate::error::ApiError;

/// Answers' headers that pages may read.
const EXPOSED: &str = "PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-Service-Purchase, ETag, Link, Retry-After, WWW-Authenticate, Mcp-Session-Id, X-Request-Id";
/// Requests' headers that pages may send, where they do not say which.
const ALLOWED: &str = "Authorization, Content-Type, Accept, If-None-Match, PAYMENT-SIGNATURE, X-Service-Proof, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id";
/// Bytes of a list of headers that is answered.
const MAX_ASKED: usize = 2_048;

/// Lets any page read the answer.
pub fn allow(headers: &mut HeaderList) {
    headers.put("access-control-allow-origin", "*");
    headers.put("access-control-expose-headers", EXPOSED);
}

/// The answer to a browser's question before a request. Whatever headers it asks for are allowed: without cookies none of
/// them opens anything by itself, and clients' libraries add their own (`Idempotency-Key`, `Last-Event-ID`, tracing).
pub fn preflight(methods: &str, request: &Request) -> Result<Response, ApiError> {
    let asked = request.headers().get("access-control-request-headers")?;
    let is_list = |text: &String| {
        text.len() <= MAX_ASKED && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~, ".contains(&b))
    };
    let allowed = asked.filter(is_list).unwrap_or_else(|| ALLOWED.to_owned());
    let answer = || -> Result<Response> {
        let mut response = Response::empty()?.with_status(204);
        let headers = response.headers_mut();
        headers.set("allow", methods)?;
        headers.set("access-control-allow-methods", methods)?;
        headers.set("access-control-allow-headers", &allowed)?;
        headers.set("vary", "Access-Control-Request-Headers")?;
        headers.set("access-control-max-age", "86400")?;
        Ok(response)
    };
    Ok(answer()?)
}
