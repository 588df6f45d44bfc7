//! Additional index terms, so that full-text searches also find other forms of words, and similar words.
//!
//! SQLite's index knows whole words and their beginnings. Beside the words of title, description and category, each
//! listing has these terms:
//!
//! | term | for example | finds |
//! |---|---|---|
//! | stems of English words | `page` of *pages* | the singular, and other forms of a word |
//! | single letters and pairs of scripts without spaces | `ポ` `ポス` `スタ` `ター` of ポスター | words inside a sentence |
//! | words of title and category without one of their letters, marked | `\u{e000}landin` of *landing* | words with one letter more, less or other, or with two letters swapped |
//!
//! A search text is split into the same terms. The number of terms is limited by the length of a listing's texts and by
//! the maximum number of words in a search, so neither a seller nor a searcher can make a search expensive.

use std::collections::BTreeSet;

use rust_stemmers::{Algorithm, Stemmer};

use super::split;

/// First character of the index terms that match similar words. The index treats this private-use character as a
/// letter, but no word of a text contains it.
const SIMILAR: char = '\u{e000}';
/// Lengths, in letters, of words for which a search also finds similar words. Shorter words would match too many
/// others.
const SIMILAR_LETTERS: std::ops::RangeInclusive<usize> = 5..=14;
/// Maximum length, in letters, of the prefixes that the full-text index stores. A search for a longer prefix would scan
/// every occurrence of every word that begins with it.
const PREFIX_LETTERS: usize = 8;

/// Returns additional index terms for a listing's texts.
pub(super) fn of_listing(title: &str, description: &str, category: Option<&str>) -> String {
    let mut terms = BTreeSet::new();
    let category = category.unwrap_or_default();
    for word in [title, description, category].into_iter().flat_map(split) {
        let runs = runs(word);
        for (script, run) in &runs {
            match script {
                Script::Unspaced => {
                    terms.extend(run.chars().map(String::from));
                    terms.extend(pairs(run));
                }
                // Indexed as a separate word, unless it is the whole word.
                Script::Spaced if runs.len() > 1 => terms.extend([(*run).to_owned()]),
                Script::Spaced => {}
            }
        }
        terms.extend(stem(word));
    }
    // Stems get variants too, because a typo together with another ending changes more than one letter.
    let words = [title, category].into_iter().flat_map(split);
    terms.extend(words.flat_map(|word| similar(word).chain(stem(word).into_iter().flat_map(|stem| similar(&stem)))));
    terms.into_iter().collect::<Vec<_>>().join(" ")
}

/// Returns the full-text query for a word, or `None` if the word is empty. The last word of a search may be a prefix,
/// of which only the first [`PREFIX_LETTERS`] letters count.
pub(super) fn query(word: &str, is_last: bool) -> Option<String> {
    let runs = runs(word);
    let last = runs.len().saturating_sub(1);
    let parts = runs.iter().enumerate().map(|(place, (script, run))| match script {
        Script::Unspaced if run.chars().nth(1).is_none() => quoted(run),
        Script::Unspaced => pairs(run).map(|pair| quoted(&pair)).collect::<Vec<_>>().join(" AND "),
        Script::Spaced => {
            let exact = match run.char_indices().nth(PREFIX_LETTERS) {
                _ if !is_last || place != last => quoted(run),
                Some((end, _)) => format!("{}*", quoted(run.get(..end).unwrap_or(run))),
                None => format!("{}*", quoted(run)),
            };
            match stem(run) {
                Some(stem) => format!("({exact} OR {})", quoted(&stem)),
                None => exact,
            }
        }
    });
    let parts = parts.collect::<Vec<_>>();
    (!parts.is_empty()).then(|| format!("({})", parts.join(" AND ")))
}

/// Returns the full-text query that finds a word and words similar to it.
pub(super) fn loose_query(word: &str) -> Option<String> {
    let exact = query(word, false)?;
    Some([exact].into_iter().chain(similar(word).map(|term| quoted(&term))).collect::<Vec<_>>().join(" OR "))
}

/// Quotes a word, so that the full-text query treats none of its characters as an operator.
fn quoted(word: &str) -> String {
    format!("\"{word}\"")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    Spaced,
    /// A script whose words are not separated by spaces. Korean is treated as such a script, because of its long
    /// compounds.
    Unspaced,
}

