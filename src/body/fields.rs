//! The fields of a JSON object read into a type, each by its own rules: null is as missing, and an empty text too.

use std::{borrow::Cow, fmt};

use serde::{
    Deserializer,
    de::{self, DeserializeOwned, DeserializeSeed, Error as _, IntoDeserializer, MapAccess, Visitor, value},
    forward_to_deserialize_any,
};
use serde_json::{Map, Value};

use super::FieldError;

/// Reads a type.
///
/// # Errors
/// Names the field.
pub fn read<T: DeserializeOwned>(fields: Map<String, Value>) -> Result<T, FieldError> {
    T::deserialize(Object(fields)).map_err(|Problem { field, said }| match said {
        None => FieldError::Missing(field),
        Some(said) => FieldError::Value(field, said),
    })
}

/// What is wrong with a field; without words, it is missing.
#[derive(Debug)]
struct Problem {
    field: &'static str,
    said: Option<Cow<'static, str>>,
}

impl Problem {
    const fn must_be(what: &'static str) -> Self {
        Self { field: "", said: Some(Cow::Borrowed(what)) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.said.as_deref().unwrap_or("is required"))
    }
}

impl std::error::Error for Problem {}

impl de::Error for Problem {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self { field: "", said: Some(text.to_string().into()) }
    }

    fn missing_field(field: &'static str) -> Self {
        Self { field, said: None }
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(format_args!("must be {}", expected.join(" or ")))
    }
}

struct Object(Map<String, Value>);

impl<'de> Deserializer<'de> for Object {
    type Error = Problem;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        visitor.visit_map(Members { sent: self.0, names: fields.iter(), next: None })
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Problem> {
        Err(Problem::custom("a body is read into a type with fields"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The members that the type names.
struct Members {
    sent: Map<String, Value>,
    names: std::slice::Iter<'static, &'static str>,
    next: Option<(&'static str, Value)>,
}

impl<'de> MapAccess<'de> for Members {
    type Error = Problem;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Problem> {
        let sent = &mut self.sent;
        self.next = self.names.find_map(|name| sent.remove(*name).filter(|it| !it.is_null()).map(|it| (*name, it)));
        let Some((name, _)) = &self.next else { return Ok(None) };
        let name: value::StrDeserializer<'_, Problem> = name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Problem> {
        let Some((field, value)) = self.next.take() else { return Err(Problem::custom("no value without a name")) };
        if value == "" {
            return Err(Problem::missing_field(field));
        }
        seed.deserialize(Member(value)).map_err(|problem| Problem { field, ..problem })
    }
}

/// A member's value: a text, a whole number, a switch, one of several words, or a list of texts.
struct Member(Value);

impl<'de> Deserializer<'de> for Member {
    type Error = Problem;

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            _ => Err(Problem::must_be("must be a string")),
        }
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.0 {
            // No rule allows the greatest: it stands for all numbers beyond the type.
            Value::Number(number) if number.is_u64() || number.is_i64() => {
                visitor.visit_u32(number.as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or(u32::MAX))
            }
            _ => Err(Problem::must_be("must be a whole number")),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.0 {
            Value::Bool(on) => visitor.visit_bool(on),
            _ => Err(Problem::must_be("must be a boolean")),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        match self.0 {
            Value::String(text) => visitor.visit_enum(text.into_deserializer()),
            _ => Err(Problem::must_be("must be a string")),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        const TEXTS: Problem = Problem::must_be("must be a list of strings");
        let Value::Array(items) = self.0 else { return Err(TEXTS) };
        let texts = items.into_iter().map(Member);
        visitor.visit_seq(value::SeqDeserializer::new(texts)).map_err(|_: Problem| TEXTS)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_some(self)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Problem> {
        Err(Problem::must_be("is of a kind that no body has"))
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u64 u128 f32 f64 char str bytes byte_buf unit unit_struct newtype_struct tuple
        tuple_struct map struct identifier ignored_any
    }
}

impl IntoDeserializer<'_, Problem> for Member {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}
