//! The extension `payment-identifier`: an id with which a client can send the same payment again and get the same
//! answer.
//!
//! | request | answer |
//! |---|---|
//! | a new id | as without an id |
//! | a known id with the same payload | the same answer again |
//! | a known id with another payload | 409 |
//! | a malformed id | 400 |
//!
//! Payloads are the same if their [`payload_digest`] is equal. The id is looked up before the payment is verified, so
//! it proves nothing by itself. Source: x402-foundation/x402, `specs/extensions/payment_identifier.md`.

use std::{fmt, str::FromStr, sync::LazyLock};

use cardano::ContentHash;
use serde_json::{Value, json};

use super::{Extensions, HeaderError, PaymentPayload, header::decode_json};
use crate::json;

/// Name of the extension, which is its key in the object `extensions`.
pub const NAME: &str = "payment-identifier";
const MIN_CHARS: usize = 16;
const MAX_CHARS: usize = 128;

/// A client's id for a payment: 16 to 128 characters of `A-Z a-z 0-9 _ -`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaymentId(String);

/// Reason why the extension `payment-identifier` in a payment is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPaymentId {
    /// The extension is not an object whose `info` contains the boolean `required`.
    #[error("extensions.payment-identifier must be an object with info: {{required: boolean, id?: string}}")]
    Shape,
    /// The id has a wrong length, or contains a character that is not allowed.
    #[error("extensions.payment-identifier.info.id must have 16 to 128 characters of A-Z a-z 0-9 _ -")]
    Id,
}

impl InvalidPaymentId {
    /// Returns the stable code of the error.
    #[must_use]
    pub const fn code(self) -> &'static str {
        "invalid_payment_identifier"
    }
}

impl PaymentId {
    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PaymentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for PaymentId {
    type Err = InvalidPaymentId;

    fn from_str(text: &str) -> Result<Self, InvalidPaymentId> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if (MIN_CHARS..=MAX_CHARS).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidPaymentId::Id)
        }
    }
}

/// Returns this extension's entry in the `extensions` of a 402. It says that a payment may carry an identifier, but
/// need not.
#[must_use]
pub fn offered() -> Extensions {
    static OFFERED: LazyLock<Extensions> = LazyLock::new(|| {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "required": { "type": "boolean" },
                "id": { "type": "string", "minLength": MIN_CHARS, "maxLength": MAX_CHARS },
            },
            "required": ["required"],
        });
        Extensions::of(NAME, &json!({ "info": { "required": false }, "schema": schema }))
    });
    OFFERED.clone()
}

impl PaymentPayload {
    /// Returns the id that the client chose for this payment, or `None` if it chose none.
    ///
    /// # Errors
    /// [`InvalidPaymentId`] if the extension is malformed.
    pub fn payment_id(&self) -> Result<Option<PaymentId>, InvalidPaymentId> {
        let Some(extension) = self.extensions.as_ref().and_then(|extensions| extensions.get(NAME)) else {
            return Ok(None);
        };
        let info = extension.get("info").and_then(Value::as_object).ok_or(InvalidPaymentId::Shape)?;
        if !info.get("required").is_some_and(Value::is_boolean) {
            return Err(InvalidPaymentId::Shape);
        }
        match info.get("id") {
            None => Ok(None),
            Some(id) => id.as_str().ok_or(InvalidPaymentId::Id)?.parse().map(Some),
        }
    }
}

/// Computes the digest by which payments with the same client id are compared: the SHA-256 of the canonical JSON (RFC
/// 8785) of the whole payload in a `PAYMENT-SIGNATURE` header, including unknown fields.
///
/// # Errors
/// [`HeaderError`] if the header contains no JSON.
pub fn payload_digest(header: &str) -> Result<ContentHash, HeaderError> {
    let payload = decode_json(header)?;
    json::digest("", &payload).ok_or_else(|| HeaderError::Json("it has no canonical form".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::encode_header;

    fn payload(extensions: &Value) -> Value {
        json!({
            "x402Version": 2,
            "accepted": {
                "scheme": "exact", "network": "cardano:preprod", "amount": "1", "asset": "lovelace", "payTo": "a",
                "maxTimeoutSeconds": 300, "extra": {},
            },
            "payload": { "transaction": "", "nonce": "" },
            "extensions": extensions,
        })
    }

    fn id_of(extension: &Value) -> Result<Option<String>, InvalidPaymentId> {
        let payload: PaymentPayload = serde_json::from_value(payload(&json!({ NAME: extension }))).unwrap();
        Ok(payload.payment_id()?.map(|id| id.to_string()))
    }

    #[test]
    fn a_402_offers_the_payment_identifier_extension() {
        let offered = json!(offered());
        assert_eq!(offered["payment-identifier"]["info"], json!({ "required": false }));
        assert_eq!(offered["payment-identifier"]["schema"]["properties"]["id"]["minLength"], 16);
        let payload: PaymentPayload = serde_json::from_value(payload(&offered)).unwrap();
        assert_eq!(payload.payment_id(), Ok(None), "echoed without an id");
    }

    #[test]
    fn a_payment_identifier_is_read_from_the_echoed_extension() {
        let with = |id: &str| id_of(&json!({ "info": { "required": false, "id": id }, "schema": {} }));
        for id in ["pay_7d5d747be160e280504c099d984bcfe0", &"a".repeat(16), &"Z-9_".repeat(32)] {
            assert_eq!(with(id), Ok(Some(id.to_owned())));
        }
        for id in [
            "",
            &"a".repeat(15),
            &"a".repeat(129),
            "pay 7d5d747be160e280504c",
            "päy_7d5d747be160e280504c",
            "a.b/c+d=e:f;g,h!i",
        ] {
            assert_eq!(with(id), Err(InvalidPaymentId::Id), "{id}");
        }
    }

    #[test]
    fn a_malformed_payment_identifier_is_refused() {
        let shape = Err(InvalidPaymentId::Shape);
        for other in [json!(null), json!("id"), json!([]), json!({}), json!({ "info": null }), json!({ "info": {} })] {
            assert_eq!(id_of(&other), shape, "{other}");
        }
        assert_eq!(id_of(&json!({ "info": { "required": "no" } })), shape);
        for id in [json!(null), json!(7), json!(["a"])] {
            assert_eq!(id_of(&json!({ "info": { "required": false, "id": id } })), Err(InvalidPaymentId::Id), "{id}");
        }
    }

    #[test]
    fn a_payload_is_the_same_in_any_order_of_its_fields_and_another_with_any_other_field() {
        let digest = |payload: &Value| payload_digest(&encode_header(payload).unwrap()).unwrap();
        let one = payload(&json!({ "a": 1, "b": 2 }));
        let reordered = base64::Engine::encode(
            &base64::engine::general_purpose::STANDARD,
            one.to_string().replace(r#""a":1,"b":2"#, r#""b" : 2, "a" : 1.0"#),
        );
        assert_eq!(payload_digest(&reordered), Ok(digest(&one)));
        for other in [payload(&json!({ "a": 1, "b": 3 })), payload(&json!({ "a": 1, "b": 2, "c": null }))] {
            assert_ne!(digest(&other), digest(&one));
        }
        assert!(payload_digest("").is_err());
    }
}
