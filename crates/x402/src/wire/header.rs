//! Base64 of JSON, in headers.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{blanks::Blanks, object::Object};
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

/// Base64 with padding or without, as clients' libraries write it.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const ANY_STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const ANY_URL: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Why a header's value cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// More than [`MAX_HEADER_BYTES`].
    #[error("it is longer than {MAX_HEADER_BYTES} characters")]
    TooLong,
    /// Not base64, of the standard alphabet or of the one for URLs.
    #[error("it is not base64")]
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
    Ok(STANDARD.encode(serde_json::to_string(object).map_err(HeaderError::json)?))
}

/// A header value that is the same each time but for a few texts.
#[derive(Clone, Debug)]
pub struct HeaderTemplate {
    before: String,
    blanks: Blanks,
}

impl HeaderTemplate {
    /// The header value of an object in which these texts stand for others, once each.
    ///
    /// # Errors
    /// An object that has no JSON form, or none with these texts in it.
    pub fn new<T: Serialize>(object: &T, marks: &[&str]) -> Result<Self, HeaderError> {
        let text = serde_json::to_string(object).map_err(HeaderError::json)?;
        let blanks = Blanks::of(&text, marks);
        let blanks = blanks.ok_or_else(|| HeaderError::Json("not every mark stands in it once".to_owned()))?;
        // White space before the object changes nothing but where groups begin.
        let first = blanks.first();
        let padding = first.len().next_multiple_of(GROUP).saturating_sub(first.len());
        Ok(Self { before: STANDARD.encode(format!("{}{first}", " ".repeat(padding))), blanks })
    }

    /// The value with these texts, in the order of the marks. They are put into JSON as they are.
    #[must_use]
    pub fn with(&self, texts: &[&str]) -> String {
        let mut value = self.before.clone();
        STANDARD.encode_string(self.blanks.rest(texts), &mut value);
        value
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
    let bytes = ANY_STANDARD.decode(value).or_else(|_| ANY_URL.decode(value));
    json::parse(&bytes.map_err(|_| HeaderError::NotBase64)?).map_err(HeaderError::json)
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
    fn base64_is_read_in_either_alphabet_with_padding_or_without() {
        let object = json!({ "title": "\u{bf}\u{ff}???~~~\u{ff}\u{be}" });
        let written = encode_header(&object).unwrap();
        assert!(written.contains(['+', '/']) && written.ends_with('='), "{written}");
        let url = written.replace('+', "-").replace('/', "_");
        for spelling in [&*written, written.trim_end_matches('='), &url, url.trim_end_matches('=')] {
            assert_eq!(decode_header::<Value>(spelling).unwrap(), object, "{spelling}");
        }
        for broken in ["e30*", "e30==", "e 30", "+-e30"] {
            assert_eq!(decode_header::<Value>(broken), Err(HeaderError::NotBase64), "{broken}");
        }
    }

    #[test]
    fn a_template_is_the_header_with_the_texts_in_their_places() {
        for title in ["", "a", "ab", "abc"] {
            let object = |quote: &str, secret: &str| json!({ "quote": quote, "secret": secret, "title": title });
            let template = HeaderTemplate::new(&object("mark 1", "mark 2"), &["mark 2", "mark 1"]).unwrap();
            for (quote, secret) in [("quote", "secret"), ("another quote", "")] {
                assert_eq!(decode_header::<Value>(&template.with(&[secret, quote])).unwrap(), object(quote, secret));
            }
        }
        assert!(HeaderTemplate::new(&json!({ "secret": "" }), &["mark"]).is_err());
    }
}
