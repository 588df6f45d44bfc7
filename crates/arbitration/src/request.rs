//! What is asked, parsed strictly: the first thing that is wrong is named.

use cardano::{ContentHash, TxRef};
use serde_json::{Map, Value};

/// Bytes of an output: as much as a listing's content may have.
pub const MAX_OUTPUT_BYTES: usize = 1 << 20;
/// Characters of a listing's id: several times as many as any has.
pub const MAX_LISTING_ID: usize = 128;

/// A request to resolve a dispute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The disputed output.
    pub escrow: TxRef,
    /// The listing that was bought.
    pub listing_id: String,
    /// The listing's content hash.
    pub content_hash: ContentHash,
    /// What was delivered, as it was received.
    pub output: String,
}

/// What is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct Malformed {
    field: &'static str,
    problem: &'static str,
}

fn wrong<T>(field: &'static str, problem: &'static str) -> Result<T, Malformed> {
    Err(Malformed { field, problem })
}

fn text<'a>(fields: &'a Map<String, Value>, key: &str, field: &'static str) -> Result<&'a str, Malformed> {
    match fields.get(key) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => wrong(field, "must be a string"),
        None => wrong(field, "is missing"),
    }
}

impl Request {
    /// Reads a body.
    ///
    /// # Errors
    /// Names the field.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let Ok(Value::Object(fields)) = serde_json::from_slice(body) else {
            return wrong("the body", "must be a JSON object");
        };
        let Ok(escrow) = text(&fields, "ref", "ref")?.parse() else {
            return wrong("ref", "must be a UTxO reference: 64 lowercase hexadecimal characters, '#', and an index");
        };
        let listing = match fields.get("listing") {
            Some(Value::Object(listing)) => listing,
            Some(_) => return wrong("listing", "must be an object"),
            None => return wrong("listing", "is missing"),
        };
        let listing_id = text(listing, "id", "listing.id")?;
        if listing_id.is_empty() || listing_id.chars().count() > MAX_LISTING_ID {
            return wrong("listing.id", "must have 1 to 128 characters");
        }
        let Ok(content_hash) = text(listing, "contentHash", "listing.contentHash")?.parse() else {
            return wrong("listing.contentHash", "must be 64 lowercase hexadecimal characters");
        };
        let output = text(&fields, "output", "output")?;
        if output.len() > MAX_OUTPUT_BYTES {
            return wrong("output", "must be at most 1 MiB of UTF-8");
        }
        Ok(Self { escrow, listing_id: listing_id.to_owned(), content_hash, output: output.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn whole() -> Value {
        json!({
            "ref": format!("{}#0", "ab".repeat(32)),
            "listing": { "id": "lst_1", "contentHash": "cd".repeat(32) },
            "output": "a prompt",
        })
    }

    fn problem(body: &Value) -> String {
        Request::parse(body.to_string().as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_whole_request_is_read_and_unknown_fields_are_ignored() {
        let mut body = whole();
        body["more"] = json!(1);
        let read = Request::parse(body.to_string().as_bytes()).unwrap();
        assert_eq!((read.escrow.index, read.listing_id.as_str(), read.output.as_str()), (0, "lst_1", "a prompt"));
    }

    #[test]
    fn what_is_missing_or_of_another_type_is_named() {
        for field in ["ref", "listing", "output"] {
            let mut missing = whole();
            missing.as_object_mut().unwrap().remove(field);
            assert_eq!(problem(&missing), format!("{field} is missing"));
            let mut number = whole();
            number[field] = json!(1);
            assert!(problem(&number).starts_with(&format!("{field} must be a")), "{field}");
        }
        for field in ["id", "contentHash"] {
            let mut missing = whole();
            missing["listing"].as_object_mut().unwrap().remove(field);
            assert_eq!(problem(&missing), format!("listing.{field} is missing"));
            let mut null = whole();
            null["listing"][field] = json!(null);
            assert_eq!(problem(&null), format!("listing.{field} must be a string"));
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
            assert!(problem(&body).starts_with("ref must be"), "{reference}");
        }
        for hash in ["", "CD", &"CD".repeat(32), &"cg".repeat(32), &"cd".repeat(33)] {
            let mut body = whole();
            body["listing"]["contentHash"] = json!(hash);
            assert!(problem(&body).starts_with("listing.contentHash must be"), "{hash}");
        }
    }

    #[test]
    fn an_output_of_a_mebibyte_fits_and_no_byte_more() {
        let mut body = whole();
        body["output"] = json!("x".repeat(MAX_OUTPUT_BYTES));
        assert!(Request::parse(body.to_string().as_bytes()).is_ok());
        body["output"] = json!("é".repeat(MAX_OUTPUT_BYTES / 2) + "x");
        assert!(problem(&body).starts_with("output must be at most"));
        let mut body = whole();
        body["listing"]["id"] = json!("x".repeat(MAX_LISTING_ID + 1));
        assert!(problem(&body).starts_with("listing.id must have"));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for body in ["", "[]", "null", "\"x\"", "{", "{}x"] {
            assert_eq!(Request::parse(body.as_bytes()).unwrap_err().to_string(), "the body must be a JSON object");
        }
    }
}
