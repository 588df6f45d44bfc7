//! The extension `request-binding`, of this service's own: a secret in each 402, which clients send back with their payment.
//!
//! Clients copy a 402's extensions into the payment that answers it. All else in a payment can be read from the chain
//! as soon as a node has its transaction, or is the same for all clients. With the secret, the value of
//! `PAYMENT-SIGNATURE` is known to its sender and to us alone. It proves nothing by itself, and a client that leaves
//! it out can still pay.

use serde_json::{Map, Value, json};

use super::PaymentPayload;

/// The extension's name in `extensions`.
pub const NAME: &str = "request-binding";
/// Characters of a secret that cannot be guessed.
const MIN_CHARS: usize = 16;

/// `extensions` of a 402 with this secret.
#[must_use]
pub fn offered(secret: &str) -> Map<String, Value> {
    let extension = json!({
        "info": { "secret": secret },
        "schema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": { "secret": { "type": "string", "minLength": MIN_CHARS } },
            "required": ["secret"],
        },
    });
    Map::from_iter([(NAME.to_owned(), extension)])
}

impl PaymentPayload {
    /// Whether it came with a secret, so that no one else can have made the same header.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        let info = self.extensions.as_ref().and_then(|extensions| extensions.get(NAME)?.get("info"));
        let secret = info.and_then(|info| info.get("secret")?.as_str());
        secret.is_some_and(|secret| secret.len() >= MIN_CHARS)
    }
}
