//! x402's HTTP headers, whose values are base64 of JSON.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::object::Object;
use crate::json;

/// Name of the header in which a 402 says how to pay.
pub const PAYMENT_REQUIRED: &str = "PAYMENT-REQUIRED";
/// Name of the header in which a request carries its payment.
pub const PAYMENT_SIGNATURE: &str = "PAYMENT-SIGNATURE";
/// Name of the header in which the response to a paid request tells the payment's outcome.
pub const PAYMENT_RESPONSE: &str = "PAYMENT-RESPONSE";

/// Maximum length of a header's value, in characters. A transaction of 16 KiB takes 29,128 characters, because it is
/// encoded as base64 twice. Requirements with commitments and signatures take a few thousand.
pub const MAX_HEADER_BYTES: usize = 48 * 1024;

/// Configuration that accepts base64 with or without padding, because clients' libraries differ.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const ANY_STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const ANY_URL: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Reason why a header's value cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The value is longer than [`MAX_HEADER_BYTES`].
    #[error("it is longer than {MAX_HEADER_BYTES} characters")]
    TooLong,
    /// The value is base64 in neither the standard nor the URL-safe alphabet.
    #[error("it is not base64")]
    NotBase64,
    /// The value is not JSON of the documented shape.
    #[error("{0}")]
    Json(String),
}

/// Encodes an x402 object as a header value.
///
/// # Errors
/// [`HeaderError`] if the object has no JSON form, which cannot happen for types of this crate.
pub fn encode_header<T: Serialize>(object: &T) -> Result<String, HeaderError> {
    Ok(STANDARD.encode(serde_json::to_string(object).map_err(HeaderError::json)?))
}

/// Decodes the x402 object in a header's value. JSON objects with a duplicate name are rejected.
///
/// # Errors
/// See [`HeaderError`].
pub fn decode_header<T: DeserializeOwned>(value: &str) -> Result<T, HeaderError> {
    let Object(object) = Object::deserialize(&decode_json(value)?).map_err(HeaderError::json)?;
    Ok(object)
}

/// Decodes the JSON in a header's value.
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
}
