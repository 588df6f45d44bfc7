//! The extensions that a server offers in a 402.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// The JSON values of extensions by name, for the `extensions` of a 402. They are stored as text, so that a value which
/// is the same in every 402 is serialized only once.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Extensions(BTreeMap<&'static str, Box<RawValue>>);

impl Extensions {
    /// Creates the entry of one extension, which may be one that this crate does not know. A value that cannot be
    /// serialized becomes `null`.
    #[must_use]
    pub fn of(name: &'static str, value: &impl Serialize) -> Self {
        Self(BTreeMap::from([(name, json_text(value))]))
    }

    /// Adds the entries of other extensions.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }
}

/// The usual value of an extension: what the server declares, and the JSON Schema of what clients send back.
#[derive(Serialize)]
pub(crate) struct Declared<'a, I> {
    pub info: I,
    pub schema: &'a RawValue,
}

/// Serializes a value, or `null` if that fails, which cannot happen for the types of this crate.
pub(crate) fn json_text(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_default()
}
