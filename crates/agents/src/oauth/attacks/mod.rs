//! Attacks that must fail. Each test sends a valid request and the same request with one modification.

mod assertions;
mod authorization;
mod codes;
mod consent;
mod documents;
mod owners;
mod registration;
mod tokens;

use futures_lite::future::block_on;
use serde_json::{Value, json};
use sql::{Database, One, Write};

use api_types::Tokens;

use super::{
    Authority, ErrorCode, OAuthError, Scope, Secrets, TokenKind,
    approve::{self, ApprovalError},
    assertion::ASSERTION_TYPE,
    authorize::{CONSENT_MS, ConsentRequest},
    client::{ClientMetadata, MAX_REGISTRATION_BYTES},
    document::Fetched,
    exchange::{ACCESS_MS, REFRESH_MS, RETRY_MS, TokenRequest},
    grant::{self, Revocation},
    testing::*,
};

/// Returns the error code of an authorization request with one parameter changed.
fn refused_with(name: &str, value: &str) -> ErrorCode {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let refusal = world.authorize(&query(&with(&authorization(&client), name, value))).unwrap_err();
    refusal.error.code
}

/// Returns the error code of redeeming an authorization code with one parameter changed. The code can still be redeemed
/// afterwards.
fn not_redeemed_with(name: &str, value: &str) -> ErrorCode {
    let world = World::new();
    let client = world.register(&[CALLBACK]);
    let code = world.code(&client);
    let error = world.token(&with(&redemption(&client, &code), name, value)).unwrap_err();
    world.redeem(&client, &code).expect("the honest client is not harmed");
    error.code
}

fn registration_refused(change: Value) -> ErrorCode {
    let world = World::new();
    let mut body = json!({ "client_name": "Shopper", "redirect_uris": [CALLBACK] });
    assert!(world.register_body(&body).is_ok());
    for (name, value) in change.as_object().unwrap() {
        body[name] = value.clone();
    }
    world.register_body(&body).unwrap_err().code
}

const DOCUMENT: &str = "https://agent.example.com/client.json";

fn document() -> Value {
    json!({ "client_id": DOCUMENT, "client_name": "Published", "redirect_uris": [CALLBACK, "https://agent.example.com/cb"] })
}
