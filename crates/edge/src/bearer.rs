//! Bearer tokens (RFC 6750): read from a request, compared in constant time.

use crate::serve::Request;
use cardano::ContentHash;
use subtle::ConstantTimeEq;

/// What a request's `Authorization` presents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bearer {
    /// No such header.
    Absent,
    /// A header that carries no bearer token.
    Malformed,
    Token(String),
}

impl Bearer {
    /// Reads a request's header.
    ///
    /// # Errors
    /// The runtime gives no headers.
    pub fn of(request: &Request) -> worker::Result<Self> {
        Ok(Self::parse(request.headers().get("authorization")?.as_deref()))
    }

    /// Reads a header's value. The scheme may be spelled in any case (RFC 9110, 11.1).
    #[must_use]
    pub fn parse(header: Option<&str>) -> Self {
        let Some(header) = header else { return Self::Absent };
        match header.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() => {
                Self::Token(token.trim().to_owned())
            }
            _ => Self::Malformed,
        }
    }
}

/// A token that both sides know, as its hash: what is compared has one length whatever is presented.
pub struct SharedToken(ContentHash);

impl SharedToken {
    /// A token of at least `min` characters.
    #[must_use]
    pub fn new(token: &str, min: usize) -> Option<Self> {
        (token.chars().count() >= min).then(|| Self(ContentHash::of(token.as_bytes())))
    }

    /// Whether this is the token. In constant time, as far as the token is concerned.
    #[must_use]
    pub fn admits(&self, presented: &Bearer) -> bool {
        match presented {
            Bearer::Absent | Bearer::Malformed => false,
            Bearer::Token(token) => self.0.as_bytes().ct_eq(ContentHash::of(token.as_bytes()).as_bytes()).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "a token of 24 characters";

    #[test]
    fn a_token_below_the_least_length_is_refused() {
        assert!(SharedToken::new(TOKEN, 24).is_some());
        assert!(SharedToken::new(&TOKEN[1..], 24).is_none());
        // Characters, not bytes.
        assert!(SharedToken::new(&"é".repeat(23), 24).is_none());
    }

    #[test]
    fn only_the_whole_token_is_admitted() {
        let token = SharedToken::new(TOKEN, 24).unwrap();
        let admits = |header: Option<&str>| token.admits(&Bearer::parse(header));
        assert!(admits(Some(&format!("Bearer {TOKEN}"))));
        assert!(admits(Some(&format!("bearer {TOKEN}"))));
        for header in [
            String::new(),
            TOKEN.to_owned(),
            format!("Basic {TOKEN}"),
            format!("Bearer {}", &TOKEN[1..]),
            format!("Bearer {TOKEN}x"),
            "Bearer ".to_owned(),
            format!("Bearer{TOKEN}"),
        ] {
            assert!(!admits(Some(&header)), "{header}");
        }
        assert!(!admits(None));
    }
}
