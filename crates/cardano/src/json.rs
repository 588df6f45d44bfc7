//! JSON from strangers. What a text takes in memory is told by its values, not by its bytes: `{"":0},` is seven bytes, and
//! some four hundred as a map with a member.

/// Values of a message, of its payment, or of what else a request says in JSON: more than twice as many as any has.
pub const MAX_VALUES: usize = 1_000;

/// Whether a JSON text has more than so many values, as far as it is JSON. Asked before it is read, by its bytes alone: what
/// stands in texts is not counted, a title may have any number of commas.
#[must_use]
pub fn has_more_values(text: &[u8], most: usize) -> bool {
    values(text).nth(most).is_some()
}

/// Bytes that a value takes in memory at most, once it is read: a map with a member.
const VALUE_BYTES: usize = 400;

/// Bytes that a text takes in memory at most, once it is read.
#[must_use]
pub fn weight(text: &[u8]) -> usize {
    values(text).count().saturating_add(1).saturating_mul(VALUE_BYTES).saturating_add(text.len())
}

/// Where its values but the first begin.
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
        // Each value but the first stands behind one of these.
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
