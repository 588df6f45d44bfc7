//! Parses the body of a request strictly. An error names the first wrong field.

use api_types::{
    Error, ErrorCode,
    arbiter::{DisputedListing, ResolveRequest},
};
use cardano::{ContentHash, TxRef};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

/// Maximum size of the delivered text (`output`) in bytes, equal to the maximum size of a listing's content.
pub const MAX_OUTPUT_BYTES: usize = 1 << 20;
/// Maximum number of characters of a listing id: several times the length of a real one.
const MAX_LISTING_ID: usize = 128;

/// A parsed member of a JSON object.
#[derive(Default)]
enum Member<T> {
    #[default]
    Missing,
    /// The value has the wrong type or form.
    Other,
    Given(T),
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Member<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Ok(serde_json::from_value(value).map_or(Self::Other, Self::Given))
    }
}

impl<T> Member<T> {
    fn given(self, field: &'static str, must_be: &'static str) -> Result<T, Error> {
        match self {
            Self::Given(value) => Ok(value),
            Self::Missing => Err(Error::of_field(ErrorCode::MissingField, field, "is required")),
            Self::Other => Err(Error::of_field(ErrorCode::InvalidValue, field, must_be)),
        }
    }
}

#[derive(Deserialize)]
struct RequestBody {
    #[serde(default, rename = "ref")]
    escrow: Member<TxRef>,
    #[serde(default)]
    listing: Member<ListingNamed>,
    #[serde(default)]
    output: Member<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListingNamed {
    #[serde(default)]
    id: Member<String>,
    #[serde(default)]
    content_hash: Member<ContentHash>,
}

/// Parses the body of a request to resolve a dispute.
///
/// # Errors
/// Returns an error that names the first wrong field.
pub fn parse(body: &[u8]) -> Result<ResolveRequest, Error> {
    const REFERENCE: &str = "must be a UTxO reference: 64 lowercase hexadecimal characters, '#', and an index";
    let no_object = |_| Error::of_field(ErrorCode::MalformedBody, "body", "must be a JSON object");
    let body: serde_json::Map<String, Value> = serde_json::from_slice(body).map_err(no_object)?;
    let RequestBody { escrow, listing, output } = RequestBody::deserialize(Value::Object(body)).map_err(no_object)?;
    let escrow = escrow.given("ref", REFERENCE)?;
    let listing = listing.given("listing", "must be an object")?;
    let listing_id = listing.id.given("listing.id", "must be a string")?;
    if listing_id.is_empty() || listing_id.chars().count() > MAX_LISTING_ID {
        return Err(Error::of_field(ErrorCode::InvalidLength, "listing.id", "must have 1 to 128 characters"));
    }
    let hash = "must be 64 lowercase hexadecimal characters";
    let content_hash = listing.content_hash.given("listing.contentHash", hash)?;
    let output = output.given("output", "must be a string")?;
    if output.len() > MAX_OUTPUT_BYTES {
        return Err(Error::of_field(ErrorCode::InvalidLength, "output", "must be at most 1 MiB of UTF-8"));
    }
    Ok(ResolveRequest { escrow, listing: DisputedListing { id: listing_id, content_hash }, output })
}

#[cfg(test)]
mod tests {
    use super::*;
    use api_types::check::fields;
    use serde_json::json;

    fn whole() -> Value {
        json!({
            "ref": format!("{}#0", "ab".repeat(32)),
            "listing": { "id": "lst_1", "contentHash": "cd".repeat(32) },
            "output": "a prompt",
        })
    }

    fn problem(body: &Value) -> String {
        parse(body.to_string().as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_whole_request_is_read_and_unknown_fields_are_ignored() {
        let mut body = whole();
        body["more"] = json!(1);
        let read = parse(body.to_string().as_bytes()).unwrap();
        assert_eq!((read.escrow.index, read.listing.id.as_str(), read.output.as_str()), (0, "lst_1", "a prompt"));
    }

    #[test]
    fn a_request_reads_back_as_sent() {
        assert_eq!(fields::<RequestBody>(), fields::<ResolveRequest>());
        assert_eq!(fields::<ListingNamed>(), fields::<DisputedListing>());
    }

    #[test]
    fn a_missing_field_or_one_of_another_type_is_named() {
        for field in ["ref", "listing", "output"] {
            let mut missing = whole();
            missing.as_object_mut().unwrap().remove(field);
            assert_eq!(problem(&missing), format!("{field}: is required"));
            let mut number = whole();
            number[field] = json!(1);
            assert!(problem(&number).starts_with(&format!("{field}: must be a")), "{field}");
        }
        for field in ["id", "contentHash"] {
            let mut missing = whole();
            missing["listing"].as_object_mut().unwrap().remove(field);
            assert_eq!(problem(&missing), format!("listing.{field}: is required"));
            let mut null = whole();
            null["listing"][field] = json!(null);
            assert!(problem(&null).starts_with(&format!("listing.{field}: must be")), "{field}");
        }
    }

    #[test]
    fn malformed_names_and_hashes_are_refused() {
        let tx = "ab".repeat(32);
        for reference in [
            String::new(),
            tx.clone(),
            format!("{tx}#"),
            format!("{tx}#-1"),
            format!("{tx}#65536"),
            format!("{}#0", tx.to_uppercase()),
            format!("{}#0", &tx[1..]),
            format!("{tx}#0 "),
        ] {
            let mut body = whole();
            body["ref"] = json!(reference);
            assert!(problem(&body).starts_with("ref: must be"), "{reference}");
        }
        for hash in ["", "CD", &"CD".repeat(32), &"cg".repeat(32), &"cd".repeat(33)] {
            let mut body = whole();
            body["listing"]["contentHash"] = json!(hash);
            assert!(problem(&body).starts_with("listing.contentHash: must be"), "{hash}");
        }
    }

    #[test]
    fn an_output_of_a_mebibyte_fits_and_no_byte_more() {
        let mut body = whole();
        body["output"] = json!("x".repeat(MAX_OUTPUT_BYTES));
        assert!(parse(body.to_string().as_bytes()).is_ok());
        body["output"] = json!("é".repeat(MAX_OUTPUT_BYTES / 2) + "x");
        assert!(problem(&body).starts_with("output: must be at most"));
        let mut body = whole();
        body["listing"]["id"] = json!("x".repeat(MAX_LISTING_ID + 1));
        assert!(problem(&body).starts_with("listing.id: must have"));
    }

    #[test]
    fn a_body_that_is_no_object_is_refused() {
        for body in ["", "[]", "null", "\"x\"", "{", "{}x"] {
            assert_eq!(parse(body.as_bytes()).unwrap_err().to_string(), "body: must be a JSON object");
        }
    }
}
