//! A shop with one thing to sell, as a handler for axum: `cargo run -p x402-cardano --example server -- SELLER_ADDRESS`
//!
//! `Shop::sell` is the whole shop and can be called from any Rust server's handler. It reads the chain through Blockfrost
//! (`BLOCKFROST_URL`, `BLOCKFROST_PROJECT_ID`), and listens on 127.0.0.1 (`PORT`; 0 picks a free one).

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "runs on a developer's machine")]

use std::{
    collections::HashMap,
    env,
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::get,
};
use cardano::{
    Address, ContentHash, Lovelace, Network, TxHash,
    blockfrost::{Client, Ureq},
    chain::{Chain, ChainError, Submission},
    keys::Native,
    slots::Millis,
};
use futures_lite::future::block_on;
use tokio::{net::TcpListener, task::spawn_blocking};
use x402_cardano::{
    Refusal,
    exact::{self, Moment, Payment, VerifiedPayment, VerifyError},
    method::{self, DefaultMethod, PaymentMethod, Sale},
    settlement::{NotSettled, Settlement, SettlementEvidence},
    wire::{ConfirmationPolicy, PaymentPayload, PaymentRequired, ResourceInfo, encode_header},
};

const CONTENT: &str = "A haiku costs more\nthan it weighs; a lovelace is\nlighter than a word.\n";

/// Network on which the shop is paid.
const NETWORK: Network = Network::Preprod;

/// A response: status, headers, and body.
type Answer = (StatusCode, HeaderMap, String);

struct Shop {
    chain: Client<Ureq>,
    seller: Address,
    /// Known transactions, each with `true` if the content was delivered for it. A real shop stores them in a database.
    payments: Mutex<HashMap<TxHash, bool>>,
}

impl Shop {
    /// Answers a request for the content: with 402 and the terms, or with the content if a block includes the payment.
    async fn sell(&self, signature: Option<&str>, now_ms: Millis) -> Result<Answer, Box<dyn Error>> {
        let method = DefaultMethod::new(NETWORK, ConfirmationPolicy::IN_BLOCK)?;
        let content_hash = ContentHash::of(CONTENT.as_bytes());
        let sale = Sale { listing_id: "haiku", content_hash, price: Lovelace::from_ada(3), seller: self.seller };
        let refuse = |why: Option<&Refusal>| -> Result<Answer, Box<dyn Error>> {
            let accepts = vec![method.offer(&sale, now_ms, [0; 32])?.requirements];
            let resource = ResourceInfo { url: "http://127.0.0.1/".into(), ..ResourceInfo::default() };
            let header = encode_header(&PaymentRequired::new(resource, accepts, why.map(Refusal::code)))?;
            let is_malformed = why.is_some_and(Refusal::is_malformed);
            let status = if is_malformed { StatusCode::BAD_REQUEST } else { StatusCode::PAYMENT_REQUIRED };
            let headers = HeaderMap::from_iter([("payment-required".parse()?, header.parse()?)]);
            Ok((status, headers, why.map_or_else(String::new, Refusal::to_string)))
        };
        let Some(signature) = signature else { return refuse(None) };
        let payment = match self.verified(&method, &sale, signature, now_ms).await {
            Ok(payment) => payment,
            Err(VerifyError::Refused(why)) => return refuse(Some(&why)),
            Err(VerifyError::Chain(why)) => return unavailable(&why),
        };
        // Anyone could present a transaction that was already public.
        if !self.record(&payment) {
            return refuse(Some(&NotSettled::Duplicate.into()));
        }
        let settlement = match self.settled(&payment).await {
            Ok(settlement) => settlement,
            Err(why) => return unavailable(&why),
        };
        let refusal = match settlement.refusal() {
            None if self.is_delivered_before(payment.tx_id) => Some(NotSettled::Duplicate.into()),
            refusal => refusal,
        };
        let (status, mut headers, body) = match refusal {
            Some(why) => refuse(Some(&why))?,
            None => (StatusCode::OK, HeaderMap::new(), CONTENT.into()),
        };
        let response = encode_header(&settlement.response(&payment.tx_id, &payment.payer, NETWORK))?;
        headers.insert("payment-response", response.parse()?);
        Ok((status, headers, body))
    }

