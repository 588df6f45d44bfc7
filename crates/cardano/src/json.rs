//! Limits on JSON from clients. The memory that parsed JSON takes depends on the number of values more than on the
//! bytes: `{"":0},` has seven bytes, but takes about 400 once parsed into a map.

/// Maximum number of JSON values in a message, a payment or another part of a request. Valid parts have fewer than half
/// as many.
pub const MAX_VALUES: usize = 1_000;

/// Returns whether a JSON text has more than `most` values, or contains the object key after which `serde_json` parses a
/// string as JSON, so that the values inside are not counted. Scans the bytes without parsing them. Punctuation inside
/// strings is not counted.
#[must_use]
pub fn has_more_values(text: &[u8], most: usize) -> bool {
    values(text).nth(most).is_some() || has_raw_value(text)
}

/// A name in an object that makes `serde_json::Value`, with the feature `raw_value`, parse the string behind it as JSON.
/// The values in such a string would not be counted.
const RAW_VALUE: &[u8] = b"$serde_json::private::RawValue";

/// Returns whether a JSON text contains [`RAW_VALUE`], whose characters may also be written as `\u00XX`.
fn has_raw_value(text: &[u8]) -> bool {
    let (mut rest, mut matched) = (text, 0_usize);
    while let [first, tail @ ..] = rest {
        let (byte, after) = escaped(rest).unwrap_or((*first, tail));
        rest = after;
        matched = match RAW_VALUE.get(matched) {
            Some(expected) if *expected == byte => matched.saturating_add(1),
            _ => usize::from(byte == b'$'),
        };
        if matched == RAW_VALUE.len() {
            return true;
        }
    }
    false
}

/// Reads `\u00XX` at the beginning of a text. Returns the escaped byte and the rest of the text.
fn escaped(text: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, rest) = text.strip_prefix(br"\u00")?.split_at_checked(2)?;
    Some((u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?, rest))
}

/// Maximum memory in bytes that one parsed JSON value takes: the size of a map with one entry.
const VALUE_BYTES: usize = 400;

/// Returns an upper bound for the memory in bytes that a JSON text takes once parsed.
#[must_use]
pub fn weight(text: &[u8]) -> usize {
    values(text).count().saturating_add(1).saturating_mul(VALUE_BYTES).saturating_add(text.len())
}

/// Returns each `[`, `{`, `,` and `:` of a JSON text that is not inside a string. Every value except the outermost one
/// begins after such a byte, so there is at most one value more than there are such bytes.
fn values(text: &[u8]) -> impl Iterator<Item = &u8> {
    let (mut quoted, mut escaped) = (false, false);
    let begins = move |byte: &&u8| {
        let within = quoted;
        match (**byte, quoted) {
            _ if escaped => escaped = false,
            (b'\\', true) => escaped = true,
            (b'"', _) => quoted = !quoted,
            _ => {}
        }
        // Each value but the first follows one of these.
        !within && matches!(**byte, b'[' | b'{' | b',' | b':')
    };
    text.iter().filter(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_values_are_counted() {
        for unit in ["0,", "[],", "[0],", r#""","#, r#"{"":0},"#, r#"{"a":[{"b":[]}]},"#] {
            let list = |count: usize| format!("[{}0]", unit.repeat(count));
            assert!(!has_more_values(list(100).as_bytes(), 1_000), "{unit}");
            assert!(has_more_values(list(1_000).as_bytes(), 1_000), "{unit}");
        }
        assert!(has_more_values("[".repeat(1_001).as_bytes(), 1_000));
    }

    #[test]
    fn values_that_serde_json_would_find_in_a_string_are_refused() {
        for name in [
            "$serde_json::private::RawValue",
            r"\u0024serde_json::private::RawValue",
            r"$serde_json\u003a:private::Raw\u0056alue",
        ] {
            let text = format!(r#"{{"a":{{"{name}":"[{}0]"}}}}"#, "0,".repeat(2_000));
            assert!(has_more_values(text.as_bytes(), 1_000), "{name}");
        }
        for text in [r#"{"$serde_json":"\u0024","\u00zz$":"\u"}"#, r#"{"price":"$5","$":"::private::RawValue"}"#] {
            assert!(!has_more_values(text.as_bytes(), 1_000), "{text}");
        }
    }

    #[test]
    fn brackets_inside_texts_are_not_counted() {
        for words in ["x", "a, b: [c] {d} ", r#"\"0,\""#, r"\\", r"\\\u002c,"] {
            let text = format!(r#"{{"text":"{}"}}"#, words.repeat(2_000));
            serde_json::from_str::<serde_json::Value>(&text).unwrap();
            assert!(!has_more_values(text.as_bytes(), 10), "{words}");
            let more = format!(r#"{{"text":"{}","more":[{}0]}}"#, words.repeat(2_000), "0,".repeat(10));
            assert!(has_more_values(more.as_bytes(), 10), "{words}");
        }
    }
}
