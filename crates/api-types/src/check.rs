//! Test helpers that compare JSON with a type's schema.

use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Deserialize, Deserializer, de::DeserializeOwned, de::Error, de::Visitor, forward_to_deserialize_any};
use serde_json::Value;

/// Parses a JSON text into its type and checks every field against the type's schema.
///
/// # Errors
/// Returns the path of the first value that has another type, or of the first field that the type does not have.
pub fn exactly<T: DeserializeOwned + JsonSchema>(text: &str) -> Result<T, String> {
    let read = serde_json::from_str(text).map_err(|error| format!("{}: {error}", T::schema_name()))?;
    let found = FieldCoverage::of::<T>(&[text])?;
    match found.unknown.first() {
        Some(path) => Err(format!("{} has no field {path}", T::schema_name())),
        None => Ok(read),
    }
}

/// Parses each text with [`exactly`], and checks that each field of the type, including nested fields, occurs in at
/// least one of the texts. A field that occurs in none of them is declared but never sent.
///
/// # Errors
/// Returns the path of a missing field, or the error of [`exactly`].
pub fn complete<T: DeserializeOwned + JsonSchema>(texts: &[&str]) -> Result<Vec<T>, String> {
    let read = texts.iter().map(|text| exactly(text)).collect::<Result<_, _>>()?;
    let found = FieldCoverage::of::<T>(texts)?;
    let missing: Vec<&str> = found.seen.iter().filter(|(_, seen)| !**seen).map(|(path, _)| path.as_str()).collect();
    if missing.is_empty() {
        Ok(read)
    } else {
        Err(format!("{}: nothing writes {}", T::schema_name(), missing.join(", ")))
    }
}

/// Returns the names of the fields that a type accepts in JSON.
#[must_use]
pub fn fields<'de, T: Deserialize<'de>>() -> BTreeSet<&'static str> {
    let mut names = &[][..];
    // Deserialising fails, but the field names have been requested by then.
    let _ = T::deserialize(Names(&mut names));
    names.iter().copied().collect()
}

/// Comparison of JSON texts with a type's schema. `seen` has the path of each field, with whether one of the texts
/// contains the field; `unknown` has the paths that are not in the schema.
#[derive(Default)]
struct FieldCoverage {
    seen: BTreeMap<String, bool>,
    unknown: Vec<String>,
}

impl FieldCoverage {
    fn of<T: JsonSchema>(texts: &[&str]) -> Result<Self, String> {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        });
        let schema = settings.into_generator().into_root_schema_for::<T>().to_value();
        let mut found = Self::default();
        found.declare(&schema, "");
        for text in texts {
            let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
            found.compare(&schema, &value, "");
        }
        Ok(found)
    }

    fn declare(&mut self, schema: &Value, path: &str) {
        for (name, schema) in properties(schema) {
            let path = format!("{path}/{name}");
            self.declare(schema, &path);
            self.seen.insert(path, false);
        }
        if let Some(items) = schema.get("items") {
            self.declare(items, &format!("{path}/*"));
        }
        for choice in choices(schema) {
            self.declare(choice, path);
        }
    }

    fn compare(&mut self, schema: &Value, value: &Value, path: &str) {
        let shape = choices(schema).find(|choice| choice.get("type") != Some(&"null".into())).unwrap_or(schema);
        match value {
            Value::Array(values) => {
                let items = shape.get("items").unwrap_or(&Value::Null);
                values.iter().for_each(|value| self.compare(items, value, &format!("{path}/*")));
            }
            Value::Object(members) if shape.get("properties").is_some() => {
                for (name, value) in members {
                    let path = format!("{path}/{name}");
                    match properties(shape).find(|(known, _)| *known == name) {
                        Some((_, schema)) => {
                            self.compare(schema, value, &path);
                            self.seen.insert(path, true);
                        }
                        None => self.unknown.push(path),
                    }
                }
            }
            _ => {}
        }
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn choices(schema: &Value) -> impl Iterator<Item = &Value> {
    schema.get("anyOf").and_then(Value::as_array).into_iter().flatten()
}

struct Names<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(Self::Error::custom("names alone"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buy, Purchase};

    fn purchase(more: &str) -> String {
        let id = "ab".repeat(32);
        format!(
            "{{\"id\":\"{id}\",\"listingId\":\"lst_1\",\"mode\":\"protected\",\"txHash\":\"{id}\",\"status\":\"settled\",\
             \"buyerAddress\":\"addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz\",\"events\":[]{more}}}"
        )
    }

    #[test]
    fn an_unknown_field_or_a_field_of_another_type_is_named() {
        assert!(exactly::<Purchase>(&purchase("")).is_ok());
        let deep = ",\"escrow\":{\"address\":\"addr_test1\",\"deadlines\":{\"payby\":\"1\"}}";
        assert!(exactly::<Purchase>(&purchase(deep)).unwrap_err().ends_with("/escrow/deadlines/payby"));
        assert!(exactly::<Purchase>(&purchase(",\"verification\":\"maybe\"")).unwrap_err().contains("maybe"));
    }

    #[test]
    fn a_field_that_nothing_writes_is_named() {
        let error = complete::<Purchase>(&[&purchase(",\"verification\":\"ok\"")]).unwrap_err();
        assert!(error.contains("/events/*/at") && error.contains("/escrow/resultHash"), "{error}");
        assert!(!error.contains("verification"), "{error}");
    }

    #[test]
    fn a_types_declared_fields_are_those_it_reads() {
        assert_eq!(fields::<Buy>(), ["listingId", "mode", "priceLovelace"].into());
    }
}
