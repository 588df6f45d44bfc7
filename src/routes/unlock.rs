//! `GET /listings/{id}/unlock`: the paywall.
//!
//! ```text
//! no header            402 with the terms
//! X-Service-Proof      the content again, for who paid before
//! PAYMENT-SIGNATURE    verify -> read the content -> claim -> submit -> wait for a block -> 200
//! ```
//!
//! The content is read before anything is submitted: what is paid for can be delivered. A payment that is not in a block
//! in time is 402 `settlement_pending`, and the same request again goes on waiting for the same transaction.

use cardano::{TxHash, chain::Chain, slots::SlotConfig};
use edge::{chain::Blockfrost, d1::D1, ed25519::WebCrypto};
use market::{
    ListingId,
    catalogue::{self, Terms},
    database::Database,
    proof::Proof,
    purchase::{self, Owned},
    settlement::{self, Settlements},
};
use worker::{Request, Response, console_log};
use x402_cardano::{
    Refusal,
    exact::{Moment, default},
    settlement::{Evidence, Outcome, SettleError, SettlementStore, Settler, admit},
    wire::{
        ConfirmationPolicy, Network, PAYMENT_REQUIRED, PAYMENT_RESPONSE, PAYMENT_SIGNATURE, SettlementExtra,
        SettlementResponse, SettlementStatus, encode_header,
    },
};

use crate::{
    app::App,
    error::ApiError,
    paywall::{self, SCHEDULE, Timer},
    respond,
};

/// Outside calls that one look may take: a retried read each of the transaction and the tip.
const CALLS_PER_LOOK: u32 = 3;

/// One request at the paywall.
struct Gate<'a> {
    app: &'a App,
    request: &'a Request,
    terms: Terms,
    database: D1,
}

/// Answers as the headers ask.
pub async fn show(app: &App, id: &str, request: &Request) -> Result<Response, ApiError> {
    let unknown = || ApiError::not_found("no such listing");
    let id: ListingId = id.parse().map_err(|_| unknown())?;
    let database = app.database()?;
    let terms = paywall::terms(&database, &id).await?.ok_or_else(unknown)?;
    let gate = Gate { app, request, terms, database };
    if let Some(payment) = request.headers().get(PAYMENT_SIGNATURE)? {
        return gate.paid(&payment).await;
    }
    match request.headers().get("x-service-proof")? {
        Some(proof) => gate.returning(&proof).await,
        None => gate.ask("PAYMENT-SIGNATURE header is required", "payment required: choose one of the terms", None),
    }
}

