//! Decodes a text file that is to be sold, and derives a title and a description from it where possible.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag};
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
    if decoded.text.contains('\0') { Err(NotText::Nul) } else { Ok(decoded) }
}

/// Title and descriptions found in a Markdown text; `None` for each that the text lacks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Introduction {
    /// Title in the front matter, or else the first heading of level 1.
    pub title: Option<String>,
    /// Description in the front matter.
    pub description: Option<String>,
    /// First paragraph of the text.
    pub paragraph: Option<String>,
}

impl Introduction {
    /// Finds title and descriptions in a Markdown text.
    pub fn of(text: &str) -> Self {
        enum Block {
            FrontMatter,
            Heading,
            Paragraph,
            Other,
        }
        let text = text.strip_prefix(BOM).unwrap_or(text);
        let (mut introduction, mut heading) = (Self::default(), None);
        let (mut block, mut words, mut depth, mut blocks) = (Block::Other, String::new(), 0_usize, 0_usize);
        for event in Parser::new_ext(text, Options::ENABLE_YAML_STYLE_METADATA_BLOCKS) {
            match event {
                Event::Start(tag) => {
                    if depth == 0 {
                        words.clear();
                        block = match tag {
                            Tag::MetadataBlock(_) if blocks == 0 => Block::FrontMatter,
                            Tag::Heading { level: HeadingLevel::H1, .. } if heading.is_none() => Block::Heading,
                            Tag::Paragraph if introduction.paragraph.is_none() => Block::Paragraph,
                            _ => Block::Other,
                        };
                    }
                    depth = depth.saturating_add(1);
                }
                Event::End(_) => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        blocks = blocks.saturating_add(1);
                        match block {
                            Block::FrontMatter => {
                                (introduction.title, introduction.description) = front_matter(&words);
                            }
                            Block::Heading => heading = in_one_line(&words),
                            Block::Paragraph => introduction.paragraph = in_one_line(&words),
                            Block::Other => {}
                        }
                    }
                }
                Event::Text(text) | Event::Code(text) => words.push_str(&text),
                Event::SoftBreak | Event::HardBreak => words.push(' '),
                _ => {}
            }
        }
        introduction.title = introduction.title.or(heading);
        introduction
    }
}

/// Replaces line breaks by spaces. Returns `None` if the text has no words.
fn in_one_line(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Returns the title and the description in YAML front matter, each `None` if it is absent or the YAML is invalid.
fn front_matter(yaml: &str) -> (Option<String>, Option<String>) {
    let documents = Yaml::load_from_str(yaml).unwrap_or_default();
    let text = |key| documents.first()?.as_mapping_get(key)?.as_str();
    let description = text("description").map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    (text("title").and_then(in_one_line), description)
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
        for text in ["plain", "\u{feff}with a mark\r\n", "Caf\u{e9}\r\n", ""] {
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
    }

    #[test]
    fn title_and_paragraph_are_read_as_markdown_shows_them() {
        for (text, read) in [
            (
                "# Aurora *hero*\n\nBuild a `hero`\nsection.\n\nMore.",
                introduction("Aurora hero", "", "Build a hero section."),
            ),
            ("\u{feff}# Aurora\r\n\r\nTwo\r\nlines.\r\n", introduction("Aurora", "", "Two lines.")),
            ("Aurora\n======\n\n- a list\n\nText.", introduction("Aurora", "", "Text.")),
            ("```\n# no heading\n```\n\n## Second level\n", introduction("", "", "")),
            ("#hashtag first", introduction("", "", "#hashtag first")),
            ("---\n\nText", introduction("", "", "Text")),
            ("", introduction("", "", "")),
        ] {
            assert_eq!(Introduction::of(text), read, "{text:?}");
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
            ("---\n: : {\n---\n\nText.", introduction("", "", "Text.")),
        ] {
            assert_eq!(Introduction::of(text), read, "{text:?}");
        }
    }
}
