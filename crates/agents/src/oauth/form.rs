//! Parameters of a query or of an `application/x-www-form-urlencoded` body (RFC 6749, section 3).

use super::OAuthError;

/// Maximum size of a query or form body in bytes. The longest legitimate requests have a few kilobytes.
pub const MAX_FORM_BYTES: usize = 16 * 1_024;
/// Maximum number of parameters of a form. OAuth requests have about ten.
const MAX_PARAMETERS: usize = 32;

/// Parameters of a form, each at most once except `resource` (RFC 8707).
#[derive(Debug)]
pub struct Form(Vec<(String, String)>);

impl Form {
    /// Parses the parameters. A parameter without a value counts as absent (RFC 6749, section 3.1).
    pub(super) fn parse(encoded: &str) -> Result<Self, OAuthError> {
        if encoded.len() > MAX_FORM_BYTES {
            return Err(OAuthError::invalid_request("the request is too large"));
        }
        let mut parameters: Vec<(String, String)> = Vec::new();
        for (name, value) in url::form_urlencoded::parse(encoded.as_bytes()) {
            if name != "resource" && parameters.iter().any(|(known, _)| *known == name) {
                return Err(OAuthError::invalid_request("a parameter is there more than once"));
            }
            parameters.push((name.into_owned(), value.into_owned()));
            if parameters.len() > MAX_PARAMETERS {
                return Err(OAuthError::invalid_request("the request has too many parameters"));
            }
        }
        parameters.retain(|(_, value)| !value.is_empty());
        Ok(Self(parameters))
    }

    /// Returns a parameter, or `None` if it is absent.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Returns every value of a parameter.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns a mandatory parameter, whose value may have at most `max_bytes`.
    pub(super) fn required(&self, name: &str, max_bytes: usize) -> Result<&str, OAuthError> {
        let value = self.optional(name, max_bytes)?;
        value.ok_or_else(|| OAuthError::invalid_request(format!("{name} is missing")))
    }

    /// Returns an optional parameter, whose value may have at most `max_bytes`, or `None` if it is absent.
    pub(super) fn optional(&self, name: &str, max_bytes: usize) -> Result<Option<&str>, OAuthError> {
        match self.get(name) {
            Some(value) if value.len() > max_bytes => {
                Err(OAuthError::invalid_request(format!("{name} is longer than {max_bytes} bytes")))
            }
            value => Ok(value),
        }
    }
}
