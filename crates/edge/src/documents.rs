//! Fetches documents that clients publish, without redirects or credentials, and with limits on size and time.
//!
//! The `agents` crate checks the URLs. The runtime itself reaches only public addresses.

use std::time::Duration;

use agents::oauth::document::{DocumentUrl, Documents, FETCH_MS, FetchError, Fetched, MAX_DOCUMENT_BYTES};
use worker::{Fetch, Headers, Method, Request, RequestInit, RequestRedirect};

use crate::http::{self, CallError};

/// A client that fetches the documents that OAuth clients publish.
#[derive(Clone, Copy, Debug)]
pub struct FetchedDocuments;

fn request(url: &DocumentUrl) -> worker::Result<Request> {
    let headers = Headers::new();
    headers.set("accept", "application/json")?;
    let mut init = RequestInit::new();
    init.with_method(Method::Get).with_headers(headers).with_redirect(RequestRedirect::Manual);
    Request::new_with_init(url.as_str(), &init)
}

/// Parses `max-age` from a `Cache-Control` header. Returns 0 if the header forbids caching.
fn max_age(cache_control: &str) -> Option<u64> {
    let directives = || cache_control.split(',').map(|directive| directive.trim().to_ascii_lowercase());
    if directives().any(|directive| directive == "no-store" || directive == "no-cache") {
        return Some(0);
    }
    directives().find_map(|directive| directive.strip_prefix("max-age=")?.parse().ok())
}

impl Documents for FetchedDocuments {
    async fn get(&self, url: &DocumentUrl) -> Result<Fetched, FetchError> {
        let request = request(url).map_err(|error| FetchError(error.to_string()))?;
        let fetched = http::within(Duration::from_millis(FETCH_MS.into()), async |signal| {
            let response = Fetch::Request(request).send_with_signal(&signal).await;
            let response = response.map_err(|_| CallError::Connection)?;
            let header = |name| response.headers().get(name).ok().flatten().unwrap_or_default();
            let (content_type, max_age_s) = (header("content-type"), max_age(&header("cache-control")));
            let answer = http::answer(response, MAX_DOCUMENT_BYTES).await?;
            Ok(Fetched { status: answer.status, content_type, max_age_s, body: answer.body })
        });
        fetched.await.map_err(|error| FetchError(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_control_decides_how_long_a_document_is_kept() {
        for (header, expected) in [
            ("", None),
            ("public, max-age=3600", Some(3_600)),
            ("Max-Age=60", Some(60)),
            ("no-store, max-age=60", Some(0)),
            ("no-cache", Some(0)),
            ("max-age=soon", None),
        ] {
            assert_eq!(max_age(header), expected, "{header}");
        }
    }
}
