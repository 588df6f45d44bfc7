//! Cross-origin requests. Any page may call the API, because it is public and uses no cookies.

use edge::serve::{Request, Response};

use crate::error::ApiError;

/// Response headers that scripts of other origins may read.
const EXPOSED: &str = "PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-Service-Purchase, ETag, Link, Retry-After, WWW-Authenticate, Mcp-Session-Id, X-Request-Id";
/// Request headers to allow if a preflight request names none.
const ALLOWED: &str = "Authorization, Content-Type, Accept, If-None-Match, PAYMENT-SIGNATURE, X-Service-Proof, SIGN-IN-WITH-X, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id";
/// Maximum length in bytes of the list of request headers in a preflight request.
const MAX_ASKED: usize = 2_048;

/// Allows scripts of any origin to read the response.
pub fn allow(response: Response) -> Response {
    response.with_header("access-control-allow-origin", "*").with_header("access-control-expose-headers", EXPOSED)
}

/// Answers a preflight request. Every requested header is allowed, because client libraries add headers of their own
/// (`Idempotency-Key`, `Last-Event-ID`, tracing). This is safe, because the API uses no cookies.
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
