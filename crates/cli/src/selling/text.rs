//! Decodes a text file that is to be sold, and derives a title and a description from it where possible.

use market::shows_something;
use pulldown_cmark::{Event, HeadingLevel, MetadataBlockKind, Options, Parser, Tag};
use saphyr::{LoadableYamlNode, Yaml};

const BOM: char = '\u{feff}';

/// Reason why a file cannot be sold as text.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotText {
    #[error("is not text: byte {0} is not UTF-8; save it as UTF-8 and list it again")]
    Utf8(usize),
    #[error("is not text: it begins as UTF-16 does, and is not UTF-16; save it as UTF-8 and list it again")]
    Utf16,
    #[error("is not text: it has a NUL character, as binary files do")]
    Nul,
    #[error("is empty, or has only spaces and invisible characters: there is nothing to sell")]
    Empty,
}

/// The decoded text of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Decoded {
    pub text: String,
    /// Whether the text has the same bytes as the file, and therefore the same hash. `false` for UTF-16, which is sold
    /// as UTF-8.
    pub exact: bool,
}

/// Decodes UTF-8 unchanged, and UTF-16 that begins with a byte order mark. The mark is not part of the decoded text.
pub fn decode(bytes: Vec<u8>) -> Result<Decoded, NotText> {
    let order: Option<fn([u8; 2]) -> u16> = match bytes.as_slice() {
        [0xff, 0xfe, ..] => Some(u16::from_le_bytes),
        [0xfe, 0xff, ..] => Some(u16::from_be_bytes),
        _ => None,
    };
    let decoded = match order {
        None => {
            let text = String::from_utf8(bytes).map_err(|error| NotText::Utf8(error.utf8_error().valid_up_to()))?;
            Decoded { text, exact: true }
        }
        Some(order) => {
            let (pairs, rest) = bytes.as_chunks::<2>();
            let units: Vec<u16> = pairs.iter().skip(1).copied().map(order).collect();
            let text = String::from_utf16(&units).ok().filter(|_| rest.is_empty()).ok_or(NotText::Utf16)?;
            Decoded { text, exact: false }
        }
    };
    match decoded.text.as_str() {
        text if text.contains('\0') => Err(NotText::Nul),
        text if !shows_something(text) => Err(NotText::Empty),
        _ => Ok(decoded),
    }
}

/// The front matter, which stands between lines of `---`, is not valid YAML.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "has front matter that is not valid YAML, at line {line} ({reason}): correct it, or say both --title and --description"
)]
pub struct InvalidYaml {
    /// Line of the file, counted from 1.
    line: usize,
    reason: String,
}

/// Title and descriptions found in a Markdown text; `None` for each that the text lacks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Introduction {
    /// Title in the front matter, or else the first heading of level 1.
    pub title: Option<String>,
    /// Description in the front matter.
    pub description: Option<String>,
    /// Paragraph that introduces the text: only front matter, images and one heading of level 1 may stand before it.
    /// Later paragraphs are not used, because they are part of the sold content.
    pub paragraph: Option<String>,
}

impl Introduction {
    /// Finds title and descriptions in a Markdown text.
    ///
    /// # Errors
    /// Returns an error if the text begins with front matter that is not valid YAML.
    pub fn of(text: &str) -> Result<Self, InvalidYaml> {
        let text = text.strip_prefix(BOM).unwrap_or(text);
        // Tables and TOML are recognised because they would otherwise be read as paragraphs.
        let options = Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
            | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS
            | Options::ENABLE_TABLES;
        let (mut introduction, mut heading, mut is_introduced) = (Self::default(), None, false);
        let mut events = Parser::new_ext(text, options).into_offset_iter();
        while let Some((event, range)) = events.next() {
            let Event::Start(tag) = event else {
                is_introduced = true;
                continue;
            };
            let Words { text: words, has_own } = Words::of_block(events.by_ref().map(|(event, _)| event));
            let line = in_one_line(&words);
            let before = text.get(..range.start).unwrap_or_default();
            match tag {
                Tag::MetadataBlock(MetadataBlockKind::YamlStyle) if before.trim().is_empty() => {
                    match front_matter(&words, before.lines().count())? {
                        Some(found) => introduction = found,
                        None => is_introduced = true,
                    }
                }
                // Images alone, such as a logo or badges.
                Tag::Heading { .. } | Tag::Paragraph if line.is_none() => {}
                Tag::Heading { level: HeadingLevel::H1, .. } if heading.is_none() => heading = line,
                Tag::Paragraph if !is_introduced => {
                    introduction.paragraph = line.filter(|_| has_own);
                    is_introduced = true;
                }
                _ => is_introduced = true,
            }
        }
        introduction.title = introduction.title.or(heading);
        Ok(introduction)
    }
}

