//! Parses JSON bodies into the types of `api_types`, with errors that name the field.

use std::{borrow::Cow, fmt, marker::PhantomData};

use agents::oauth::OAuthError;
use api_types::{Error, ErrorCode};
use cardano::json::{MAX_VALUES, has_more_values};
use edge::{
    answer::ErrorAnswer,
    http::{hold_request, read_request},
    semaphore::Permit,
};
use serde::{
    Deserializer,
    de::{
        self, DeserializeOwned, IntoDeserializer, Visitor,
        value::{MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::Value;

#[cfg(test)]
use crate::openapi::operations::Operation;
use crate::{
    app::App,
    error::ApiError,
    route::{Argument, Asked, Body, Schema},
};

/// Maximum size in bytes of a body with an address, a signature, or an order.
pub const MAX_BODY: usize = 8 << 10;

/// An invalid body or field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    #[error("body: must be JSON ({0})")]
    NotJson(String),
    /// The body is not a JSON object.
    #[error("body: must be a JSON object")]
    NoObject,
    /// The body has more JSON values than this maximum. No valid body needs as many.
    #[error("body: has more than {0} values")]
    TooMany(usize),
    /// The named field is missing or empty.
    #[error("{0}: is required")]
    Missing(Cow<'static, str>),
    /// The named field has a value of the wrong type. The second text says what is expected.
    #[error("{0}: {1}")]
    Value(String, Cow<'static, str>),
}

impl From<FieldError> for ApiError {
    fn from(error: FieldError) -> Self {
        let error = match error {
            FieldError::NotJson(_) | FieldError::NoObject | FieldError::TooMany(_) => {
                Error { field: Some("body".into()), ..Error::new(ErrorCode::MalformedBody, error) }
            }
            FieldError::Missing(field) => Error::of_field(ErrorCode::MissingField, field, "is required"),
            FieldError::Value(field, rule) => Error::of_field(ErrorCode::InvalidValue, field, rule),
        };
        ErrorAnswer::bad_request(error).into()
    }
}

impl de::Error for FieldError {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self::Value(String::new(), text.to_string().into())
    }

    fn missing_field(field: &'static str) -> Self {
        Self::Missing(field.into())
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(format_args!("must be {}", expected.join(" or ")))
    }
}

/// Maximum size in bytes of a body with a wallet's outputs. Five hundred ordinary outputs fit, or fewer with many
/// tokens.
const MAX_WALLET_BODY: usize = 512 << 10;
/// Maximum number of JSON values in a body with a wallet's outputs. It is high, so that a wallet with somewhat too many
/// outputs gets an error about the outputs instead of a general one.
const MAX_WALLET_VALUES: usize = 12_000;

/// An unparsed JSON body with a wallet's outputs. It counts against the client's memory limit until it is dropped. An
/// empty body counts as an empty object.
pub struct WalletBody<T> {
    bytes: Vec<u8>,
    _held: Option<Permit>,
    says: PhantomData<T>,
}

impl<T: DeserializeOwned> WalletBody<T> {
    /// Parses the body. The parsed value can take ten times the memory of the body, so callers parse the body again
    /// when they need the value instead of keeping it.
    pub fn parse(&self) -> Result<T, FieldError> {
        let bytes = if self.bytes.is_empty() { b"{}" } else { self.bytes.as_slice() };
        parse(bytes)
    }
}

impl<T: DeserializeOwned + Schema> Argument for WalletBody<T> {
    const BODY: Option<Body> = Some(Body::of(MAX_WALLET_BODY));

    async fn of(asked: Asked<'_>) -> Result<Self, ApiError> {
        let (bytes, held) = hold_request(&asked.app.request, MAX_WALLET_BODY).await?;
        at_most(&bytes, MAX_WALLET_VALUES)?;
        Ok(Self { bytes, _held: held, says: PhantomData })
    }

    #[cfg(test)]
    fn describe(operation: Operation<'_>) -> Operation<'_> {
        operation.body::<T>("application/json").fails(&[400])
    }
}

/// A JSON object of at most `MAX` bytes. Unknown fields are ignored; null and empty strings count as missing.
pub struct Json<T, const MAX: usize = MAX_BODY>(pub T);

impl<T: DeserializeOwned + Schema, const MAX: usize> Argument for Json<T, MAX> {
    const BODY: Option<Body> = Some(Body::of(MAX));

    async fn of(asked: Asked<'_>) -> Result<Self, ApiError> {
        let bytes = read_request(&asked.app.request, MAX).await?;
        at_most(&bytes, MAX_VALUES)?;
        Ok(Self(parse(&bytes)?))
    }

    #[cfg(test)]
    fn describe(operation: Operation<'_>) -> Operation<'_> {
        operation.body::<T>("application/json").fails(&[400])
    }
}

/// A body of at most `MAX` bytes, not yet parsed. `T` is its schema in the OpenAPI document.
pub struct Bytes<T, const MAX: usize>(pub Vec<u8>, pub PhantomData<T>);

impl<T: Schema, const MAX: usize> Argument for Bytes<T, MAX> {
    const BODY: Option<Body> = Some(Body::of(MAX));

    async fn of(asked: Asked<'_>) -> Result<Self, ApiError> {
        Ok(Self(read_request(&asked.app.request, MAX).await?, PhantomData))
    }

    #[cfg(test)]
    fn describe(operation: Operation<'_>) -> Operation<'_> {
        operation.body::<T>("application/json")
    }
}

/// Returns whether the request's body has this media type.
pub fn has_type(app: &App, expected: &str) -> Result<bool, ApiError> {
    let sent = app.request.headers().get("content-type")?.unwrap_or_default();
    Ok(sent.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(expected))
}

/// Maximum size in bytes of a form.
const MAX_FORM: usize = 16 << 10;
const FORM: &str = "application/x-www-form-urlencoded";

/// An OAuth form, not yet parsed. `T` is its schema in the OpenAPI document.
pub struct Form<T>(pub String, pub PhantomData<T>);

impl<T: Schema> Argument for Form<T> {
    const BODY: Option<Body> = Some(Body::of(MAX_FORM));

    async fn of(asked: Asked<'_>) -> Result<Self, ApiError> {
        if !has_type(asked.app, FORM)? {
            let text = format!("the body must be {FORM}");
            return Err(OAuthError::new(agents::oauth::ErrorCode::InvalidRequest, text).into());
        }
        let body = read_request(&asked.app.request, MAX_FORM).await?;
        Ok(Self(String::from_utf8_lossy(&body).into_owned(), PhantomData))
    }

    #[cfg(test)]
    fn describe(operation: Operation<'_>) -> Operation<'_> {
        operation.body::<T>(FORM).oauth_fails(&[400])
    }
}

fn at_most(bytes: &[u8], values: usize) -> Result<(), FieldError> {
    if has_more_values(bytes, values) { Err(FieldError::TooMany(values)) } else { Ok(()) }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FieldError> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(fields)) => {
            let sent = fields.into_iter().filter(|(_, value)| !value.is_null());
            T::deserialize(MapDeserializer::new(sent.map(|(name, value)| (name.clone(), Field { name, value }))))
        }
        Ok(_) => Err(FieldError::NoObject),
        Err(error) => Err(FieldError::NotJson(error.to_string())),
    }
}

/// A field of a body: a string, an integer, a boolean, an enum, or a list of strings.
struct Field {
    name: String,
    value: Value,
}

impl Field {
    fn must_be(name: String, what: &'static str) -> FieldError {
        FieldError::Value(name, what.into())
    }

    fn text(self) -> Result<(String, String), FieldError> {
        match self.value {
            Value::String(text) if text.is_empty() => Err(FieldError::Missing(self.name.into())),
            Value::String(text) => Ok((self.name, text)),
            _ => Err(Self::must_be(self.name, "must be a string")),
        }
    }
}

impl<'de> Deserializer<'de> for Field {
    type Error = FieldError;

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_string(self.text()?.1)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.value {
            // Numbers beyond the type become its maximum, which no rule allows.
            Value::Number(number) if number.is_u64() || number.is_i64() => {
                visitor.visit_u32(number.as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or(u32::MAX))
            }
            _ => Err(Self::must_be(self.name, "must be a whole number")),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        let on = self.value.as_bool().ok_or_else(|| Self::must_be(self.name, "must be a boolean"))?;
        visitor.visit_bool(on)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        let (name, word) = self.text()?;
        visitor.visit_enum(word.into_deserializer()).map_err(|error| match error {
            FieldError::Value(_, why) => FieldError::Value(name, why),
            error => error,
        })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        let texts = match self.value {
            Value::Array(items) => items.into_iter().map(|item| serde_json::from_value(item).ok()).collect(),
            _ => None,
        };
        let texts: Vec<String> = texts.ok_or_else(|| Self::must_be(self.name, "must be a list of strings"))?;
        visitor.visit_seq(SeqDeserializer::new(texts.into_iter()))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_some(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_unit()
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, FieldError> {
        Err(Self::must_be(self.name, "is of a kind that no body has"))
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u64 u128 f32 f64 char str bytes byte_buf unit unit_struct newtype_struct tuple
        tuple_struct map struct identifier
    }
}

impl IntoDeserializer<'_, FieldError> for Field {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api_types::{Buy, NewActionDraft, NewLimits, SignIn};
    use serde_json::json;

    fn refusal<T: DeserializeOwned>(body: &Value) -> String {
        let read: Result<T, FieldError> = parse(body.to_string().as_bytes());
        read.err().unwrap().to_string()
    }

    #[test]
    fn a_body_has_no_more_values_than_a_route_reads() {
        let body = |count: usize| {
            format!("{{\"owner\":\"a\",\"key\":\"b\",\"signature\":\"c\",\"more\":[{}0]}}", r#"{"":0},"#.repeat(count))
        };
        assert!(at_most(body(300).as_bytes(), MAX_VALUES).is_ok());
        assert!(parse::<SignIn>(body(300).as_bytes()).is_ok());
        assert!(body(1_000).len() < MAX_BODY);
        assert_eq!(at_most(body(1_000).as_bytes(), MAX_VALUES), Err(FieldError::TooMany(MAX_VALUES)));
    }

    #[test]
    fn a_refusal_names_the_field_and_what_it_must_be() {
        let whole = json!({ "listingId": "lst_1", "mode": "instant", "unknown": { "a": [1] } });
        assert!(parse::<Buy>(whole.to_string().as_bytes()).is_ok());
        for (field, value, told) in [
            ("listingId", json!(null), "listingId: is required"),
            ("listingId", json!(""), "listingId: is required"),
            ("listingId", json!(5), "listingId: must be a string"),
            ("mode", json!("later"), "mode: must be instant or protected"),
            ("mode", json!(["instant"]), "mode: must be a string"),
            ("mode", json!({ "instant": null }), "mode: must be a string"),
        ] {
            let mut body = whole.clone();
            body[field] = value;
            assert_eq!(refusal::<Buy>(&body), told);
        }
        assert_eq!(refusal::<Buy>(&json!({ "mode": "instant" })), "listingId: is required");
        assert_eq!(refusal::<Buy>(&json!([])), "body: must be a JSON object");
        assert_eq!(refusal::<NewActionDraft>(&json!({ "utxos": [1] })), "utxos: must be a list of strings");
        assert_eq!(refusal::<NewActionDraft>(&json!({ "utxos": "00" })), "utxos: must be a list of strings");
    }

    #[test]
    fn a_number_must_be_whole_and_is_clamped_to_its_type() {
        for (sent, read) in [(json!(7), Some(7)), (json!(-1), Some(u32::MAX)), (json!(u64::MAX), Some(u32::MAX))] {
            let body = json!({ "maxPerPaymentAda": sent, "dailyBudgetAda": 1 });
            let limits: Option<NewLimits> = parse(body.to_string().as_bytes()).ok();
            assert_eq!(limits.map(|limits| limits.max_per_payment_ada), read);
        }
        for sent in [json!("7"), json!(1.5), json!(1e30), json!(true)] {
            let told = refusal::<NewLimits>(&json!({ "maxPerPaymentAda": sent, "dailyBudgetAda": 1 }));
            assert_eq!(told, "maxPerPaymentAda: must be a whole number");
        }
    }
}
