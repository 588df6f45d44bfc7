//! Distinguishes texts with visible characters from texts that look empty.

/// Returns whether a text has a visible character. Spaces and invisible characters do not count.
#[must_use]
pub fn shows_something(text: &str) -> bool {
    text.chars().any(is_visible)
}

/// Returns whether a character is invisible: in Unicode's `Default_Ignorable_Code_Point` (DerivedCoreProperties.txt,
/// version 16), or a blank that Unicode calls neither ignorable nor white space. These blanks are the braille pattern
/// without dots, and the anchors of interlinear annotations.
pub const fn is_blank(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns whether a character may mislead readers and so must not be in a displayed text. Such characters are byte
/// order marks, and controls of the writing direction, which can make a title look like another one.
pub const fn misleads(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn is_visible(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && !is_blank(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_and_invisible_characters_show_nothing() {
        for blank in [
            "",
            " ",
            "\t\r\n",
            "\u{a0}\u{3000}",
            "\u{200b}\u{200d}",
            "\u{feff}",
            "\u{ad}",
            "\u{2800}",
            "\u{3164}",
            "\u{115f}\u{ffa0}",
            "\u{fe0f}",
            "\u{e0020}\u{e007f}",
            "\0",
            "\u{2060}\u{180e}",
        ] {
            assert!(!shows_something(blank), "{blank:?}");
            assert!(shows_something(&format!("{blank}x{blank}")), "{blank:?}");
        }
        for visible in [".", "\u{200b}é", "e\u{301}", "桜", "🏳️‍🌈", "\u{640}", "ـ"] {
            assert!(shows_something(visible), "{visible:?}");
        }
    }
}
