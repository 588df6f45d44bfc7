//! Cross-origin requests: the API is public and carries no cookies, so any page may call it.

use edge::serve::{Request, Response};

use crate::error::ApiError;

/// Answers' headers that pages may read.
const EXPOSED: &str = "PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-Service-Purchase, ETag, Link, Retry-After, WWW-Authenticate, Mcp-Session-Id, X-Request-Id";
/// Requests' headers that pages may send, where they do not say which.
const ALLOWED: &str = "Authorization, Content-Type, Accept, If-None-Match, PAYMENT-SIGNATURE, X-Service-Proof, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id";
/// Bytes of a list of headers that is answered.
const MAX_ASKED: usize = 2_048;

/// Lets any page read the answer.
pub fn allow(response: Response) -> Response {
    response.with_header("access-control-allow-origin", "*").with_header("access-control-expose-headers", EXPOSED)
}

/// The answer to a browser's question before a request. Whatever headers it asks for are allowed: without cookies none of
/// them opens anything by itself, and clients' libraries add their own (`Idempotency-Key`, `Last-Event-ID`, tracing).
pub fn preflight(methods: &str, request: &Request) -> Result<Response, ApiError> {
    let asked = request.headers().get("access-control-request-headers")?;
    let is_list = |text: &String| {
        text.len() <= MAX_ASKED && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~, ".contains(&b))
    };
    let allowed = asked.filter(is_list).unwrap_or_else(|| ALLOWED.to_owned());
    Ok(Response::empty(204)
        .with_header("allow", methods)
        .with_header("access-control-allow-methods", methods)
        .with_header("access-control-allow-headers", allowed)
        .with_header("vary", "Access-Control-Request-Headers")
        .with_header("access-control-max-age", "86400"))
}
