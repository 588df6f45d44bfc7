//! Redirect URIs of clients: https, or a program on the browser's machine, reached by a loopback address or the
//! program's own scheme.

use std::fmt;

use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// Maximum length of a redirect URI, in bytes. Real clients use fewer than 200.
pub const MAX_REDIRECT_URI: usize = 1_024;

/// URI schemes of editors. They are accepted although they contain no domain, because editors used them before RFC 8252
/// required one.
const EDITORS: [&str; 3] = ["cursor", "vscode", "vscode-insiders"];

/// A redirect URI in canonical form, without user information and fragment (RFC 6749, section 3.1.2).
///
/// The scheme is https, http to loopback (RFC 8252, section 7.3), or a program's own (section 7.1): a reversed domain,
/// or one of [`EDITORS`]. Because another program may claim such a scheme or loopback port, every client must use PKCE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RedirectUri {
    text: String,
    url: Url,
}

/// Reason why a text is not an acceptable redirect URI.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("redirect URIs {0}")]
pub struct RedirectUriError(String);

impl RedirectUri {
    /// Parses a redirect URI.
    ///
    /// # Errors
    /// Returns the rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, RedirectUriError> {
        let refused = |rule: &str| RedirectUriError(rule.to_owned());
        let malformed = || refused("must be absolute URLs in their normal spelling");
        if text.len() > MAX_REDIRECT_URI {
            return Err(refused(&format!("have at most {MAX_REDIRECT_URI} bytes")));
        }
        let url = Url::parse(text).map_err(|_| malformed())?;
        let allowed = url.scheme() == "https" || (url.scheme() == "http" && is_loopback(&url));
        if !allowed && !is_private_use(&url) {
            return Err(refused(
                "must be https, loopback (http://127.0.0.1, http://[::1], http://localhost) or a program's own scheme with a \
                 reversed domain (com.example.app:/callback)",
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("must not contain a user name or password"));
        }
        if url.fragment().is_some() {
            return Err(refused("must not contain a fragment"));
        }
        // Browsers parse URLs like this parser. Text that it had to normalise may be read differently by others.
        let normal = url.as_str() == text || url.as_str().strip_suffix('/') == Some(text);
        if !normal {
            return Err(malformed());
        }
        Ok(Self { text: text.to_owned(), url })
    }

    /// Returns the redirect URI as text, as the client registered it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the host and port, by which people recognise the recipient. If the address has a private-use scheme,
    /// such as `com.example.app:`, returns the scheme.
    #[must_use]
    pub fn host(&self) -> String {
        if is_private_use(&self.url) {
            return format!("{}:", self.url.scheme());
        }
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Returns whether the URI leads to a program on the browser's own machine. The consent page then warns the owner,
    /// because any program on that machine could have started the sign-in.
    #[must_use]
    pub fn is_local(&self) -> bool {
        is_loopback(&self.url) || is_private_use(&self.url)
    }

    /// Returns whether this URI matches a registered one. The two must be equal, except that the port of a loopback
    /// address may differ, because clients choose the port when they start (RFC 8252, section 7.3).
    #[must_use]
    pub fn matches(&self, registered: &Self) -> bool {
        if self.text == registered.text {
            return true;
        }
        let (this, that) = (&self.url, &registered.url);
        let both_loopback =
            this.scheme() == "http" && that.scheme() == "http" && is_loopback(this) && is_loopback(that);
        both_loopback && this.host() == that.host() && this.path() == that.path() && this.query() == that.query()
    }

    /// Returns the URI with parameters added to its query.
    #[must_use]
    pub fn with(&self, parameters: &[(&str, &str)]) -> String {
        let mut url = self.url.clone();
        url.query_pairs_mut().extend_pairs(parameters);
        url.into()
    }
}

impl fmt::Display for RedirectUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for RedirectUri {
    type Error = RedirectUriError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<RedirectUri> for String {
    fn from(uri: RedirectUri) -> Self {
        uri.text
    }
}

/// Returns whether a URL's scheme is a program's own: a reversed domain (RFC 8252, section 7.1), or one of [`EDITORS`].
fn is_private_use(url: &Url) -> bool {
    url.scheme().contains('.') || EDITORS.contains(&url.scheme())
}

/// Returns whether a URL's host is the machine itself: a loopback address, or `localhost`.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}
