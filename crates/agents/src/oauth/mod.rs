//! The authorization server for `/mcp`: OAuth 2.1 with PKCE, for public clients and clients with keys.
//!
//! ```text
//!   GET /oauth/authorize   Server::consent_request: a ConsentRequest, sealed into the page; nothing is stored
//!   GET /oauth/challenge   Server::challenge: the challenge for the owner's wallet
//!   POST /oauth/approve    Server::check, Server::grant: one row in `oauth_grants`, a code
//!   POST /oauth/token      Server::exchange: increments the row's generation
//!   POST /oauth/revoke     Server::revoke_token: revokes the row
//!   POST /mcp              Server::caller: looks up the access token
//! ```
//!
//! Sources: RFC 6749, 7009, 7523, 7591, 7636, 8252, 8414, 8707, 9207, 9728,
//! draft-ietf-oauth-client-id-metadata-document-00, and the authorization pages of MCP's revisions.

pub mod approve;
pub mod assertion;
pub mod authorize;
pub mod client;
pub mod document;
mod error;
pub mod exchange;
mod form;
pub mod grant;
mod metadata;
pub mod page;
mod redirect;
mod revoke;
mod token;

pub use api_types::{OAuthErrorCode as ErrorCode, Scope};
pub use error::OAuthError;
pub use redirect::{RedirectUri, RedirectUriError};
pub use token::{GrantId, Secrets, TokenKind, TokenSecretError};

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod races;
#[cfg(test)]
mod testing;

/// Identifiers of the authorization server (issuer) and of its protected resource, with the server's secrets. The
/// identifiers are byte-identical in every document, redirect and challenge.
#[derive(Clone, Debug)]
pub struct Authority {
    issuer: String,
    resource: String,
    secrets: Secrets,
}

/// The authorization server for one request, with the database, the clock and the services that it uses.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a, D, W, J> {
    /// Identifiers of the server and its secrets.
    pub authority: &'a Authority,
    pub db: &'a D,
    /// Fetches documents that clients publish.
    pub documents: &'a W,
    /// Verifies clients' signatures.
    pub jws: &'a J,
    /// Current time, in POSIX milliseconds.
    pub now_ms: u64,
}

/// The configured base URL cannot be an OAuth issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an origin: https://host without path, query and trailing slash (http for loopback only)")]
pub struct IssuerError;

impl Authority {
    /// Creates the authority for a base URL (an origin without trailing slash). The protected resource is `/mcp` at
    /// this origin.
    ///
    /// # Errors
    /// [`IssuerError`] if the URL is not a canonical origin (RFC 8414 section 2: no query, no fragment).
    pub fn new(base: &str, secrets: Secrets) -> Result<Self, IssuerError> {
        let url = url::Url::parse(base).map_err(|_| IssuerError)?;
        let secure = url.scheme() == "https" || (url.scheme() == "http" && redirect::is_loopback(&url));
        if !secure || url.origin().ascii_serialization() != base {
            return Err(IssuerError);
        }
        Ok(Self { issuer: base.to_owned(), resource: format!("{base}/mcp"), secrets })
    }

    /// Returns the issuer identifier (RFC 8414), which is the origin.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns the protected resource (RFC 8707, RFC 9728): the MCP endpoint with sign-in.
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// Returns the URL of the token endpoint, which clients may name as the audience of assertions.
    #[must_use]
    pub fn token_endpoint(&self) -> String {
        format!("{}/oauth/token", self.issuer)
    }

    /// Returns whether a `resource` parameter names this service: by the resource's URL, or, as some clients do, by the
    /// origin, with or without a trailing slash. Scheme and host may be in upper case.
    #[must_use]
    pub fn is_resource(&self, text: &str) -> bool {
        let bare = text.strip_suffix('/').unwrap_or(text);
        // A parser would also tolerate tabs, backslashes and dot segments. Only the case of letters may differ.
        [&self.resource, &self.issuer].into_iter().any(|ours| {
            bare.eq_ignore_ascii_case(ours)
                && url::Url::parse(bare).is_ok_and(|url| url.as_str().trim_end_matches('/') == ours)
        })
    }

    pub(crate) const fn secrets(&self) -> &Secrets {
        &self.secrets
    }
}
