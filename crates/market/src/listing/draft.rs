//! An offer as it was sent: each field read within its bound, everything else passed over without being kept.
//!
//! A body may be six times as long as the content in it, because JSON can spell one byte with six. Reading it into a
//! tree of values would take many times that again. This takes the body, within its bound. Reading takes at most twice
//! the body besides, where a text is decoded or lists are nested (tests/process_memory.rs).

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use super::{InvalidField, MAX_CONTENT_BYTES, MAX_DESCRIPTION, MAX_PREVIEW_URL, MAX_TITLE};

/// Most bytes of a character in UTF-8.
const UTF8: usize = 4;
/// Bytes of the texts that are short by their rules: numbers, addresses, names.
const SHORT: usize = 256;

/// A text field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Text<const MAX: usize> {
    /// Not there, or null.
    #[default]
    Missing,
    /// Another type than a string.
    OtherType,
    /// More bytes than any value within the rules has.
    TooLong,
    /// A text of at most `MAX` bytes.
    Here(String),
}

impl<const MAX: usize> Text<MAX> {
    /// The text, if there is one. `too_long` is the rule that one without bounds breaks.
    pub(super) fn optional(self, field: &'static str, too_long: &str) -> Result<Option<String>, InvalidField> {
        match self {
            Self::Missing => Ok(None),
            Self::OtherType => Err(InvalidField { field, rule: "must be a string".into() }),
            Self::TooLong => Err(InvalidField { field, rule: too_long.into() }),
            Self::Here(text) => Ok(Some(text)),
        }
    }

    /// The text that must be there.
    pub(super) fn required(self, field: &'static str, too_long: &str) -> Result<String, InvalidField> {
        self.optional(field, too_long)?.ok_or_else(|| InvalidField { field, rule: "is required".into() })
    }
}

struct TextVisitor<const MAX: usize>;

impl<'de, const MAX: usize> Visitor<'de> for TextVisitor<MAX> {
    type Value = Text<MAX>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }
    fn visit_str<E>(self, text: &str) -> Result<Text<MAX>, E> {
        Ok(if text.len() > MAX { Text::TooLong } else { Text::Here(text.to_owned()) })
    }
    fn visit_unit<E>(self) -> Result<Text<MAX>, E> {
        Ok(Text::Missing)
    }
    fn visit_bool<E>(self, _: bool) -> Result<Text<MAX>, E> {
        Ok(Text::OtherType)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Text<MAX>, E> {
        Ok(Text::OtherType)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Text<MAX>, E> {
        Ok(Text::OtherType)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Text<MAX>, E> {
        Ok(Text::OtherType)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Text<MAX>, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Text::OtherType)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Text<MAX>, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Text::OtherType)
    }
}

impl<'de, const MAX: usize> Deserialize<'de> for Text<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

/// Most items of a list that are kept: one more than any list within the rules has.
const MAX_ITEMS: usize = 3;

/// A list of texts: its first items, of which one too many tells that there are too many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Texts(pub(super) Option<Vec<Text<SHORT>>>);

struct TextsVisitor;

impl<'de> Visitor<'de> for TextsVisitor {
    type Value = Texts;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }
    fn visit_str<E>(self, _: &str) -> Result<Texts, E> {
        Ok(Texts(None))
    }
    fn visit_unit<E>(self) -> Result<Texts, E> {
        Ok(Texts(None))
    }
    fn visit_bool<E>(self, _: bool) -> Result<Texts, E> {
        Ok(Texts(None))
    }
    fn visit_i64<E>(self, _: i64) -> Result<Texts, E> {
        Ok(Texts(None))
    }
    fn visit_u64<E>(self, _: u64) -> Result<Texts, E> {
        Ok(Texts(None))
    }
    fn visit_f64<E>(self, _: f64) -> Result<Texts, E> {
        Ok(Texts(None))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Texts, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Texts(None))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Texts, A::Error> {
        let mut kept = Vec::new();
        while kept.len() < MAX_ITEMS {
            match items.next_element()? {
                Some(item) => kept.push(item),
                None => return Ok(Texts(Some(kept))),
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Texts(Some(kept)))
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextsVisitor)
    }
}

/// The fields of an offer. Unknown ones are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ListingDraft {
    pub(super) title: Text<{ MAX_TITLE * UTF8 }>,
    pub(super) description: Text<{ MAX_DESCRIPTION * UTF8 }>,
    pub(super) price_lovelace: Text<SHORT>,
    pub(super) seller_address: Text<SHORT>,
    pub(super) modes: Texts,
    pub(super) content: Text<MAX_CONTENT_BYTES>,
    pub(super) preview_media: Text<MAX_PREVIEW_URL>,
    pub(super) category: Text<SHORT>,
}

impl ListingDraft {
    /// Reads a body.
    ///
    /// # Errors
    /// It is not one JSON object, or names a field twice.
    pub(super) fn read(body: &[u8]) -> Result<Self, InvalidField> {
        // A list would be read as the fields in their order.
        if body.trim_ascii_start().first() != Some(&b'{') {
            return Err(InvalidField { field: "body", rule: "must be a JSON object".into() });
        }
        let malformed = |error| InvalidField { field: "body", rule: format!("must be a JSON object ({error})") };
        serde_json::from_slice(body).map_err(malformed)
    }
}
