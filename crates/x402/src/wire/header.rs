//! Base64 of JSON, in headers.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::object::Object;
use crate::json;

/// The header of a 402.
pub const PAYMENT_REQUIRED: &str = "PAYMENT-REQUIRED";
/// The header of a paid request.
pub const PAYMENT_SIGNATURE: &str = "PAYMENT-SIGNATURE";
/// The header of a settled answer.
pub const PAYMENT_RESPONSE: &str = "PAYMENT-RESPONSE";

/// Characters of a header that is decoded: a transaction of 16 KiB in base64 twice over is 29,128, requirements with
/// commitments and signatures a few thousand more.
pub const MAX_HEADER_BYTES: usize = 48 * 1024;

/// Bytes that base64 takes together.
const GROUP: usize = 3;

/// Why a header's value cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// More than [`MAX_HEADER_BYTES`].
    #[error("it is longer than {MAX_HEADER_BYTES} characters")]
    TooLong,
    /// Not base64 with the standard alphabet and padding.
    #[error("it is not base64 (standard alphabet, padded)")]
    NotBase64,
    /// Not JSON of the documented shape.
    #[error("{0}")]
    Json(String),
}

/// The header value of an x402 object.
///
/// # Errors
/// An object that has no JSON form; none of this crate's.
pub fn encode_header<T: Serialize>(object: &T) -> Result<String, HeaderError> {
    Ok(encode_json(&serde_json::to_string(object).map_err(HeaderError::json)?))
}

/// The header value of an x402 object's JSON text.
#[must_use]
pub fn encode_json(text: &str) -> String {
    STANDARD.encode(text)
}

/// A header value with a place for a text that is another each time.
#[derive(Clone, Debug)]
pub struct HeaderTemplate {
    before: String,
    after: String,
}

impl HeaderTemplate {
    /// The header value of an object in which this text stands for the other: in base64's letters, as many as make whole
    /// groups, and only there.
    ///
    /// # Errors
    /// An object that has no JSON form, or none with the place in it.
    pub fn new<T: Serialize>(object: &T, place: &str) -> Result<Self, HeaderError> {
        let text = serde_json::to_string(object).map_err(HeaderError::json)?;
        let nowhere = || HeaderError::Json("the place is not in it".to_owned());
        let (before, after) =
            text.split_once(place).filter(|_| place.len().is_multiple_of(GROUP)).ok_or_else(nowhere)?;
        // White space before the object changes nothing but where groups begin.
        let padding = before.len().next_multiple_of(GROUP).saturating_sub(before.len());
        let before = STANDARD.encode(format!("{}{before}", " ".repeat(padding)));
        Ok(Self { before, after: STANDARD.encode(after) })
    }

    /// The value with a text of the same length.
    #[must_use]
    pub fn with(&self, text: &str) -> String {
        [&self.before, &*STANDARD.encode(text), &self.after].concat()
    }
}

/// The x402 object in a header's value. No object within it may have a name twice.
///
/// # Errors
/// Each way in which it is not one.
pub fn decode_header<T: DeserializeOwned>(value: &str) -> Result<T, HeaderError> {
    let Object(object) = Object::deserialize(&decode_json(value)?).map_err(HeaderError::json)?;
    Ok(object)
}

/// The JSON in a header's value.
pub(super) fn decode_json(value: &str) -> Result<Value, HeaderError> {
    if value.len() > MAX_HEADER_BYTES {
        return Err(HeaderError::TooLong);
    }
    json::parse(&STANDARD.decode(value).map_err(|_| HeaderError::NotBase64)?).map_err(HeaderError::json)
}

impl HeaderError {
    fn json(error: impl ToString) -> Self {
        Self::Json(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_template_is_the_header_with_the_text_in_its_place() {
        for title in ["", "a", "ab", "abc"] {
            let object = |secret: &str| json!({ "after": title, "secret": secret, "title": title });
            let template = HeaderTemplate::new(&object("place."), "place.").unwrap();
            for secret in ["secret", "others"] {
                assert_eq!(decode_header::<Value>(&template.with(secret)).unwrap(), object(secret));
            }
        }
        assert!(HeaderTemplate::new(&json!({ "secret": "" }), "place.").is_err());
        assert!(HeaderTemplate::new(&json!({ "secret": "place" }), "place").is_err());
    }
}
