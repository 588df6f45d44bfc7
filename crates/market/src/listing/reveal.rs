//! Measures how much of the content a public text reveals.
//!
//! A listing's title and description are public, and buyers pay for its content. A seller who pastes a one-line prompt
//! as its own description sells nothing, because everyone has read it. Only letters and digits are compared, in
//! Unicode's compatibility decomposition (NFKD), so that Markdown's marks, line breaks, capitals, accents and wide
//! letters cannot hide a copy.

use std::collections::HashSet;

use unicode_normalization::UnicodeNormalization;

/// Minimum number of consecutive letters that two texts must share to count as copied. Shorter runs occur by chance in
/// texts on the same subject.
const MIN_COPIED_LETTERS: usize = 12;
/// Maximum length of content that is compared with a public text, as a multiple of the public text's length. A public
/// text cannot reveal more than a quarter of a longer content. This limit bounds the work for long contents.
const MAX_CONTENT_RATIO: usize = 4;

/// Maximum percentage of the content that the public texts (title, description and excerpt) may contain together.
pub const MOST_SHOWN: usize = 50;

/// Returns the percentage of `content` that `public` reveals, or 0 if it is less than a quarter.
#[must_use]
pub fn shown_percent(content: &str, public: &str) -> usize {
    // A content without letters, such as one of symbols, is compared by all that is visible.
    let has_letters = content.contains(char::is_alphanumeric);
    let kept = |c: &char| if has_letters { c.is_alphanumeric() } else { !c.is_whitespace() };
    let shown: Vec<char> = public.nfkd().filter(kept).flat_map(char::to_lowercase).collect();
    let most = shown.len().saturating_mul(MAX_CONTENT_RATIO);
    let start = content.nfkd().filter(kept).flat_map(char::to_lowercase).take(most.saturating_add(1));
    let sold: Vec<char> = start.collect();
    if sold.is_empty() || sold.len() > most {
        return 0;
    }
    let run = MIN_COPIED_LETTERS.min(sold.len());
    let known: HashSet<&[char]> = shown.windows(run).collect();
    let (mut copied, mut end) = (0_usize, 0);
    for (start, letters) in sold.windows(run).enumerate() {
        if known.contains(letters) {
            let until = start.saturating_add(run);
            copied = copied.saturating_add(until.saturating_sub(start.max(end)));
            end = until;
        }
    }
    copied.saturating_mul(100).checked_div(sold.len()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = "Build a hero section with three drifting gradients, in plain HTML and CSS.";

    #[test]
    fn a_copy_is_found_whatever_its_marks_case_and_line_breaks() {
        let marked = "# *Build* a\r\n`hero` section with THREE drifting gradients - in plain HTML & CSS";
        for copy in [PROMPT, marked, &format!("You get this: {PROMPT} Enjoy.")] {
            assert!(shown_percent(PROMPT, copy) >= 90, "{copy}: {}", shown_percent(PROMPT, copy));
        }
        for (content, copy) in [
            ("own", "Own"),
            ("🦀 🦀", "🦀🦀!"),
            ("桜のポスター", "これ:桜のポスター。"),
            ("H\u{e3}y vi\u{1ebf}t b\u{e0}i th\u{1a1}", "Ha\u{303}y vie\u{302}\u{301}t ba\u{300}i tho\u{31b}"),
            ("\u{d55c}\u{ae00} \u{c2dc}", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af} \u{1109}\u{1175}"),
            ("Build a hero", "Ｂｕｉｌｄ ａ ｈｅｒｏ"),
        ] {
            assert_eq!(shown_percent(content, copy), 100, "{content}");
        }
    }

    #[test]
    fn a_part_counts_by_its_length_and_a_description_in_other_words_does_not_count() {
        assert!((40..60).contains(&shown_percent(PROMPT, "Build a hero section with three dri")));
        assert_eq!(shown_percent(PROMPT, "A hero with gradients that drift, without a framework"), 0);
        assert_eq!(shown_percent(&PROMPT.repeat(100), PROMPT), 0);
        assert_eq!(shown_percent("", PROMPT), 0);
        assert_eq!(shown_percent(PROMPT, ""), 0);
    }
}