    /// Verifies the payment in a `PAYMENT-SIGNATURE` header.
    async fn verified(
        &self,
        method: &DefaultMethod,
        sale: &Sale<'_>,
        header: &str,
        now_ms: Millis,
    ) -> Result<VerifiedPayment, VerifyError> {
        let payload = PaymentPayload::from_header(header).map_err(Refusal::from)?;
        let payment = Payment::read(&payload.payload).map_err(Refusal::from)?;
        let (method, offered) = method::recognise(&[method], sale, &payload.accepted)?;
        let moment = Moment { now_ms, slots: NETWORK.slots() };
        exact::verify(method, &offered, &payment, &self.chain, &Native, moment).await
    }

    /// Records a payment before it is submitted. Returns whether the payment may be settled, which is not the case if
    /// it was public before this server recorded it.
    fn record(&self, payment: &VerifiedPayment) -> bool {
        let mut payments = self.payments.lock().unwrap_or_else(PoisonError::into_inner);
        let known = payments.contains_key(&payment.tx_id);
        if !known && !payment.public {
            payments.insert(payment.tx_id, false);
        }
        known || !payment.public
    }

    /// Marks a payment as delivered. Returns whether it was marked before, such as by a request at the same time.
    fn is_delivered_before(&self, tx: TxHash) -> bool {
        self.payments.lock().unwrap_or_else(PoisonError::into_inner).insert(tx, true) == Some(true)
    }

    /// Submits the payment's transaction, unless a block already includes it. Until a block includes it, the buyer sends
    /// the same header again.
    async fn settled(&self, payment: &VerifiedPayment) -> Result<Settlement, ChainError> {
        if let Some(inclusion) = self.chain.inclusion_of(&payment.tx_id).await? {
            let confirmations = payment.newest_height.saturating_sub(inclusion.height);
            return Ok(Settlement::Confirmed(SettlementEvidence::Block { inclusion, confirmations }));
        }
        Ok(match self.chain.submit(&payment.cbor).await? {
            Submission::Accepted => Settlement::Pending(Some(SettlementEvidence::Mempool)),
            Submission::Refused(why) => Settlement::Refused(why),
        })
    }
}

/// 503: the chain cannot be read.
fn unavailable(why: &ChainError) -> Result<Answer, Box<dyn Error>> {
    let headers = HeaderMap::from_iter([("retry-after".parse()?, "5".parse()?)]);
    Ok((StatusCode::SERVICE_UNAVAILABLE, headers, why.to_string()))
}

async fn handle(State(shop): State<Arc<Shop>>, headers: HeaderMap) -> Response {
    let answer = spawn_blocking(move || {
        let signature = headers.get("payment-signature").and_then(|value| value.to_str().ok());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?;
        let now_ms = u64::try_from(now.as_millis()).map_err(|error| error.to_string())?;
        block_on(shop.sell(signature, now_ms)).map_err(|error| error.to_string())
    });
    match answer.await.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(answer) => answer.into_response(),
        Err(error) => {
            eprintln!("{error}");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let seller = env::args().nth(1).ok_or("usage: server SELLER_ADDRESS")?.parse()?;
    let base = env::var("BLOCKFROST_URL").unwrap_or_else(|_| "https://cardano-preprod.blockfrost.io/api/v0".into());
    let project = env::var("BLOCKFROST_PROJECT_ID").unwrap_or_default();
    let chain = Client::new(Ureq::default(), &base, &project);
    let shop = Arc::new(Shop { chain, seller, payments: Mutex::default() });
    let port: u16 = env::var("PORT").map_or(Ok(8402), |port| port.parse())?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("http://{}", listener.local_addr()?);
    axum::serve(listener, Router::new().route("/", get(handle)).with_state(shop)).await?;
    Ok(())
}
