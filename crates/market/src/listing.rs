//! Listings, and the validation of offers to list something.
//!
//! The rules are those of the public API ("NewListing"). Lengths are numbers of Unicode scalar values.

pub mod changes;
mod draft;
pub mod reveal;

use std::{fmt, str::FromStr};

pub use api_types::{
    CATEGORIES, DeliveryMode, MAX_CONTENT_BYTES, MAX_DESCRIPTION, MAX_EXCERPT, MAX_PREVIEW_URL, MAX_TITLE,
};
use api_types::{ContentStats, Error, ErrorCode};
use cardano::{Address, ContentHash, Lovelace};
use serde::{Deserialize, Serialize};
use serde_json::{json, value::RawValue};
use ulid::Ulid;
use url::Url;

use crate::visible::{misleads, shows_something};
use draft::{ListingDraft, optional, required};

/// Minimum price of a listing.
pub const MIN_PRICE: Lovelace = Lovelace::from_ada(1);
pub use x402_cardano::method::MIN_PROTECTED_PRICE;

/// Id of a listing: `lst_` and a ULID (26 characters of Crockford's base 32).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ListingId(String);

/// The text is not a listing id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a listing id")]
pub struct ListingIdError;

impl ListingId {
    /// Creates an id from the time (POSIX ms, 48 bits) and 80 random bits, as specified for ULIDs.
    #[must_use]
    pub fn new(now_ms: u64, random: [u8; 10]) -> Self {
        let random = random.iter().fold(0, |bits, byte| bits << 8 | u128::from(*byte));
        Self(format!("lst_{}", Ulid::from_parts(now_ms, random)))
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ListingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&ListingId> for sql::Param {
    fn from(id: &ListingId) -> Self {
        id.as_str().into()
    }
}

impl TryFrom<String> for ListingId {
    type Error = ListingIdError;

    fn try_from(text: String) -> Result<Self, ListingIdError> {
        text.parse()
    }
}

impl FromStr for ListingId {
    type Err = ListingIdError;

    fn from_str(text: &str) -> Result<Self, ListingIdError> {
        let digits = text.strip_prefix("lst_").ok_or(ListingIdError)?;
        let ulid = Ulid::from_string(digits).map_err(|_| ListingIdError)?;
        // The library accepts lower case, but ids must have only one spelling.
        if ulid.to_string() != digits {
            return Err(ListingIdError);
        }
        Ok(Self(text.to_owned()))
    }
}

/// Maximum bytes per character in UTF-8.
const UTF8: usize = 4;
/// Maximum size in bytes of each short field, such as an address or a name.
const SHORT: usize = 256;
/// Error message for a text that has only spaces and invisible characters.
const NOTHING_VISIBLE: &str = "must have a character that can be seen";
/// File extensions that a preview may have, in upper or lower case.
const PREVIEW_ENDINGS: [&str; 4] = [".mp4", ".webm", ".webp", ".gif"];

/// A valid offer to list something for sale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewListing {
    /// Title: 1 to 120 characters.
    pub title: String,
    /// Description: 1 to 2,000 characters.
    pub description: String,
    /// Price in lovelace, at least the minimum price of each offered delivery mode.
    pub price: Lovelace,
    /// Price as the client sent it, possibly with leading zeros. A seller without a session signs this text.
    pub signed_price: String,
    /// Address of the seller: the session's owner, or else the address in the request's body.
    pub seller: Address,
    /// Delivery modes: at least one, without duplicates, instant first.
    pub modes: Vec<DeliveryMode>,
    pub content: String,
    /// The https URL of a recording, if any, normalized by the URL standard. It contains no spaces, quotes, or angle
    /// brackets.
    pub preview_media: Option<String>,
    /// A member of [`CATEGORIES`], or `None`.
    pub category: Option<&'static str>,
    /// Part of the content that everyone may read.
    pub excerpt: Option<String>,
}

fn invalid<T>(code: ErrorCode, field: &'static str, rule: impl fmt::Display) -> Result<T, Error> {
    Err(Error::of_field(code, field, rule))
}

/// Returns the error for content that is too long. A body that is too large to be read gets the same error.
#[must_use]
pub fn content_too_long() -> Error {
    Error::of_field(ErrorCode::InvalidLength, "content", content_rule())
}

fn content_rule() -> String {
    format!("must be at most {MAX_CONTENT_BYTES} bytes of UTF-8")
}

impl NewListing {
    /// Parses an offer. `seller` is the session's owner; `None` without a session, in which case the body's
    /// `sellerAddress` is used. Unknown fields are ignored.
    ///
    /// # Errors
    /// Returns an error for the first field, in the API's order, that breaks a rule.
    pub fn read(body: &[u8], seller: Option<Address>) -> Result<Self, Error> {
        let draft = ListingDraft::read(body)?;
        let title = text(draft.title, "title", MAX_TITLE, |c| c.is_control())?;
        let description = text(draft.description, "description", MAX_DESCRIPTION, is_forbidden_in_description)?;
        let signed_price = required(draft.price_lovelace, "priceLovelace", SHORT, "is not an amount of lovelace")?;
        let price = price(&signed_price)?;
        let seller = match seller {
            Some(owner) => owner,
            None => seller_address(draft.seller_address)?,
        };
        let modes = modes(draft.modes)?;
        check_price(price, &modes)?;
        let content = required(draft.content, "content", MAX_CONTENT_BYTES, &content_rule())?;
        if content.is_empty() {
            return invalid(ErrorCode::InvalidLength, "content", "must not be empty");
        }
        if !shows_something(&content) {
            return invalid(ErrorCode::NothingVisible, "content", NOTHING_VISIBLE);
        }
        let excerpt = excerpt(draft.excerpt)?;
        if let Some(excerpt) = &excerpt {
            check_excerpt(&content, excerpt)?;
        }
        private(&content, &title, &description, excerpt.as_deref())?;
        Ok(Self {
            title,
            description,
            price,
            signed_price,
            seller,
            modes,
            content,
            preview_media: preview(draft.preview_media)?,
            category: category(draft.category)?,
            excerpt,
        })
    }

