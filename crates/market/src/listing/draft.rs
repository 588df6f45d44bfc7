//! An unvalidated offer, whose fields stay JSON until each is decoded within its bound.
//!
//! A body can be six times as long as its content, because JSON can spell a byte with six. Decoding it into a tree of
//! values would take a multiple of that. Here, parsing takes at most twice the body in addition
//! (tests/process_memory.rs).

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::InvalidField;

/// Maximum bytes of JSON per byte of text, as in `\u0000`.
const SPELLING: usize = 6;

/// The JSON of an offer's fields, `None` if missing or null. Unknown fields are ignored.
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

/// A string, copied only if JSON escapes a part of it.
#[derive(Deserialize)]
struct Decoded<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> ListingDraft<'a> {
    /// Parses a body.
    ///
    /// # Errors
    /// The body is not a JSON object, or has a field twice.
    pub fn read(body: &'a [u8]) -> Result<Self, InvalidField> {
        // Serde would accept an array of the fields in order.
        if body.trim_ascii_start().first() != Some(&b'{') {
            return Err(InvalidField { field: "body", rule: "must be a JSON object".into() });
        }
        let malformed = |error| InvalidField { field: "body", rule: format!("must be a JSON object ({error})") };
        serde_json::from_slice(body).map_err(malformed)
    }
}

/// Decodes an optional string. `too_long` is the violated rule if it has more than `most` bytes.
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
    // Including the quotes.
    if json.len() > most.saturating_mul(SPELLING).saturating_add(2) {
        return Err(broken(too_long.into()));
    }
    // Unpaired surrogates are detected only here.
    let malformed = |error| InvalidField { field: "body", rule: format!("must be a JSON object ({error} of {field})") };
    let Decoded(text) = serde_json::from_str(json).map_err(malformed)?;
    if text.len() > most { Err(broken(too_long.into())) } else { Ok(Some(text.into_owned())) }
}

/// Decodes a required string.
pub(super) fn required(
    sent: Option<&RawValue>,
    field: &'static str,
    most: usize,
    too_long: &str,
) -> Result<String, InvalidField> {
    optional(sent, field, most, too_long)?.ok_or_else(|| InvalidField { field, rule: "is required".into() })
}
