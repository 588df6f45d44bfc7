//! Issues quotes and verifies locks for other programs: reads one JSON object per line, and writes one per line. Tests
//! use it with a buyer that shares no code with this crate.
//!
//! Every request describes the sale. If it also contains a `transaction` (base64), the lock in that transaction is
//! verified against the request's `accepted` entry; otherwise a quote is issued.

use std::io::{BufRead, Write, stdin, stdout};

use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::{
    Address, ContentHash, Lovelace, Network, ScriptHash, TxHash, TxRef, blockfrost,
    keys::SigningKey,
    slots::{Millis, SlotConfig},
    tx::SignedTx,
};
use escrow::{Deployment, Parameters};
use serde::Deserialize;
use serde_json::{Value, json};
use x402_cardano::{
    escrow::{AuthorizedTerms, LockFacts, TransferMethod, verify_lock},
    method::{EscrowMethod, Offered, PaymentMethod, Sale},
    wire::{Accepted, ConfirmationPolicy},
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EscrowRequest {
    seed: String,
    script_hash: ScriptHash,
    deployment: Parameters,
    listing_id: String,
    content_hash: ContentHash,
    price: Lovelace,
    /// Time in POSIX milliseconds.
    now: Millis,
    nonce: String,
    accepted: Option<Value>,
    transaction: Option<String>,
    payer: Option<Address>,
    /// Protocol parameters in Blockfrost's form.
    parameters: Option<Value>,
}

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Fallible<()> {
    let mut out = stdout().lock();
    for line in stdin().lock().lines() {
        writeln!(out, "{}", answer(serde_json::from_str(&line?)?)?)?;
    }
    Ok(())
}

fn bytes(text: &str) -> Fallible<[u8; 32]> {
    Ok(hex::decode(text)?.try_into().map_err(|_| "expected 32 bytes")?)
}

fn answer(request: EscrowRequest) -> Fallible<Value> {
    let seller = SigningKey::from_seed(&bytes(&request.seed)?)?;
    let seller_address = seller.enterprise_address();
    let deployment = Deployment {
        script_hash: request.script_hash,
        parameters: request.deployment.clone(),
        reference_script: TxRef { tx: TxHash::new([0; 32]), index: 0 },
        reference_script_bytes: 0,
        blueprint_sha256: None,
    };
    let platform =
        EscrowMethod::new(Network::Preprod, deployment, seller, TransferMethod::Escrow, ConfirmationPolicy::IN_BLOCK)?;
    let (listing_id, content_hash, price) = (request.listing_id.as_str(), request.content_hash, request.price);
    let sale = Sale { listing_id, content_hash, price, seller: seller_address };
    let Some(accepted) = &request.accepted else {
        return Ok(serde_json::to_value(platform.offer(&sale, request.now, bytes(&request.nonce)?)?.requirements)?);
    };
    let recognised = Accepted::deserialize(accepted)
        .map_err(Into::into)
        .and_then(|accepted| platform.recognise(&sale, &accepted).map_err(Box::<dyn std::error::Error>::from));
    match recognised {
        Ok(Offered { terms: Some(terms), .. }) => lock(&request, &terms),
        Ok(_) => Err("a quote has terms".into()),
        Err(reason) => Ok(json!({ "verdict": reason.to_string() })),
    }
}

fn lock(request: &EscrowRequest, terms: &AuthorizedTerms) -> Fallible<Value> {
    let missing = "a lock needs a transaction, a payer and parameters";
    let tx = SignedTx::parse(&STANDARD.decode(request.transaction.as_ref().ok_or(missing)?)?)?;
    let parameters = serde_json::to_vec(request.parameters.as_ref().ok_or(missing)?)?;
    let facts = LockFacts {
        tx: &tx,
        terms,
        payer: request.payer.as_ref().ok_or(missing)?,
        parameters: &blockfrost::protocol_parameters(&parameters)?,
        slots: &SlotConfig::PREPROD,
    };
    Ok(match verify_lock(facts) {
        Ok(lock) => json!({ "verdict": "ok", "collateral": lock.collateral, "locked": lock.locked }),
        Err(reason) => json!({ "verdict": reason.to_string() }),
    })
}
