//! Parses JSON while rejecting duplicate names, and writes canonical JSON (RFC 8785).

use std::fmt;

use cardano::{
    ContentHash,
    json::{MAX_VALUES, has_more_values},
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

/// Parses JSON. Rejects JSON with too many values, and objects with a duplicate name, because two parsers could read
/// such objects differently.
pub(crate) fn parse(text: &[u8]) -> Result<Value, serde_json::Error> {
    if has_more_values(text, MAX_VALUES) {
        return Err(de::Error::custom(format_args!("more than {MAX_VALUES} values")));
    }
    serde_json::from_slice(text).map(|Unambiguous(value)| value)
}

/// Returns the canonical JSON (RFC 8785) of a value, or `None` if the value contains a number that is not finite or a
/// key that is not a string.
pub(crate) fn canonical(value: &impl Serialize) -> Option<Vec<u8>> {
    serde_jcs::to_vec(value).ok()
}

/// Concatenates a domain separator and the canonical JSON of a value. `None` if the value has no canonical JSON.
pub(crate) fn message(domain: &str, value: &impl Serialize) -> Option<Vec<u8>> {
    Some([domain.as_bytes(), &canonical(value)?].concat())
}

/// Computes the SHA-256 of a domain separator followed by the canonical JSON of a value. `None` if the value has no
/// canonical JSON.
pub(crate) fn digest(domain: &str, value: &impl Serialize) -> Option<ContentHash> {
    Some(ContentHash::of(&message(domain, value)?))
}

struct Unambiguous(Value);

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Values).map(Self)
    }
}

struct Values;

impl<'de> Visitor<'de> for Values {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unambiguous(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((name, Unambiguous(value))) = fields.next_entry::<String, _>()? {
            if object.contains_key(&name) {
                return Err(de::Error::custom(format_args!("the name {name:?} stands twice in an object")));
            }
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_str, json};

    fn jcs(text: &str) -> String {
        String::from_utf8(canonical(&from_str::<Value>(text).unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn escapes_are_decoded_and_duplicate_names_refused() {
        let text = r#"{"a":[null,true,-1,1,1.5,"x",{"b":{}}],"c":18446744073709551615}"#;
        assert_eq!(parse(text.as_bytes()).unwrap(), from_str::<Value>(text).unwrap());
        assert_eq!(parse(b" 7 ").unwrap(), json!(7));
        let nested = "[".repeat(200) + &"]".repeat(200);
        for other in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"\u0061":2}}]"#, "{}{}", "", "{", "1e999", &nested] {
            assert!(parse(other.as_bytes()).is_err(), "{other}");
        }
    }

    #[test]
    fn a_json_with_too_many_values_is_refused() {
        let list = |count: usize| format!("[{}0]", r#"{"":0},"#.repeat(count));
        assert!(parse(list(300).as_bytes()).is_ok());
        assert!(parse(list(3_000).as_bytes()).is_err());
    }

    #[test]
    fn the_samples_of_the_rfc_come_out_as_printed_there() {
        // RFC 8785, section 3.2.2 (input) and 3.2.3 (output).
        let input = r#"{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}"#;
        let output = "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\
            \"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}";
        assert_eq!(jcs(input), output);
    }

    #[test]
    fn names_are_sorted_by_utf_16_code_units() {
        // RFC 8785, section 3.2.3: the sorting sample.
        let input = r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#;
        assert_eq!(jcs(input), "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{fb33}\":3}");
    }

    #[test]
    fn a_domain_separates_equal_values() {
        let value: Value = from_str("{}").unwrap();
        assert_eq!(digest("a\n", &value), Some(ContentHash::of(b"a\n{}")));
        assert_ne!(digest("a\n", &value), digest("b\n", &value));
    }
}