    /// Returns the SHA-256 of the content.
    #[must_use]
    pub fn content_hash(&self) -> ContentHash {
        ContentHash::of(self.content.as_bytes())
    }

    /// Returns a digest of all fields that the seller chose. A repeated offer is recognised by this digest.
    #[must_use]
    pub fn offer_digest(&self) -> ContentHash {
        // Leaves out the id and the time.
        let no_id = ListingId(String::new());
        ContentHash::of(self.card(&no_id, 0).as_bytes())
    }

    /// Returns the listing's public JSON without `sales`, `sellerName` and `sellerReputation`.
    #[must_use]
    pub fn card(&self, id: &ListingId, created_at_ms: u64) -> String {
        // Destructured, so that a new field is not forgotten.
        let Self {
            title,
            description,
            price,
            signed_price: _,
            seller,
            modes,
            content,
            preview_media,
            category,
            excerpt,
        } = self;
        let card = api_types::Listing {
            id: id.as_str().to_owned(),
            title: title.clone(),
            description: description.clone(),
            price_lovelace: *price,
            seller_address: *seller,
            seller_name: None,
            modes: modes.clone(),
            content_hash: self.content_hash(),
            preview_media: preview_media.clone(),
            category: category.map(str::to_owned),
            content_stats: excerpt.is_some().then(|| ContentStats::of(content)),
            excerpt: excerpt.clone(),
            created_at: Some(created_at_ms),
            sales: None,
            seller_reputation: None,
        };
        json!(card).to_string()
    }
}

/// Decodes a required text, and checks it with [`visible`].
fn text(
    sent: Option<&RawValue>,
    field: &'static str,
    most: usize,
    refused: impl Fn(char) -> bool,
) -> Result<String, Error> {
    let length = format!("must have 1 to {most} characters");
    visible(required(sent, field, most.saturating_mul(UTF8), &length)?, field, most, refused)
}

/// Checks a text that will be displayed. It must have 1 to `most` characters, at least one of them visible. Characters
/// that mislead readers, or for which `refused` returns `true`, are forbidden.
fn visible(text: String, field: &'static str, most: usize, refused: impl Fn(char) -> bool) -> Result<String, Error> {
    let length = format!("must have 1 to {most} characters");
    if !(1..=most).contains(&text.chars().count()) {
        return invalid(ErrorCode::InvalidLength, field, length);
    }
    match text.chars().find(|c| refused(*c) || misleads(*c)) {
        None if !shows_something(&text) => invalid(ErrorCode::NothingVisible, field, NOTHING_VISIBLE),
        Some(c) => {
            let rule = format_args!("must not contain the control character U+{:04X}", u32::from(c));
            invalid(ErrorCode::ForbiddenCharacter, field, rule)
        }
        None => Ok(text),
    }
}

fn check_price(price: Lovelace, modes: &[DeliveryMode]) -> Result<(), Error> {
    if price < MIN_PRICE {
        return invalid(ErrorCode::PriceTooLow, "priceLovelace", format_args!("must be at least {MIN_PRICE}"));
    }
    if modes.contains(&DeliveryMode::Protected) && price < MIN_PROTECTED_PRICE {
        let rule = format_args!("must be at least {MIN_PROTECTED_PRICE} to offer protected");
        return invalid(ErrorCode::PriceTooLow, "priceLovelace", rule);
    }
    Ok(())
}

fn is_forbidden_in_description(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
}

/// Parses an excerpt. Surrounding white space is removed, and an empty excerpt counts as absent. Line breaks become
/// line feeds.
fn excerpt(sent: Option<&RawValue>) -> Result<Option<String>, Error> {
    const FIELD: &str = "excerpt";
    let rule = format!("must have at most {MAX_EXCERPT} characters");
    let Some(sent) = optional(sent, FIELD, MAX_EXCERPT.saturating_mul(UTF8), &rule)? else { return Ok(None) };
    let text = sent.replace("\r\n", "\n").trim().to_owned();
    if text.is_empty() {
        return Ok(None);
    }
    visible(text, FIELD, MAX_EXCERPT, is_forbidden_in_description).map(Some)
}

/// Checks that the content contains the excerpt, character for character except for the kind of line breaks.
fn check_excerpt(content: &str, excerpt: &str) -> Result<(), Error> {
    if content.contains(excerpt) || content.replace("\r\n", "\n").contains(excerpt) {
        return Ok(());
    }
    let rule = "must be a part of the content, character for character";
    invalid(ErrorCode::InvalidValue, "excerpt", rule)
}

/// Checks that the public texts together do not reveal too much of the content. If they were checked one by one, the
/// title and the description could each show a different part of it.
fn private(content: &str, title: &str, description: &str, excerpt: Option<&str>) -> Result<(), Error> {
    let mut public = String::new();
    for (field, text) in [("title", title), ("description", description), ("excerpt", excerpt.unwrap_or_default())] {
        public.push_str(text);
        public.push('\n');
        if reveal::shown_percent(content, &public) > reveal::MOST_SHOWN {
            let rule = "shows most of the content, and everyone can read it: say in other words what a buyer gets";
            return invalid(ErrorCode::RevealsContent, field, rule);
        }
    }
    Ok(())
}

fn price(text: &str) -> Result<Lovelace, Error> {
    text.parse()
        .or_else(|error: cardano::money::LovelaceError| invalid(ErrorCode::InvalidValue, "priceLovelace", error))
}

fn seller_address(sent: Option<&RawValue>) -> Result<Address, Error> {
    const FIELD: &str = "sellerAddress";
    let text = required(sent, FIELD, SHORT, "is not an address")?;
    text.parse().or_else(|error: cardano::address::AddressError| invalid(ErrorCode::InvalidAddress, FIELD, error))
}

fn modes(sent: Option<&RawValue>) -> Result<Vec<DeliveryMode>, Error> {
    let json = sent.map(RawValue::get).filter(|json| json.len() <= SHORT);
    let listed: Vec<DeliveryMode> = json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
    let in_order = [DeliveryMode::Instant, DeliveryMode::Protected];
    let modes: Vec<DeliveryMode> = in_order.into_iter().filter(|mode| listed.contains(mode)).collect();
    if modes.is_empty() || modes.len() != listed.len() {
        return invalid(
            ErrorCode::InvalidValue,
            "modes",
            "must be a list of \"instant\", \"protected\" or both, each once",
        );
    }
    Ok(modes)
}

/// Parses a preview's URL and normalizes it by the URL standard. The result contains no character that could end an
/// HTML attribute or a line.
fn preview(sent: Option<&RawValue>) -> Result<Option<String>, Error> {
    const FIELD: &str = "previewMedia";
    const RULE: &str = "must be an https URL ending in .mp4, .webm, .webp or .gif, of at most 2048 characters";
    let Some(text) = optional(sent, FIELD, MAX_PREVIEW_URL, RULE)? else { return Ok(None) };
    // The URL parser accepts a percent sign that encodes nothing, which RFC 3986 (2.1) forbids.
    let encodes = |rest: &str| rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    let (Ok(url), true) = (Url::parse(&text), text.split('%').skip(1).all(encodes)) else {
        return invalid(ErrorCode::InvalidValue, FIELD, RULE);
    };
    // The path itself must have the ending, not a query, a fragment or a host. A password in a public URL is an
    // accident.
    let path = url.path().to_ascii_lowercase();
    let ends = PREVIEW_ENDINGS.iter().any(|ending| path.ends_with(ending));
    let plain =
        url.username().is_empty() && url.password().is_none() && url.query().is_none() && url.fragment().is_none();
    // The URL standard leaves single quotes unescaped.
    let written = url.as_str().replace('\'', "%27");
    if url.scheme() == "https" && url.host().is_some() && plain && ends && written.len() <= MAX_PREVIEW_URL {
        Ok(Some(written))
    } else {
        invalid(ErrorCode::InvalidValue, FIELD, RULE)
    }
}

fn category(sent: Option<&RawValue>) -> Result<Option<&'static str>, Error> {
    let rule = format!("must be one of {}", CATEGORIES.join(", "));
    let Some(text) = optional(sent, "category", SHORT, &rule)? else { return Ok(None) };
    match CATEGORIES.into_iter().find(|category| *category == text) {
        Some(category) => Ok(Some(category)),
        None => invalid(ErrorCode::InvalidValue, "category", rule),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    const SELLER: &str = "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz";

    fn offer() -> Value {
        json!({
            "title": "A hero", "description": "With a gradient", "priceLovelace": "5000000", "sellerAddress": SELLER,
            "modes": ["instant", "protected"], "content": "Build a hero section.",
            "previewMedia": "https://media.example/hero.mp4", "category": "Hero",
        })
    }

    fn read(body: &Value, seller: Option<Address>) -> Result<NewListing, Error> {
        NewListing::read(body.to_string().as_bytes(), seller)
    }

    fn refused(field: &str, value: Value) -> String {
        let mut body = offer();
        body[field] = value;
        read(&body, None).unwrap_err().field.unwrap()
    }

    #[test]
    fn a_valid_offer_is_read_with_all_fields() {
        let listing = read(&offer(), None).unwrap();
        assert_eq!(listing.price, Lovelace::from_ada(5));
        assert_eq!(listing.modes, [DeliveryMode::Instant, DeliveryMode::Protected]);
        assert_eq!(listing.category, Some("Hero"));
    }

    #[test]
    fn a_domain_of_any_script_is_taken_in_its_ascii_spelling() {
        let url = "https://xn--bcher-kva.example/hero.mp4";
        let mut body = offer();
        body["previewMedia"] = json!(url);
        assert_eq!(read(&body, None).unwrap().preview_media.as_deref(), Some(url));
    }

    #[test]
    fn each_broken_field_is_named() {
        for (field, value) in [
            ("title", json!("")),
            ("title", json!("x".repeat(121))),
            ("title", json!(" \u{200b}\u{3000}")),
            ("title", json!(7)),
            ("title", Value::Null),
            ("description", json!("")),
            ("description", json!("\n\t\u{2800}")),
            ("description", json!("x".repeat(2001))),
            ("priceLovelace", json!(5_000_000)),
            ("priceLovelace", json!("-5000000")),
            ("priceLovelace", json!("5e6")),
            ("priceLovelace", json!("4999999")),
            ("priceLovelace", json!("18446744073709551616000000")),
            ("sellerAddress", json!("addr1vx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzers66hrl8")),
            ("sellerAddress", json!("addr_test1wrphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcl6szpr")),
            ("modes", json!([])),
            ("modes", json!("instant")),
            ("modes", json!(["instant", "instant"])),
            ("modes", json!(["later"])),
            ("modes", json!([1])),
            ("content", json!("")),
            ("content", json!("\u{feff} \r\n\0")),
            ("content", json!("é".repeat(MAX_CONTENT_BYTES / 2 + 1))),
            ("previewMedia", json!("http://media.example/hero.mp4")),
            ("previewMedia", json!("https://media.example/hero.exe")),
            ("previewMedia", json!("https://media.example/hero.exe?x=.mp4")),
            ("previewMedia", json!("https://media.example/hero.exe#.mp4")),
            ("previewMedia", json!("https://u:p@media.example/hero.mp4")),
            ("previewMedia", json!("https://.mp4")),
            ("previewMedia", json!("https://media.example/100%.mp4")),
            ("previewMedia", json!("https://media.example/100%2.mp4")),
            ("previewMedia", json!("https://media.example/a%zz.mp4")),
            ("previewMedia", json!("https://b\u{fc}cher.example/hero.mp4")),
            ("previewMedia", json!(false)),
            ("previewMedia", json!(format!("https://media.example/{}.mp4", "x".repeat(MAX_PREVIEW_URL)))),
            ("previewMedia", json!(format!("https://media.example/{}.mp4", "é".repeat(400)))),
            ("category", json!("hero")),
            ("category", json!(["Hero"])),
        ] {
            assert_eq!(refused(field, value.clone()), field, "{field} = {value}");
        }
    }

    #[test]
    fn lengths_count_characters_and_content_counts_bytes() {
        let mut body = offer();
        body["title"] = json!("🦀".repeat(120));
        body["content"] = json!("é".repeat(MAX_CONTENT_BYTES / 2));
        assert!(read(&body, None).is_ok());
    }

    #[test]
    fn a_field_of_another_type_is_named_and_the_other_fields_are_read() {
        for value in [json!(true), json!(-1), json!(1.5), json!(7), json!({"a": [1, {"b": null}]}), json!([["x"]])] {
            for field in
                ["title", "description", "priceLovelace", "sellerAddress", "content", "previewMedia", "category"]
            {
                let mut body = offer();
                body[field] = value.clone();
                let error = read(&body, None).unwrap_err();
                assert_eq!(error.to_string(), format!("{field}: must be a string"));
            }
        }
        for value in
            [json!("instant"), json!({"instant": true}), json!(1), json!(["instant", "protected", "x"]), json!([[]])]
        {
            assert_eq!(refused("modes", value), "modes");
        }
    }

    #[test]
    fn a_body_is_one_object_that_names_each_field_once() {
        for body in ["", "{", "[]", "null", "7", "\"x\"", "{} {}", "{\"title\":\"a\",\"title\":\"b\"}", "[\"a\",\"b\"]"]
        {
            assert_eq!(NewListing::read(body.as_bytes(), None).unwrap_err().field.unwrap(), "body", "{body}");
        }
        assert_eq!(NewListing::read(b"{\"unknown\":[{}, 1]}", None).unwrap_err().field.unwrap(), "title");
    }

    #[test]
    fn characters_that_hide_or_reorder_text_are_refused_and_line_breaks_in_a_description_are_not() {
        for c in [
            '\0', '\u{1}', '\u{1b}', '\u{7f}', '\u{85}', '\u{9f}', '\r', '\u{202a}', '\u{202e}', '\u{2066}',
            '\u{2069}', '\u{feff}',
        ] {
            for field in ["title", "description"] {
                let mut body = offer();
                body[field] = json!(format!("A{c}B"));
                let error = read(&body, None).unwrap_err();
                assert_eq!((error.code, error.field.as_deref()), (ErrorCode::ForbiddenCharacter, Some(field)));
                assert!(error.error.contains(&format!("U+{:04X}", u32::from(c))), "{error}");
            }
        }
        assert_eq!(refused("title", json!("two\nlines")), "title");
        let mut body = offer();
        body["description"] = json!("two\nlines,\ta tab, \u{200f}עברית and 🏳️‍🌈");
        assert!(read(&body, None).is_ok());
    }

    #[test]
    fn a_preview_is_kept_as_its_standard_writes_it() {
        for (sent, kept) in [
            ("HTTPS://Media.Example/a.mp4", "https://media.example/a.mp4"),
            ("https://media.example/a\"onload='x'.mp4", "https://media.example/a%22onload=%27x%27.mp4"),
            ("https://media.example/<script>\n.gif", "https://media.example/%3Cscript%3E.gif"),
            ("https://media.example/../b.webm", "https://media.example/b.webm"),
            ("https://media.example/IMG_1.MP4", "https://media.example/IMG_1.MP4"),
            ("https://media.example/a.WebP", "https://media.example/a.WebP"),
        ] {
            let mut body = offer();
            body["previewMedia"] = json!(sent);
            assert_eq!(read(&body, None).unwrap().preview_media.as_deref(), Some(kept));
        }
    }

    #[test]
    fn a_public_text_that_shows_most_of_the_content_is_refused() {
        let (heading, line) = ("# Aurora hero\n\n", "Three gradients that drift over near-black.");
        for (field, title, description, content) in [
            ("description", "A hero", line, line.to_owned()),
            ("description", "Aurora hero", line, format!("{heading}{line}")),
            ("description", "A hero", &format!("Here it is: {}", line.to_uppercase()), format!("{heading}{line}\r\n")),
            ("title", line, "Something else", format!("\u{feff}> {line}")),
        ] {
            let mut body = offer();
            (body["title"], body["description"], body["content"]) = (json!(title), json!(description), json!(content));
            let error = read(&body, None).unwrap_err();
            assert_eq!((error.code, error.field.as_deref()), (ErrorCode::RevealsContent, Some(field)), "{content}");
            // The same words as the beginning of something longer.
            body["content"] = json!(format!("{content} {}", "And rules of its own for each of them. ".repeat(9)));
            read(&body, None).unwrap();
        }
    }

    #[test]
    fn an_excerpt_is_a_part_of_the_content_and_counts_as_a_public_text() {
        let content = format!("# Aurora\r\n\r\nThree gradients drift.\r\n{}", "Rules for each of them. ".repeat(40));
        let with = |excerpt: &str| {
            let mut body = offer();
            (body["content"], body["excerpt"]) = (json!(content), json!(excerpt));
            read(&body, None)
        };
        for kept in ["Three gradients drift.", "# Aurora\n\nThree gradients drift.", "\n# Aurora\r\n\r\nThree \n"] {
            let listing = with(kept).unwrap();
            assert_eq!(listing.excerpt, Some(kept.replace('\r', "").trim().to_owned()));
            let card: api_types::Listing = serde_json::from_str(&listing.card(&ListingId::new(1, [0; 10]), 1)).unwrap();
            assert_eq!(card.excerpt, listing.excerpt);
            let characters = content.chars().count().try_into().unwrap();
            assert_eq!(card.content_stats, Some(ContentStats { words: 5 + 40 * 5, characters }));
        }
        let none = with(" \n").unwrap();
        assert_eq!((none.excerpt.as_ref(), with("").unwrap().excerpt), (None, None));
        assert!(!none.card(&ListingId::new(1, [0; 10]), 1).contains("contentStats"), "only beside an excerpt");
        for (excerpt, code) in [
            ("Four gradients drift.", ErrorCode::InvalidValue),
            ("three gradients drift.", ErrorCode::InvalidValue),
            ("\u{200b}", ErrorCode::NothingVisible),
            ("Three\u{202e} gradients", ErrorCode::ForbiddenCharacter),
            (&content[..510], ErrorCode::InvalidLength),
            (&content[..500], ErrorCode::RevealsContent),
        ] {
            let error = with(excerpt).unwrap_err();
            assert_eq!((error.code, error.field.as_deref()), (code, Some("excerpt")), "{excerpt}");
        }
    }

    #[test]
    fn the_least_price_depends_on_the_modes() {
        let mut body = offer();
        body["modes"] = json!(["instant"]);
        body["priceLovelace"] = json!("1000000");
        assert!(read(&body, None).is_ok());
        body["priceLovelace"] = json!("999999");
        let error = read(&body, None).unwrap_err();
        assert_eq!((error.code, error.field.as_deref()), (ErrorCode::PriceTooLow, Some("priceLovelace")));
    }

    #[test]
    fn the_seller_is_the_sessions_owner_even_if_the_body_names_another() {
        let owner: Address = SELLER.parse().unwrap();
        let mut body = offer();
        body["sellerAddress"] = json!(42);
        assert_eq!(read(&body, Some(owner)).unwrap().seller, owner);
    }

    #[test]
    fn the_card_has_no_content() {
        let listing = read(&offer(), None).unwrap();
        let card = listing.card(&ListingId::new(1, [0; 10]), 1);
        assert!(!card.contains("Build a hero"));
        assert!(card.contains(&listing.content_hash().to_string()));
    }

    #[test]
    fn ids_sort_by_time_and_read_back() {
        let first = ListingId::new(1_000, [255; 10]);
        let second = ListingId::new(1_001, [0; 10]);
        assert!(first.as_str() < second.as_str());
        assert_eq!(first.as_str().parse(), Ok(first.clone()));
        // From the ULID specification: 1469918176385 is 01ARYZ6S41.
        assert!(ListingId::new(1_469_918_176_385, [0; 10]).as_str().starts_with("lst_01ARYZ6S41"));
        for bad in ["", "lst_", "lst_01ARYZ6S41TSV4RRFFQ69G5FAu", "LST_01ARYZ6S41TSV4RRFFQ69G5FAV", "lst_' OR 1=1 --"] {
            assert_eq!(bad.parse::<ListingId>(), Err(ListingIdError), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_json_panics(title in ".{0,200}", price in "[0-9]{0,30}", preview in ".{0,80}") {
            let mut body = offer();
            body["title"] = json!(title);
            body["priceLovelace"] = json!(price);
            body["previewMedia"] = json!(preview);
            if let Ok(listing) = read(&body, None) {
                let shown = listing.preview_media.unwrap_or_default();
                prop_assert!(!shown.contains(['"', '\'', '<', '>', '\n', ' ']));
            }
        }
    }
}
