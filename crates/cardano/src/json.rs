//! JSON from strangers. What a text takes in memory is told by its values, not by its bytes: `{"":0},` is seven bytes, and
//! some four hundred as a map with a member.

/// Values of a message, of its payment, or of what else a request says in JSON: more than twice as many as any has.
pub const MAX_VALUES: usize = 1_000;

/// Whether a JSON text may have more than so many values. Asked before it is read, by its bytes alone.
#[must_use]
pub fn has_more_values(text: &[u8], most: usize) -> bool {
    // Each value but the first stands behind one of these. Where they are part of a text they are counted as well.
    text.iter().filter(|byte| matches!(byte, b'[' | b'{' | b',' | b':')).nth(most).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_however_they_are_nested() {
        for unit in ["0,", "[],", "[0],", r#""","#, r#"{"":0},"#, r#"{"a":[{"b":[]}]},"#] {
            let list = |count: usize| format!("[{}0]", unit.repeat(count));
            assert!(!has_more_values(list(100).as_bytes(), 1_000), "{unit}");
            assert!(has_more_values(list(1_000).as_bytes(), 1_000), "{unit}");
        }
        assert!(has_more_values("[".repeat(1_001).as_bytes(), 1_000));
        assert!(!has_more_values(format!(r#"{{"text":"{}"}}"#, "x".repeat(1 << 20)).as_bytes(), 1_000));
    }
}
