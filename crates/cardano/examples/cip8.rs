//! Signs and verifies CIP-8 messages for other programs, one JSON object per line. The tests use it to compare this
//! crate with wallet libraries.
//!
//! ```text
//! {"seed": "<32 bytes hex>", "address": "addr_test1...", "payload": "<hex>"}      -> {"key": ..., "signature": ...}
//! {"key": ..., "signature": ..., "address": "addr_test1...", "payload": "<hex>"}  -> {"verdict": "ok" | <reason>}
//! ```

use std::io::{BufRead, Write, stdin, stdout};

use serde::Deserialize;
use surety_cardano::{
    Address,
    cip8::{self, DataSignature, SignedMessage},
    keys::{Native, SigningKey},
};

#[derive(Deserialize)]
#[serde(untagged)]
enum WalletRequest {
    Sign { seed: String, address: Address, payload: String },
    Verify { key: String, signature: String, address: Address, payload: String },
}

type Anyhow<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Anyhow<()> {
    let mut out = stdout().lock();
    for line in stdin().lock().lines() {
        writeln!(out, "{}", answer(serde_json::from_str(&line?)?)?)?;
    }
    Ok(())
}

fn answer(request: WalletRequest) -> Anyhow<serde_json::Value> {
    Ok(match request {
        WalletRequest::Sign { seed, address, payload } => {
            let seed = hex::decode(seed)?.try_into().map_err(|_| "a seed has 32 bytes")?;
            let signed = cip8::sign(&SigningKey::from_seed(&seed)?, &address, &hex::decode(payload)?)?;
            serde_json::json!({ "key": hex::encode(signed.key), "signature": hex::encode(signed.signature) })
        }
        WalletRequest::Verify { key, signature, address, payload } => {
            let verdict = verify(&key, &signature, &address, &hex::decode(payload)?);
            serde_json::json!({ "verdict": verdict.map_or_else(|reason| reason.to_string(), |()| "ok".to_owned()) })
        }
    })
}

fn verify(key: &str, signature: &str, address: &Address, payload: &[u8]) -> Result<(), cip8::Cip8Error> {
    let signed = DataSignature::from_hex(key, signature)?;
    let it = SignedMessage::parse(&signed.key, &signed.signature)?.check(address, payload)?;
    Ok(Native::verify(&it.public_key, &it.message, &it.signature)?)
}
