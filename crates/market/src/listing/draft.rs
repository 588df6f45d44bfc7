//! An offer as it was sent: each field is left in the body until it is read within its bound.
//!
//! A body may be six times as long as the content in it, because JSON can spell one byte with six. Reading it into a
//! tree of values would take many times that again. This takes the body, within its bound. Reading takes at most twice
//! the body besides, where a text is decoded or lists are nested (tests/process_memory.rs).

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::InvalidField;

/// Bytes of JSON that spell one byte of a text at most: `\u0000`.
const SPELLING: usize = 6;

/// The JSON of an offer's fields; none where a field is not there, or null. Unknown fields are ignored.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ListingDraft<'a> {
    #[serde(borrow)]
    pub title: Option<&'a RawValue>,
    #[serde(borrow)]
    pub description: Option<&'a RawValue>,
    #[serde(borrow)]
    pub price_lovelace: Option<&'a RawValue>,
    #[serde(borrow)]
    pub seller_address: Option<&'a RawValue>,
    #[serde(borrow)]
    pub modes: Option<&'a RawValue>,
    #[serde(borrow)]
    pub content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub preview_media: Option<&'a RawValue>,
    #[serde(borrow)]
    pub category: Option<&'a RawValue>,
}

/// A text: a copy only where JSON spells some of it with escapes.
#[derive(Deserialize)]
struct Decoded<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> ListingDraft<'a> {
    /// Reads a body.
    ///
    /// # Errors
    /// It is not one JSON object, or names a field twice.
    pub fn read(body: &'a [u8]) -> Result<Self, InvalidField> {
        // A list would be read as the fields in their order.
        if body.trim_ascii_start().first() != Some(&b'{') {
            return Err(InvalidField { field: "body", rule: "must be a JSON object".into() });
        }
        let malformed = |error| InvalidField { field: "body", rule: format!("must be a JSON object ({error})") };
        serde_json::from_slice(body).map_err(malformed)
    }
}

/// The text of a field, if it is there. `too_long` is the rule that a text of more than `most` bytes breaks.
pub(super) fn optional(
    sent: Option<&RawValue>,
    field: &'static str,
    most: usize,
    too_long: &str,
) -> Result<Option<String>, InvalidField> {
    let broken = |rule: String| InvalidField { field, rule };
    let Some(json) = sent.map(RawValue::get) else { return Ok(None) };
    if !json.starts_with('"') {
        return Err(broken("must be a string".into()));
    }
    // With its quotes.
    if json.len() > most.saturating_mul(SPELLING).saturating_add(2) {
        return Err(broken(too_long.into()));
    }
    // Half a surrogate pair is found only here.
    let malformed = |error| InvalidField { field: "body", rule: format!("must be a JSON object ({error} of {field})") };
    let Decoded(text) = serde_json::from_str(json).map_err(malformed)?;
    if text.len() > most { Err(broken(too_long.into())) } else { Ok(Some(text.into_owned())) }
}

/// The text of a field that must be there.
pub(super) fn required(
    sent: Option<&RawValue>,
    field: &'static str,
    most: usize,
    too_long: &str,
) -> Result<String, InvalidField> {
    optional(sent, field, most, too_long)?.ok_or_else(|| InvalidField { field, rule: "is required".into() })
}