impl Gate<'_> {
    /// 402 with the terms, and why: a stable code in the header, words in the body. `settlement` tells what became of a
    /// payment that was tried.
    fn ask(&self, code: &str, error: &str, settlement: Option<SettlementResponse>) -> Result<Response, ApiError> {
        let required = paywall::payment_required(&self.terms, &self.request.url()?, code);
        let header = encode_header(&required).map_err(|error| ApiError::internal("terms", error))?;
        let mut response = respond::json(serde_json::json!({ "error": error }).to_string())?.with_status(402);
        response.headers_mut().set(PAYMENT_REQUIRED, &header)?;
        response.headers_mut().set("cache-control", "no-store")?;
        if let Some(settlement) = settlement {
            let header = encode_header(&settlement).map_err(|error| ApiError::internal("settlement", error))?;
            response.headers_mut().set(PAYMENT_RESPONSE, &header)?;
        }
        Ok(response)
    }

    fn refuse(&self, refusal: &Refusal) -> Result<Response, ApiError> {
        self.ask(refusal.code(), &refusal.to_string(), None)
    }

    /// The content, read before any payment is submitted.
    async fn content(&self) -> Result<String, ApiError> {
        let content = self.database.run(catalogue::content(&self.terms.id)).await?.rows.into_iter().next();
        content.ok_or_else(|| ApiError::internal("content", format!("{} has none", self.terms.id)))
    }

    async fn paid(&self, header: &str) -> Result<Response, ApiError> {
        let chain = self.app.chain()?;
        let store = Settlements(&self.database);
        let Some(requirements) = paywall::instant(&self.terms) else {
            return self.ask("mode_not_offered", "this listing does not offer instant payment", None);
        };
        let moment = Moment { now_ms: self.app.now_ms(), slots: SlotConfig::PREPROD };
        let admission = admit(header, &self.terms.id, None, &store, &chain, async |offer| {
            default::verify(&requirements, offer, &chain, &WebCrypto, moment).await
        })
        .await;
        let admission = match admission {
            Ok(admission) => admission,
            Err(SettleError::Refused(refusal)) => return self.refuse(&refusal),
            Err(error) => return Err(unsettled(error)),
        };
        let (tx, payer) = (*admission.tx(), *admission.payer());
        let content = self.content().await?;
        let looks = usize::try_from(self.app.usage().calls_left() / CALLS_PER_LOOK).unwrap_or(0);
        let schedule = SCHEDULE.get(..looks.min(SCHEDULE.len())).unwrap_or(&SCHEDULE);
        let policy = ConfirmationPolicy::IN_BLOCK;
        let settler = Settler { chain: &chain, store: &store, sleep: &Timer, policy, schedule };
        let outcome = match settler.settle(admission, self.app.now_ms()).await {
            Ok(outcome) => outcome,
            Err(SettleError::Refused(refusal)) => return self.refuse(&refusal),
            Err(error) => return Err(unsettled(error)),
        };
        console_log!("payment {tx} for {}: {}", self.terms.id, outcome_name(&outcome));
        let answer = |success, error_reason: Option<&str>, extra| SettlementResponse {
            success,
            transaction: tx.to_string(),
            network: Network::Preprod,
            payer: Some(payer.to_string()),
            error_reason: error_reason.map(str::to_owned),
            extra,
        };
        match outcome {
            Outcome::Confirmed(evidence) => {
                self.deliver(&tx, content, &answer(true, None, Some(evidence.extra()))).await
            }
            Outcome::Pending(evidence) => {
                let extra = pending(&tx, evidence);
                let error = "the payment is submitted and not in a block yet: send the same request again";
                self.ask("settlement_pending", error, Some(answer(false, Some("settlement_pending"), Some(extra))))
            }
            Outcome::Refused(reason) => {
                let error = format!("the ledger refused the transaction: {reason}");
                self.ask("settlement_refused", &error, Some(answer(false, Some("settlement_refused"), None)))
            }
            Outcome::Expired => {
                let error = "the transaction was in no block before its time to live ended; nothing was \
                     paid: request the terms again and pay with a new transaction";
                self.ask("settlement_expired", error, Some(answer(false, Some("settlement_expired"), None)))
            }
        }
    }

    /// Hands out what was paid for. From then on the payment alone, which anyone can copy from the chain, opens nothing.
    async fn deliver(
        &self,
        tx: &TxHash,
        content: String,
        settlement: &SettlementResponse,
    ) -> Result<Response, ApiError> {
        // Who hung up did not get it: their same request may come again.
        if !self.request.inner().signal().aborted() {
            self.database.run(settlement::mark_delivered(tx, edge::now_ms())).await?;
        }
        let mut response = respond::private_text(content)?;
        let header = encode_header(settlement).map_err(|error| ApiError::internal("settlement", error))?;
        response.headers_mut().set(PAYMENT_RESPONSE, &header)?;
        Ok(response)
    }

    /// The content again, for an address that paid for it and signs for it now.
    async fn returning(&self, header: &str) -> Result<Response, ApiError> {
        let proof = match Proof::from_header(header) {
            Ok(proof) => proof,
            Err(error) => return self.ask("proof_refused", &error.to_string(), None),
        };
        let digest = proof.unlock_digest(&self.terms.id);
        if let Err(error) = proof.check(&WebCrypto, &digest, self.app.now_ms()).await {
            return self.ask("proof_refused", &error.to_string(), None);
        }
        match self.find_purchase(&proof).await? {
            None => self.ask("not_owned", "this address has not bought this listing: pay for it", None),
            Some(purchase) => {
                let mut response = respond::private_text(self.content().await?)?;
                response.headers_mut().set("x-service-purchase", &purchase.to_string())?;
                Ok(response)
            }
        }
    }

    /// The purchase on record; else a payment that was submitted and is in a block by now, recorded with that.
    async fn find_purchase(&self, proof: &Proof) -> Result<Option<TxHash>, ApiError> {
        let owned = purchase::owned(&self.terms.id, &proof.address);
        let open = settlement::open_payments(&self.terms.id, &proof.address);
        let [owned, open] = market::database::outcomes(self.database.batch(vec![owned, open]).await?)?;
        if let Some(owned) = owned.first_json::<Owned>()? {
            return Ok(Some(owned.id));
        }
        if open.rows.is_empty() {
            return Ok(None);
        }
        let chain: Blockfrost = self.app.chain()?;
        let store = Settlements(&self.database);
        for tx in open.rows.iter().filter_map(|tx| tx.parse::<TxHash>().ok()) {
            if let Some(inclusion) = chain.inclusion_of(&tx).await?.filter(|inclusion| inclusion.valid) {
                store.mark_included(&tx, &inclusion).await?;
                return Ok(Some(tx));
            }
        }
        Ok(None)
    }
}

fn pending(tx: &TxHash, evidence: Option<Evidence>) -> SettlementExtra {
    SettlementExtra {
        status: SettlementStatus::Pending,
        confirmations: evidence.map(|evidence| evidence.confirmations()).filter(|confirmations| *confirmations >= 0),
        transaction_id: Some(tx.to_string()),
    }
}

const fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Confirmed(_) => "confirmed",
        Outcome::Pending(_) => "pending",
        Outcome::Refused(_) => "refused",
        Outcome::Expired => "expired",
    }
}

fn unsettled(error: SettleError<market::database::DatabaseError>) -> ApiError {
    match error {
        SettleError::Refused(refusal) => ApiError::bad_request(refusal.to_string()),
        SettleError::Chain(error) => error.into(),
        SettleError::Store(error) => error.into(),
    }
}
