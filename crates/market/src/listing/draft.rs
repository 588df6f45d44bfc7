//! An offer before its validation. Its fields stay JSON text until each is decoded within its own limit.
//!
//! A body can be six times as long as its content, because JSON can write one byte as six (`\u0000`). A tree of JSON
//! values for the whole body would take several times the body's size in memory. Parsing it in this way takes at most
//! twice its size (tests/process_memory.rs).

use std::{borrow::Cow, fmt};

use serde::Deserialize;
use serde_json::value::RawValue;

use api_types::{Error, ErrorCode};

/// Maximum number of bytes that JSON takes for one byte of text, as in `\u0000`.
const SPELLING: usize = 6;

/// Fields of an offer as unparsed JSON; `None` for a field that is missing or null. Unknown fields are ignored.
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
    #[serde(borrow)]
    pub excerpt: Option<&'a RawValue>,
}

/// A decoded JSON string, which borrows from the input unless it contains escapes.
#[derive(Deserialize)]
struct Decoded<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> ListingDraft<'a> {
    /// Parses a body.
    ///
    /// # Errors
    /// Returns an error if the body is not a single JSON object, or has a field twice.
    pub fn read(body: &'a [u8]) -> Result<Self, Error> {
        // Serde would also accept a JSON array with the fields in their order.
        if body.trim_ascii_start().first() != Some(&b'{') {
            return Err(malformed(format_args!("must be a JSON object")));
        }
        serde_json::from_slice(body).map_err(|error| malformed(format_args!("must be a JSON object ({error})")))
    }
}

fn malformed(rule: fmt::Arguments<'_>) -> Error {
    Error::of_field(ErrorCode::MalformedBody, "body", rule)
}

/// Decodes an optional string. `too_long` is the error message for a text of more than `most` bytes.
pub(super) fn optional(
    sent: Option<&RawValue>,
    field: &'static str,
    most: usize,
    too_long: &str,
) -> Result<Option<String>, Error> {
    let longer = || Error::of_field(ErrorCode::InvalidLength, field, too_long);
    let Some(json) = sent.map(RawValue::get) else { return Ok(None) };
    if !json.starts_with('"') {
        return Err(Error::of_field(ErrorCode::WrongType, field, "must be a string"));
    }
    // The two quotes are added.
    if json.len() > most.saturating_mul(SPELLING).saturating_add(2) {
        return Err(longer());
    }
    // An unpaired surrogate is only found when the string is decoded.
    let undecoded = |error| malformed(format_args!("must be a JSON object ({error} of {field})"));
    let Decoded(text) = serde_json::from_str(json).map_err(undecoded)?;
    if text.len() > most { Err(longer()) } else { Ok(Some(text.into_owned())) }
}

/// Decodes a required string.
pub(super) fn required(
    sent: Option<&RawValue>,
    field: &'static str,
    most: usize,
    too_long: &str,
) -> Result<String, Error> {
    optional(sent, field, most, too_long)?.ok_or_else(|| Error::of_field(ErrorCode::MissingField, field, "is required"))
}
