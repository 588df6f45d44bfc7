//! A text with blanks that are filled in repeatedly.

use std::collections::BTreeMap;

/// A text with blanks, each filled by one value.
#[derive(Clone, Debug)]
pub(crate) struct Blanks {
    first: String,
    /// For each blank, the index of its value and the text that follows it.
    rest: Vec<(usize, String)>,
}

impl Blanks {
    /// Creates a text with a blank in place of each mark. Returns `None` unless every mark occurs exactly once.
    pub fn of(text: &str, marks: &[&str]) -> Option<Self> {
        let mut found = BTreeMap::new();
        for (of, mark) in marks.iter().enumerate() {
            if found.insert(once(text, mark)?, (of, mark.len())).is_some() {
                return None;
            }
        }
        let first = found.first_key_value().map_or(text.len(), |(at, _)| *at);
        let ends = found.keys().skip(1).copied().chain([text.len()]);
        let mut rest = Vec::with_capacity(found.len());
        for ((at, (of, length)), end) in found.iter().zip(ends) {
            rest.push((*of, text.get(at.checked_add(*length)?..end)?.to_owned()));
        }
        Some(Self { first: text.get(..first)?.to_owned(), rest })
    }

    /// Returns the text before the first blank.
    pub fn first(&self) -> &str {
        &self.first
    }

    /// Returns the text from the first blank on, with these values in the order of the marks.
    pub fn rest(&self, values: &[&str]) -> String {
        let mut text = String::new();
        self.fill(&mut text, values);
        text
    }

    /// Returns the whole text with these values in the order of the marks.
    pub fn filled(&self, values: &[&str]) -> String {
        let mut text = self.first.clone();
        self.fill(&mut text, values);
        text
    }

    fn fill(&self, text: &mut String, values: &[&str]) {
        for (of, after) in &self.rest {
            text.push_str(values.get(*of).copied().unwrap_or_default());
            text.push_str(after);
        }
    }
}

fn once(text: &str, mark: &str) -> Option<usize> {
    let mut found = text.match_indices(mark).map(|(at, _)| at);
    found.next().filter(|_| found.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_replaces_its_mark() {
        let blanks = Blanks::of("one <b> two <a> three", &["<a>", "<b>"]).unwrap();
        assert_eq!(blanks.first(), "one ");
        assert_eq!(blanks.filled(&["A", "long B"]), "one long B two A three");
        assert_eq!(blanks.filled(&["<a>", "<b>"]), "one <b> two <a> three");
        assert_eq!(Blanks::of("plain", &[]).unwrap().filled(&[]), "plain");
    }

    #[test]
    fn a_mark_that_is_missing_repeated_or_within_another_is_refused() {
        for (text, marks) in [("a", vec!["b"]), ("a a", vec!["a"]), ("abc", vec!["abc", "b"]), ("ab", vec!["ab", "ab"])]
        {
            assert!(Blanks::of(text, &marks).is_none(), "{text}");
        }
    }
}
