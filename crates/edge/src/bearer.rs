//! Bearer tokens (RFC 6750): parsing, and comparison in constant time.

use crate::serve::Request;
use cardano::ContentHash;
use subtle::ConstantTimeEq;

/// The contents of a request's `Authorization` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bearer {
    /// The request has no `Authorization` header.
    Absent,
    /// The header contains no bearer token.
    Malformed,
    Token(String),
}

impl Bearer {
    /// Parses a request's `Authorization` header.
    ///
    /// # Errors
    /// Returns an error if the runtime cannot read the request's headers.
    pub fn of(request: &Request) -> worker::Result<Self> {
        Ok(Self::parse(request.headers().get("authorization")?.as_deref()))
    }

    /// Parses the value of an `Authorization` header; `None` stands for a missing header. The scheme is
    /// case-insensitive (RFC 9110, section 11.1).
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

/// A shared secret token. Only its hash is stored, so that comparisons take the same time for tokens of any length.
pub struct SharedToken(ContentHash);

impl SharedToken {
    /// Creates a token, or returns `None` if `token` has fewer than `min` characters.
    #[must_use]
    pub fn new(token: &str, min: usize) -> Option<Self> {
        (token.chars().count() >= min).then(|| Self(ContentHash::of(token.as_bytes())))
    }

    /// Returns whether the client presented this token. The comparison takes constant time.
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
