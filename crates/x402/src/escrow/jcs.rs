//! RFC 8785 and the two digests that are taken over it.

use cardano::ContentHash;
use serde::Serialize;

/// The canonical bytes of a JSON value. `None` where it has none (a number that is not finite, a key that is no text).
pub(super) fn canonical(value: &impl Serialize) -> Option<Vec<u8>> {
    serde_jcs::to_vec(value).ok()
}

/// SHA-256 over a domain and the canonical bytes of a value.
pub(super) fn digest(domain: &str, value: &impl Serialize) -> Option<ContentHash> {
    let mut message = domain.as_bytes().to_vec();
    message.extend(canonical(value)?);
    Some(ContentHash::of(&message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, from_str};

    fn jcs(text: &str) -> String {
        String::from_utf8(canonical(&from_str::<Value>(text).unwrap()).unwrap()).unwrap()
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
