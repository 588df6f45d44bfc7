//! Fetches documents that clients publish: metadata under their client id, and key sets. Strangers choose the URLs, so
//! fetching is restricted.
//!
//! Source: draft-ietf-oauth-client-id-metadata-document-00, sections 3 and 6; MCP 2026-07-28, security considerations.

use market::public_host::is_public_name;
use serde::{Deserialize, Serialize};
use sql::{Database, DatabaseError, Write};
use url::{Host, Url};

use super::{ErrorCode, OAuthError, Server};

/// Maximum size of a document, in bytes. The draft suggests 5 kB; documents with many redirect URIs are slightly
/// larger.
pub const MAX_DOCUMENT_BYTES: usize = 10 * 1_024;
/// Timeout of a fetch, in ms. MCP clients wait only 10 s for each step of the sign-in.
pub const FETCH_MS: u32 = 4_000;
/// Maximum length of a document's URL, in bytes.
pub const MAX_DOCUMENT_URL: usize = 512;
/// Minimum time for which a document is cached, in ms.
const MIN_FRESH_MS: u64 = 5 * 60 * 1_000;
/// Maximum time for which a document is cached, in ms, so that withdrawn keys are dropped and the table stays small.
const MAX_FRESH_MS: u64 = 60 * 60 * 1_000;

/// Maximum number of cached documents. Anyone may publish any number of documents, so once the cache is full, other
/// documents are fetched again for each use.
const MAX_KEPT: u32 = 500;

/// A URL that the service may fetch. The scheme is https, the host name is public, and there is a path, but no user
/// information, port or fragment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DocumentUrl(Url);

/// Reason why a URL may not be fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must {0}")]
pub struct DocumentUrlError(String);

impl DocumentUrl {
    /// Returns whether a client id looks like the URL of a metadata document.
    #[must_use]
    pub fn looks_like_one(client_id: &str) -> bool {
        client_id.contains("://")
    }

    /// Parses a URL that the service may fetch.
    ///
    /// # Errors
    /// Returns the first rule that the URL breaks.
    pub fn parse(text: &str) -> Result<Self, DocumentUrlError> {
        let refused = |rule: &str| DocumentUrlError(rule.to_owned());
        let malformed =
            || refused(&format!("be an https URL of at most {MAX_DOCUMENT_URL} bytes in its normal spelling"));
        let url = Url::parse(text).map_err(|_| malformed())?;
        // The parser normalises dot segments and much else. Text that it changed is rejected.
        if text.len() > MAX_DOCUMENT_URL || url.scheme() != "https" || url.as_str() != text {
            return Err(malformed());
        }
        let parts = !url.username().is_empty() || url.password().is_some() || url.port().is_some();
        if parts || url.fragment().is_some() {
            return Err(refused("not contain a user name, a port or a fragment"));
        }
        if url.path() == "/" {
            return Err(refused("have a path"));
        }
        match url.host() {
            Some(Host::Domain(host)) if is_public_name(host) => Ok(Self(url)),
            _ => Err(refused("be on a public host name")),
        }
    }

    /// Returns the URL as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    #[must_use]
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }
}

impl TryFrom<String> for DocumentUrl {
    type Error = DocumentUrlError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<DocumentUrl> for String {
    fn from(url: DocumentUrl) -> Self {
        url.0.into()
    }
}

/// A response to the fetch of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// HTTP status. Redirects are not followed, so a redirect is returned as 3xx.
    pub status: u16,
    /// Value of the header `Content-Type`.
    pub content_type: String,
    /// Value of `max-age` in `Cache-Control`, in seconds; 0 for `no-store` and `no-cache`; `None` without the header.
    pub max_age_s: Option<u64>,
    /// Body of the response, truncated to one byte more than [`MAX_DOCUMENT_BYTES`], so that its length tells whether
    /// the body is too long.
    pub body: Vec<u8>,
}

/// The fetch got no response, because of the network or a timeout. The text is for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FetchError(pub String);

/// Fetches documents that strangers publish. An implementation follows no redirects, sends no credentials, and reaches
/// no private network. It reads at most one byte more than [`MAX_DOCUMENT_BYTES`], and times out after [`FETCH_MS`].
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait Documents {
    /// Sends a GET request with an `Accept` header for JSON.
    async fn get(&self, url: &DocumentUrl) -> Result<Fetched, FetchError>;
}