const fn script(c: char) -> Script {
    match c {
        // Thai, Lao, Myanmar, Khmer
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        // Hangul, Kana, Bopomofo, Han
        | '\u{1100}'..='\u{11ff}' | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{31ff}' | '\u{3400}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ffdc}' | '\u{20000}'..='\u{3ffff}' => {
            Script::Unspaced
        }
        _ => Script::Spaced,
    }
}

/// Splits a word wherever it changes between a script that separates words by spaces and a script that does not.
fn runs(word: &str) -> Vec<(Script, &str)> {
    let mut rest = word;
    let mut runs = vec![];
    while let Some(first) = rest.chars().next() {
        let kind = script(first);
        let (run, after) = rest.split_at(rest.find(|c| script(c) != kind).unwrap_or(rest.len()));
        runs.push((kind, run));
        rest = after;
    }
    runs
}

/// Returns all pairs of adjacent letters.
fn pairs(run: &str) -> impl Iterator<Item = String> {
    run.chars().zip(run.chars().skip(1)).map(|(first, second)| String::from_iter([first, second]))
}

/// Returns the stem of an English word; `None` if the word equals its stem.
fn stem(word: &str) -> Option<String> {
    if !word.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return None;
    }
    let lowercase = word.to_ascii_lowercase();
    let stem = Stemmer::create(Algorithm::English).stem(&lowercase);
    (*stem != *lowercase).then(|| stem.into_owned())
}

/// Returns the index terms for finding similar words: the word itself, and each of its variants with one letter left
/// out. Two words that differ in one letter share at least one such term.
fn similar(word: &str) -> impl Iterator<Item = String> + use<> {
    let letters: Vec<char> = word.chars().flat_map(char::to_lowercase).collect();
    let compared = SIMILAR_LETTERS.contains(&letters.len())
        && letters.iter().all(|letter| letter.is_alphabetic() && script(*letter) == Script::Spaced);
    // The last variant leaves out no letter.
    let variants = if compared { letters.len().saturating_add(1) } else { 0 };
    let terms: BTreeSet<String> = (0..variants)
        .map(|left_out| {
            let kept = letters.iter().enumerate().filter(|(place, _)| *place != left_out).map(|(_, letter)| letter);
            [SIMILAR].iter().chain(kept).collect()
        })
        .collect();
    terms.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_stems_pairs_and_similar_words() {
        let terms = of_listing("Pages 桜", "3Dポスター animated", None);
        let terms: BTreeSet<&str> = terms.split(' ').collect();
        let expected =
            ["3D", "anim", "page", "ター", "ポ", "ポス", "桜", "\u{e000}ages", "\u{e000}pages", "\u{e000}page"];
        for term in expected {
            assert!(terms.contains(term), "{term} in {terms:?}");
        }
        assert!(!terms.contains("\u{e000}animate"), "of title and category alone");
    }

    #[test]
    fn similar_words_have_a_term_in_common_and_others_have_none() {
        let alike = |a: &str, b: &str| {
            let others: Vec<_> = similar(b).collect();
            similar(a).any(|term| others.contains(&term))
        };
        for typo in ["landign", "ladning", "lnading", "landin", "landiing", "lending", "landingg", "LANDING"] {
            assert!(alike("landing", typo), "{typo}");
        }
        for other in ["lander", "binding", "lndg", "dashboard"] {
            assert!(!alike("landing", other), "{other}");
        }
        assert_eq!(similar("hero").count() + similar("ポスターポスター").count() + similar("w1234567").count(), 0);
    }

    #[test]
    fn the_last_word_may_be_a_beginning() {
        assert_eq!(query("hero", false).unwrap(), "(\"hero\")");
        assert_eq!(query("hero", true).unwrap(), "(\"hero\"*)");
        assert_eq!(query("documentation", true).unwrap(), "((\"document\"* OR \"document\"))");
        assert_eq!(query("pages", false).unwrap(), "((\"pages\" OR \"page\"))");
        assert_eq!(query("桜", true).unwrap(), "(\"桜\")");
        assert_eq!(query("ポスター", true).unwrap(), "(\"ポス\" AND \"スタ\" AND \"ター\")");
        assert_eq!(query("3Dポスタ", true).unwrap(), "(\"3D\" AND \"ポス\" AND \"スタ\")");
        assert_eq!(query("", true), None);
    }
}
