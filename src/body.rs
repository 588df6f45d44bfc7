//! Small JSON bodies, read field by field, so that a refusal names the field.

use cardano::json::{MAX_VALUES, has_more_values};
use edge::{
    answer::ErrorAnswer,
    http::{hold_request, read_request},
    semaphore::Permit,
    serve::Request,
};
use serde_json::{Map, Value};

use crate::error::{ApiError, Refused};

/// Bytes of a body that carries an address, a signature, or an order.
const MAX_BODY: usize = 8 << 10;

/// A body, or the field of it, that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    #[error("body: must be JSON ({0})")]
    NotJson(String),
    /// Not an object.
    #[error("body: must be a JSON object")]
    NoObject,
    /// More values than any body of ours has.
    #[error("body: has more than {0} values")]
    TooMany(usize),
    /// Not there, or empty.
    #[error("{0}: is required")]
    Missing(&'static str),
    /// Another type than the field has.
    #[error("{0}: must be a {1}")]
    OtherType(&'static str, &'static str),
}

impl Refused for FieldError {
    fn answer(&self) -> ErrorAnswer {
        ErrorAnswer::bad_request(self.to_string())
    }
}

/// Bytes of a body with what a wallet holds: five hundred outputs of the usual size, or fewer with many tokens.
const MAX_WALLET_BODY: usize = 512 << 10;
/// Values of one, so that it can be said what there is too much of.
const MAX_WALLET_VALUES: usize = 12_000;

/// The fields of a body. Unknown ones are ignored.
pub struct JsonBody(Map<String, Value>);

/// A body with what a wallet holds, as it came: it counts for its client until this is dropped.
pub struct WalletBody {
    bytes: Vec<u8>,
    _held: Option<Permit>,
}

impl WalletBody {
    /// Reads one that a draft is made from. Nothing at all is an empty object.
    pub async fn read(request: &mut Request) -> Result<Self, ApiError> {
        let (bytes, held) = hold_request(request, MAX_WALLET_BODY).await?;
        Ok(Self { bytes, _held: held })
    }

    /// Its fields, read anew each time: as values they may take ten times its bytes, and whoever waits holds none.
    pub fn fields(&self) -> Result<JsonBody, ApiError> {
        if self.bytes.is_empty() {
            return Ok(JsonBody(Map::new()));
        }
        JsonBody::parse(&self.bytes, MAX_WALLET_VALUES)
    }
}

impl JsonBody {
    /// Reads fields of a bounded body that must be a JSON object. Nothing else of it stays: as values it may take eighty times
    /// its bytes, and whoever sent it waits for others.
    pub async fn read<T>(
        request: &mut Request,
        fields: impl FnOnce(&Self) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let bytes = read_request(request, MAX_BODY).await?;
        fields(&Self::parse(&bytes, MAX_VALUES)?)
    }

    fn parse(bytes: &[u8], most: usize) -> Result<Self, ApiError> {
        if has_more_values(bytes, most) {
            return Err(FieldError::TooMany(most).into());
        }
        match serde_json::from_slice(bytes) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) => Err(FieldError::NoObject.into()),
            Err(error) => Err(FieldError::NotJson(error.to_string()).into()),
        }
    }

    /// A text that must be there and not be empty.
    pub fn text(&self, name: &'static str) -> Result<&str, FieldError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Err(FieldError::Missing(name)),
            Some(Value::String(text)) if text.is_empty() => Err(FieldError::Missing(name)),
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(FieldError::OtherType(name, "string")),
        }
    }

    /// A text that may be missing.
    pub fn optional_text(&self, name: &'static str) -> Result<Option<&str>, FieldError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(_) => self.text(name).map(Some),
        }
    }

    /// A list of texts that may be missing.
    pub fn texts(&self, name: &'static str) -> Result<Option<Vec<&str>>, FieldError> {
        let other = || FieldError::OtherType(name, "list of strings");
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(items)) => {
                let texts = items.iter().map(|item| item.as_str().ok_or_else(other));
                texts.collect::<Result<_, _>>().map(Some)
            }
            Some(_) => Err(other()),
        }
    }

    /// Whether a switch is on; off where it is missing.
    pub fn switch(&self, name: &'static str) -> Result<bool, FieldError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(on)) => Ok(*on),
            Some(_) => Err(FieldError::OtherType(name, "boolean")),
        }
    }

    /// A whole number that must be there. `None` where it is one that no rule of ours allows: negative, or beyond `u32`.
    pub fn whole(&self, name: &'static str) -> Result<Option<u32>, FieldError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Err(FieldError::Missing(name)),
            Some(Value::Number(number)) if number.is_u64() || number.is_i64() => {
                Ok(number.as_u64().and_then(|number| u32::try_from(number).ok()))
            }
            Some(_) => Err(FieldError::OtherType(name, "whole number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_no_more_values_than_a_route_reads() {
        let body = |count: usize| format!("{{\"more\":[{}0]}}", r#"{"":0},"#.repeat(count));
        assert!(JsonBody::parse(body(300).as_bytes(), MAX_VALUES).is_ok());
        assert!(body(1_000).len() < MAX_BODY);
        let refused = JsonBody::parse(body(1_000).as_bytes(), MAX_VALUES).err();
        assert_eq!(refused.map(|error| error.to_string()), Some(FieldError::TooMany(MAX_VALUES).to_string()));
    }
}
