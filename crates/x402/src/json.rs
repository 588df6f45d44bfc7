//! Parses JSON without duplicate names, and writes canonical JSON (RFC 8785).

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

/// Upper limit of the integers that are written here: up to it, doubles represent every integer exactly.
const MAX_EXACT: u64 = 1 << 53;

/// Parses JSON in which no object has a name twice, because two parsers could read such an object differently. Also
/// limits the number of values.
pub(crate) fn parse(text: &[u8]) -> Result<Value, serde_json::Error> {
    if has_more_values(text, MAX_VALUES) {
        return Err(de::Error::custom(format_args!("more than {MAX_VALUES} values")));
    }
    serde_json::from_slice(text).map(|Unambiguous(value)| value)
}

/// Encodes a value as canonical JSON. Returns `None` if there is no canonical form (a number that is not finite, a key
/// that is not a string).
pub(crate) fn canonical(value: &impl Serialize) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    match write(&serde_json::to_value(value).ok()?, &mut text) {
        Some(()) => Some(text),
        None => serde_jcs::to_vec(value).ok(),
    }
}

/// Writes values whose only canonicalisation is sorting keys: strings, small integers, and ASCII keys, which covers
/// everything that sellers sign. Returns `None` for anything else, which the library writes several times slower.
fn write(value: &Value, text: &mut Vec<u8>) -> Option<()> {
    match value {
        // Larger numbers are rounded to doubles, as in JavaScript.
        Value::Number(number) if number.as_u64().is_none_or(|number| number > MAX_EXACT) => return None,
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Number(_) => {
            serde_json::to_writer(text, value).ok()?
        }
        Value::Array(items) => {
            text.push(b'[');
            for (index, item) in items.iter().enumerate() {
                separate(index, text);
                write(item, text)?;
            }
            text.push(b']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            text.push(b'{');
            for (index, (name, member)) in members.into_iter().enumerate() {
                separate(index, text);
                name.is_ascii().then_some(())?;
                serde_json::to_writer(&mut *text, name).ok()?;
                text.push(b':');
                write(member, text)?;
            }
            text.push(b'}');
        }
    }
    Some(())
}

fn separate(index: usize, text: &mut Vec<u8>) {
    if index > 0 {
        text.push(b',');
    }
}

/// Concatenates a domain and the canonical bytes of a value.
pub(crate) fn message(domain: &str, value: &impl Serialize) -> Option<Vec<u8>> {
    Some([domain.as_bytes(), &canonical(value)?].concat())
}

/// Computes the SHA-256 of a domain and the canonical bytes of a value.
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
    use proptest::prelude::*;
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

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[a-zA-Z0-9_\\x00-\\x1f\"\u{e9}]{0,3}", inner), 0..4).prop_map(Value::from_iter),
            ]
        })
    }

    proptest! {
        #[test]
        fn canonical_text_equals_that_of_serde_jcs(value in value()) {
            prop_assert_eq!(canonical(&value), serde_jcs::to_vec(&value).ok());
        }
    }
}
