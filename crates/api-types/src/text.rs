//! Numbers that are decimal strings in JSON, for `#[serde(with = "...")]`.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// Serialises POSIX milliseconds as a decimal string.
#[derive(Debug)]
pub struct Millis;

/// Serialises optional POSIX milliseconds as a decimal string. The field needs `#[serde(default)]` too.
#[derive(Debug)]
pub struct OptionalMillis;

impl Millis {
    /// Serialises a time as a string.
    ///
    /// # Errors
    /// Returns an error of the serializer.
    pub fn serialize<S: Serializer>(time: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(time)
    }

    /// Deserialises a time from a string.
    ///
    /// # Errors
    /// Returns an error if the string does not consist of digits, or if the number is too large.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(|_| D::Error::custom("not POSIX ms"))
    }
}

impl OptionalMillis {
    /// Serialises an optional time as a string.
    ///
    /// # Errors
    /// Returns an error of the serializer.
    pub fn serialize<S: Serializer>(time: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        time.map(|time| time.to_string()).serialize(serializer)
    }

    /// Deserialises an optional time from a string.
    ///
    /// # Errors
    /// Returns an error if the string does not consist of digits, or if the number is too large.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        let text = Option::<std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(|_| D::Error::custom("not POSIX ms"))).transpose()
    }
}

#[cfg(feature = "schema")]
mod schema {
    use std::borrow::Cow;

    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

    impl JsonSchema for super::Millis {
        fn inline_schema() -> bool {
            true
        }

        fn schema_name() -> Cow<'static, str> {
            "Millis".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({ "type": "string", "pattern": "^[0-9]+$" })
        }
    }

    impl JsonSchema for super::OptionalMillis {
        fn inline_schema() -> bool {
            true
        }

        fn schema_name() -> Cow<'static, str> {
            "OptionalMillis".into()
        }

        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            super::Millis::json_schema(generator)
        }
    }
}
