//! JSON Schemas of types that are strings in JSON, for API descriptions and tests. The workers do not include this
//! module.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::{Address, ContentHash, Lovelace, TxHash, TxRef};

/// Regular expression for a 32-byte hash in lowercase hex.
const HASH: &str = "^[0-9a-f]{64}$";

macro_rules! texts {
    ($($name:ident $pattern:expr),+ $(,)?) => {$(
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern })
            }
        }
    )+};
}

texts! {
    Address "^addr_test1[a-z0-9]+$",
    ContentHash HASH,
    Lovelace "^[0-9]+$",
    TxHash HASH,
    TxRef "^[0-9a-f]{64}#[0-9]+$",
}
