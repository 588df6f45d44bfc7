//! A shop with one thing to sell, over HTTP: `cargo run -p x402-cardano --example server -- SELLER_ADDRESS`
//!
//! `sell` is the whole shop and can be called from any Rust server's handler. `http` is a minimal HTTP server, and
//! `chain` reads the chain through Blockfrost (`BLOCKFROST_URL`, `BLOCKFROST_PROJECT_ID`). The shop listens on
//! 127.0.0.1 (`PORT`; 0 picks a free one).

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "runs on a developer's machine")]

mod chain;
mod http;

use std::{
    collections::HashMap,
    env,
    error::Error,
    time::{SystemTime, UNIX_EPOCH},
};

use cardano::{
    Address, ContentHash, Lovelace, Network, TxHash,
    chain::{Chain, ChainError, Submission},
    keys::Native,
    slots::Millis,
};
use x402_cardano::{
    Refusal,
    exact::{self, Moment, Payment, VerifiedPayment, VerifyError},
    method::{self, DefaultMethod, PaymentMethod, Sale},
    settlement::{NotSettled, Settlement, SettlementEvidence},
    wire::{ConfirmationPolicy, PaymentPayload, PaymentRequired, ResourceInfo, encode_header},
};

use crate::{chain::Blockfrost, http::Answer};

const CONTENT: &str = "A haiku costs more\nthan it weighs; a lovelace is\nlighter than a word.\n";

/// Network on which the shop is paid.
const NETWORK: Network = Network::Preprod;

/// Known transactions, each with `true` if the content was delivered for it. A real shop stores them in a database.
type Payments = HashMap<TxHash, bool>;

/// Answers a request for the content: with 402 and the terms, or with the content if a block includes the payment.
async fn sell(
    chain: &Blockfrost,
    payments: &mut Payments,
    seller: Address,
    signature: Option<&str>,
    now_ms: Millis,
) -> Result<Answer, Box<dyn Error>> {
    let method = DefaultMethod::new(NETWORK, ConfirmationPolicy::IN_BLOCK)?;
    let content_hash = ContentHash::of(CONTENT.as_bytes());
    let sale = Sale { listing_id: "haiku", content_hash, price: Lovelace::from_ada(3), seller };
    let refuse = |why: Option<&Refusal>| -> Result<Answer, Box<dyn Error>> {
        let accepts = vec![method.offer(&sale, now_ms, [0; 32])?.requirements];
        let resource = ResourceInfo { url: "http://127.0.0.1/".into(), ..ResourceInfo::default() };
        let header = encode_header(&PaymentRequired::new(resource, accepts, why.map(Refusal::code)))?;
        let status = if why.is_some_and(Refusal::is_malformed) { 400 } else { 402 };
        Ok(Answer {
            status,
            headers: vec![("PAYMENT-REQUIRED", header)],
            body: why.map_or_else(String::new, Refusal::to_string),
        })
    };
    let Some(signature) = signature else { return refuse(None) };
    let payment = match verified(chain, &method, &sale, signature, now_ms).await {
        Ok(payment) => payment,
        Err(VerifyError::Refused(why)) => return refuse(Some(&why)),
        Err(VerifyError::Chain(why)) => return Ok(Answer::unavailable(&why.to_string())),
    };
    // A transaction that was public before it came here may be anyone's. A transaction that was used is not accepted
    // again.
    match payments.get(&payment.tx_id) {
        Some(true) => return refuse(Some(&NotSettled::Duplicate.into())),
        None if payment.public => return refuse(Some(&NotSettled::Duplicate.into())),
        _ => payments.insert(payment.tx_id, false),
    };
    let settlement = match settled(chain, &payment).await {
        Ok(settlement) => settlement,
        Err(why) => return Ok(Answer::unavailable(&why.to_string())),
    };
    let response = encode_header(&settlement.response(&payment.tx_id, &payment.payer, NETWORK))?;
    let mut answer = match settlement.refusal() {
        Some(why) => refuse(Some(&why))?,
        None => Answer { status: 200, headers: vec![], body: CONTENT.into() },
    };
    payments.insert(payment.tx_id, answer.status == 200);
    answer.headers.push(("PAYMENT-RESPONSE", response));
    Ok(answer)
}

/// Verifies the payment in a `PAYMENT-SIGNATURE` header.
async fn verified(
    chain: &Blockfrost,
    method: &DefaultMethod,
    sale: &Sale<'_>,
    header: &str,
    now_ms: Millis,
) -> Result<VerifiedPayment, VerifyError> {
    let payload = PaymentPayload::from_header(header).map_err(Refusal::from)?;
    let payment = Payment::read(&payload.payload).map_err(Refusal::from)?;
    let (method, offered) = method::recognise(&[method], sale, &payload.accepted)?;
    exact::verify(method, &offered, &payment, chain, &Native, Moment { now_ms, slots: NETWORK.slots() }).await
}

/// Submits the payment's transaction, unless a block already includes it. Until a block includes it, the buyer sends
/// the same header again.
async fn settled(chain: &Blockfrost, payment: &VerifiedPayment) -> Result<Settlement, ChainError> {
    if let Some(inclusion) = chain.inclusion_of(&payment.tx_id).await? {
        let confirmations = payment.newest_height.saturating_sub(inclusion.height);
        return Ok(Settlement::Confirmed(SettlementEvidence::Block { inclusion, confirmations }));
    }
    Ok(match chain.submit(&payment.cbor).await? {
        Submission::Accepted => Settlement::Pending(Some(SettlementEvidence::Mempool)),
        Submission::Refused(why) => Settlement::Refused(why),
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let seller: Address = env::args().nth(1).ok_or("usage: server SELLER_ADDRESS")?.parse()?;
    let chain = Blockfrost::from_environment()?;
    let mut payments = Payments::new();
    http::serve(env::var("PORT").map_or(Ok(8402), |port| port.parse())?, |signature| {
        let now_ms = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
        futures_lite::future::block_on(sell(&chain, &mut payments, seller, signature, now_ms))
    })
}
