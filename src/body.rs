//! Small JSON bodies, read field by field, so that a refusal names the field.

use edge::http::read_request;
use serde_json::{Map, Value};
use worker::Request;

use crate::error::ApiError;

/// Bytes of a body that carries an address, a signature, or an order.
const MAX_BODY: usize = 8 << 10;

/// The fields of a body. Unknown ones are ignored.
pub struct Body(Map<String, Value>);

impl Body {
    /// Reads a bounded body that must be a JSON object.
    pub async fn read(request: &mut Request) -> Result<Self, ApiError> {
        let bytes = read_request(request, MAX_BODY).await?;
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) => Err(ApiError::bad_request("body: must be a JSON object")),
            Err(error) => Err(ApiError::bad_request(format!("body: must be JSON ({error})"))),
        }
    }

    /// A text that must be there and not be empty.
    pub fn text(&self, name: &str) -> Result<&str, ApiError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Err(ApiError::bad_request(format!("{name}: is required"))),
            Some(Value::String(text)) if text.is_empty() => Err(ApiError::bad_request(format!("{name}: is required"))),
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(ApiError::bad_request(format!("{name}: must be a string"))),
        }
    }

    /// A whole number that must be there. `None` where it is one that no rule of ours allows: negative, or beyond `u32`.
    pub fn whole(&self, name: &str) -> Result<Option<u32>, ApiError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Err(ApiError::bad_request(format!("{name}: is required"))),
            Some(Value::Number(number)) if number.is_u64() || number.is_i64() => {
                Ok(number.as_u64().and_then(|number| u32::try_from(number).ok()))
            }
            Some(_) => Err(ApiError::bad_request(format!("{name}: must be a whole number"))),
        }
    }
}