/// The words of a block, without the alternative texts of its images.
#[derive(Default)]
struct Words {
    text: String,
    /// Whether there are words outside links.
    has_own: bool,
}

impl Words {
    /// Collects the words of a Markdown block from the parser's events that follow its start event.
    fn of_block<'a>(events: impl Iterator<Item = Event<'a>>) -> Self {
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        enum Inside {
            Block,
            Link,
            Image,
        }
        let (mut words, mut open) = (Self::default(), vec![Inside::Block]);
        for event in events {
            let Some(&inside) = open.last() else { break };
            match event {
                Event::Start(tag) => open.push(match tag {
                    Tag::Image { .. } => Inside::Image,
                    Tag::Link { .. } => inside.max(Inside::Link),
                    _ => inside,
                }),
                Event::End(_) => {
                    open.pop();
                    if open.is_empty() {
                        break;
                    }
                }
                Event::Text(text) | Event::Code(text) if inside != Inside::Image => {
                    words.has_own |= inside == Inside::Block && text.contains(char::is_alphanumeric);
                    words.text.push_str(&text);
                }
                Event::SoftBreak | Event::HardBreak => words.text.push(' '),
                _ => {}
            }
        }
        words
    }
}

/// Replaces line breaks by spaces. Returns `None` if the text has no words.
fn in_one_line(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Parses the title and the description in YAML front matter, whose keys may be in capitals. `before` is the number of
/// lines before the front matter, for line numbers in errors. Returns `None` if the YAML has no keys, as with plain
/// text between two horizontal rules.
///
/// # Errors
/// Returns an error if the YAML is invalid.
fn front_matter(yaml: &str, before: usize) -> Result<Option<Introduction>, InvalidYaml> {
    let documents = Yaml::load_from_str(yaml).map_err(|error| InvalidYaml {
        // The line `---` precedes the YAML.
        line: error.marker().line().saturating_add(before).saturating_add(1),
        reason: error.info().to_owned(),
    })?;
    let Some(fields) = documents.first().and_then(Yaml::as_mapping) else { return Ok(None) };
    let text = |name| {
        let is_named = |key: &Yaml<'_>| key.as_str().is_some_and(|key| key.eq_ignore_ascii_case(name));
        fields.iter().find(|(key, _)| is_named(key))?.1.as_str()
    };
    let description = text("description").map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    Ok(Some(Introduction { title: text("title").and_then(in_one_line), description, paragraph: None }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn introduction(title: &str, description: &str, paragraph: &str) -> Introduction {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Introduction { title: some(title), description: some(description), paragraph: some(paragraph) }
    }

    #[test]
    fn a_file_is_decoded_byte_for_byte_or_refused_as_no_text() {
        for text in ["plain", "\u{feff}with a mark\r\n", "Caf\u{e9}\r\n"] {
            let exact = Decoded { text: text.to_owned(), exact: true };
            assert_eq!(decode(text.as_bytes().to_vec()), Ok(exact));
        }
        let text = "Café, 桜 and 🦀\r\n";
        for order in [u16::to_le_bytes, u16::to_be_bytes] {
            let bytes: Vec<u8> = format!("{BOM}{text}").encode_utf16().flat_map(order).collect();
            assert_eq!(decode(bytes.clone()), Ok(Decoded { text: text.to_owned(), exact: false }));
            assert_eq!(decode(bytes[..bytes.len() - 1].to_vec()), Err(NotText::Utf16));
        }
        assert_eq!(decode(b"Caf\xe9".to_vec()), Err(NotText::Utf8(3)), "Windows-1252");
        assert_eq!(decode(b"\xff\xfe\x00\xd8".to_vec()), Err(NotText::Utf16), "half a surrogate pair");
        assert_eq!(decode(b"GIF89a\0\0".to_vec()), Err(NotText::Nul));
        for blank in ["", "\r\n \t\n", "\u{feff}", "\u{200b}\n"] {
            assert_eq!(decode(blank.into()), Err(NotText::Empty), "{blank:?}");
        }
    }

    #[test]
    fn title_and_paragraph_are_read_as_markdown_shows_them() {
        for (text, read) in [
            (
                "# Aurora *hero*\n\nBuild a `hero`\nsection.\n\nMore.",
                introduction("Aurora hero", "", "Build a hero section."),
            ),
            ("\u{feff}# Aurora\r\n\r\nTwo\r\nlines.\r\n", introduction("Aurora", "", "Two lines.")),
            ("Aurora\n======\n\n- a list\n\nText.", introduction("Aurora", "", "")),
            ("```\n# no heading\n```\n\n## Second level\n", introduction("", "", "")),
            ("#hashtag first", introduction("", "", "#hashtag first")),
            ("---\n\nText", introduction("", "", "")),
            ("", introduction("", "", "")),
        ] {
            assert_eq!(Introduction::of(text), Ok(read), "{text:?}");
        }
    }

    #[test]
    fn front_matter_comes_before_the_text() {
        for (text, read) in [
            (
                "---\ntitle: \"Aurora: a hero\"\ndescription: >\n  Drifts with\n  the pointer.\ntags: [a]\n---\n# Other\n\nText.",
                introduction("Aurora: a hero", "Drifts with the pointer.", "Text."),
            ),
            ("\u{feff}---\r\ntitle: Aurora\r\n---\r\n\r\nText.", introduction("Aurora", "", "Text.")),
            ("---\ntitle: 7\ndescription: [a]\n---\n# Seven\n", introduction("Seven", "", "")),
            (
                "---\nTitle: Aurora\nDESCRIPTION: Drifts.\n---\n# Other\n\nText.",
                introduction("Aurora", "Drifts.", "Text."),
            ),
            ("---\nThe first step.\n---\n\nThe second.", introduction("", "", "")),
            ("+++\ntitle = \"Aurora\"\n+++\n\nText.", introduction("", "", "")),
            ("# Aurora\n\nText.\n\n---\ntitle: Other\n---\n", introduction("Aurora", "", "Text.")),
        ] {
            assert_eq!(Introduction::of(text), Ok(read), "{text:?}");
        }
    }

    #[test]
    fn only_a_paragraph_that_introduces_the_text_is_a_description() {
        for before in [
            "- a step",
            "1. a step",
            "```\ncode\n```",
            "    code",
            "> a quote",
            "<div>HTML</div>",
            "<!-- a comment -->",
            "| a | table |\n|---|---|\n| of | steps |",
            "***",
            "## Steps",
            "# Steps",
            "[a link](https://example.com)",
        ] {
            let text = format!("# Aurora\n\n{before}\n\nOpen the second valve.");
            assert_eq!(Introduction::of(&text), Ok(introduction("Aurora", "", "")), "{text:?}");
        }
    }

    #[test]
    fn the_alternative_text_of_an_image_is_no_word_of_the_text() {
        const BADGES: &str = "[![CI](https://example.com/ci.svg)](https://example.com/ci)\n![npm](npm.svg)";
        for (text, read) in [
            (BADGES.to_owned(), introduction("", "", "")),
            (format!("# Aurora\n\n{BADGES}\n\nA hero."), introduction("Aurora", "", "A hero.")),
            (format!("{BADGES}\n\n# Aurora\n\nA hero."), introduction("Aurora", "", "A hero.")),
            (format!("{BADGES}\n\n- a step\n\nA hero."), introduction("", "", "")),
            ("# ![logo](logo.svg) Aurora\n\nA ![small](a.svg) hero.".into(), introduction("Aurora", "", "A hero.")),
            ("# ![logo](logo.svg)\n\nA hero, see [more](b).".into(), introduction("", "", "A hero, see more.")),
            ("<a href=\"b\"><img src=\"ci.svg\"></a>\n\nA hero.".into(), introduction("", "", "A hero.")),
            ("[docs](a) · [site](https://example.com)\n\nA hero.".into(), introduction("", "", "")),
        ] {
            assert_eq!(Introduction::of(&text), Ok(read), "{text:?}");
        }
    }

    #[test]
    fn invalid_front_matter_is_named_with_its_line() {
        for (text, line) in [
            ("---\n: : {\n---\n\nText.", 3),
            ("\u{feff}---\r\ntitle: Aurora\r\ndescription: a hero: that drifts\r\n---\r\nText.", 3),
            ("\n---\ntitle: [a\n---\n\nText.", 4),
        ] {
            let error = Introduction::of(text).unwrap_err();
            let told = format!("has front matter that is not valid YAML, at line {line} (");
            assert!(error.to_string().starts_with(&told), "{text:?}: {error}");
        }
    }
}
