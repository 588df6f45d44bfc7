//! Cross-origin requests: the API is public and carries no cookies, so any page may call it.

use edge::serve::{HeaderList, Response};
use worker::Result;

use crate::error::ApiError;

/// Answers' headers that pages may read.
const EXPOSED: &str = "PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-Service-Purchase, ETag, Link, Retry-After, WWW-Authenticate, Mcp-Session-Id, X-Request-Id";
/// Requests' headers that pages may send.
const ALLOWED: &str = "Authorization, Content-Type, Accept, If-None-Match, PAYMENT-SIGNATURE, X-Service-Proof, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id";

/// Lets any page read the answer.
pub fn allow(headers: &mut HeaderList) {
    headers.put("access-control-allow-origin", "*");
    headers.put("access-control-expose-headers", EXPOSED);
}

/// The answer to a browser's question before a request.
pub fn preflight(methods: &str) -> Result<Response, ApiError> {
    let answer = || -> Result<Response> {
        let mut response = Response::empty()?.with_status(204);
        let headers = response.headers_mut();
        headers.set("allow", methods)?;
        headers.set("access-control-allow-methods", methods)?;
        headers.set("access-control-allow-headers", ALLOWED)?;
        headers.set("access-control-max-age", "86400")?;
        Ok(response)
    };
    Ok(answer()?)
}
