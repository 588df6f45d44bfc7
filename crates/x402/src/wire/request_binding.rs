//! The extension `request-binding`, specific to this service: a secret in each 402, which clients echo in their
//! payment.
//!
//! Everything else in a payment is the same for all clients, or public as soon as a node has its transaction. With the
//! secret, the value of `PAYMENT-SIGNATURE` is known only to its sender and to the service. The secret proves nothing
//! by itself, and a client that omits it can still pay.

use std::sync::LazyLock;

use serde_json::{json, value::RawValue};

use super::{Declared, Extensions, PaymentPayload, json_text};

/// Name of the extension, which is its key in the object `extensions`.
pub const NAME: &str = "request-binding";
/// Minimum length of the secret in characters, so that it cannot be guessed.
const MIN_CHARS: usize = 16;

static SCHEMA: LazyLock<Box<RawValue>> = LazyLock::new(|| {
    json_text(&json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": { "secret": { "type": "string", "minLength": MIN_CHARS } },
        "required": ["secret"],
    }))
});

/// Returns this extension's entry in the `extensions` of a 402. The entry contains the secret.
#[must_use]
pub fn offered(secret: &str) -> Extensions {
    Extensions::of(NAME, &Declared { info: json!({ "secret": secret }), schema: &SCHEMA })
}

impl PaymentPayload {
    /// Returns `true` if the payment contains a secret of at least 16 characters, so that nobody else can guess its
    /// header. The secret is not compared with the one in the 402.
    #[must_use]
    pub fn has_secret(&self) -> bool {
        let info = self.extensions.as_ref().and_then(|extensions| extensions.get(NAME)?.get("info"));
        let secret = info.and_then(|info| info.get("secret")?.as_str());
        secret.is_some_and(|secret| secret.len() >= MIN_CHARS)
    }
}