/// A cached document, with the time at which it was fetched and the time until which it is fresh (POSIX ms).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct StoredDocument {
    pub body: String,
    pub fetched_at_ms: u64,
    pub fresh_until_ms: u64,
}

impl<D: Database, W: Documents, J> Server<'_, D, W, J> {
    /// Returns the cached document of a URL, fresh or stale, or `None` if it is not cached.
    pub(super) async fn stored_document(&self, url: &DocumentUrl) -> Result<Option<StoredDocument>, DatabaseError> {
        let read =
            sql::read!("SELECT body, fetched_at_ms, fresh_until_ms FROM oauth_documents WHERE url = ?1", url.as_str());
        self.db.fetch(read).await
    }

    /// Fetches a document, and returns it with the time in ms for which it is fresh. The caller validates the document
    /// and caches it with [`keep_document`](Self::keep_document).
    ///
    /// # Errors
    /// `temporarily_unavailable` for a temporary failure: no response, a busy server, or a firewall's HTML page in
    /// place of the document. `invalid_client` if there is no such document, if it is too large, or if it is not JSON
    /// in UTF-8.
    pub(super) async fn fetch_document(&self, url: &DocumentUrl) -> Result<(String, u64), OAuthError> {
        let refused = |why: &str| {
            OAuthError::new(
                ErrorCode::InvalidClient,
                format!("the client's document at {url} {why}", url = url.as_str()),
            )
        };
        let passing = || {
            let text = "cannot be fetched just now: connect again in some seconds, or register the client (POST /oauth/register)";
            OAuthError { code: ErrorCode::TemporarilyUnavailable, ..refused(text) }
        };
        let fetched = self.documents.get(url).await.map_err(|_| passing())?;
        if matches!(fetched.status, 403 | 408 | 425 | 429 | 500..)
            || (fetched.status == 200 && is_page(&fetched.content_type))
        {
            return Err(passing());
        }
        if fetched.status != 200 {
            return Err(refused("does not answer 200 (redirects are not followed)"));
        }
        if !is_json(&fetched.content_type) {
            return Err(refused("is not application/json"));
        }
        if fetched.body.len() > MAX_DOCUMENT_BYTES {
            return Err(refused("is too large"));
        }
        let body = String::from_utf8(fetched.body).map_err(|_| refused("is not UTF-8"))?;
        let fresh_ms = fetched.max_age_s.unwrap_or_default().saturating_mul(1_000).clamp(MIN_FRESH_MS, MAX_FRESH_MS);
        Ok((body, fresh_ms))
    }

    /// Caches a valid document, unless too many fresh documents are cached already.
    pub(super) async fn keep_document(
        &self,
        url: &DocumentUrl,
        (body, fresh_ms): (&str, u64),
    ) -> Result<(), DatabaseError> {
        let make_room: Write = sql::write!(
            "DELETE FROM oauth_documents WHERE url IN (SELECT url FROM oauth_documents WHERE fresh_until_ms <= ?1 \
               ORDER BY fresh_until_ms LIMIT max(0, (SELECT count(*) FROM oauth_documents) + 1 - ?2))",
            self.now_ms,
            MAX_KEPT,
        );
        let keep: Write = sql::write!(
            "INSERT INTO oauth_documents (url, body, fetched_at_ms, fresh_until_ms) SELECT ?1, ?2, ?3, ?4 \
             WHERE (SELECT count(*) FROM oauth_documents WHERE url <> ?1) < ?5 ON CONFLICT (url) DO UPDATE SET body = excluded.body, fetched_at_ms = excluded.fetched_at_ms, \
               fresh_until_ms = excluded.fresh_until_ms",
            url.as_str(),
            body,
            self.now_ms,
            self.now_ms.saturating_add(fresh_ms),
            MAX_KEPT,
        );
        self.db.batch((make_room, keep)).await.map(drop)
    }
}

fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn is_page(content_type: &str) -> bool {
    essence(content_type) == "text/html"
}

fn is_json(content_type: &str) -> bool {
    let essence = essence(content_type);
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}
