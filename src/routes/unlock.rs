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

use cardano::{
    TxHash,
    chain::{Chain, Tip},
    slots::{Millis, SlotConfig},
};
use edge::{
    answer::{self, Fault},
    chain::Blockfrost,
    d1::D1,
    ed25519::WebCrypto,
};
use market::{
    ListingId,
    catalogue::Terms,
    chain_state,
    contents::Contents,
    proof::Proof,
    purchase::{self, Owned},
    settlement::{self, Settlements},
};
use sql::{Database, DatabaseError, exactly};
use std::rc::Rc;
use worker::{Request, Response, console_log};
use x402_cardano::{
    Refusal,
    exact::{Moment, Offer, default, protected},
    settlement::{Admission, Outcome, SettleError, SettlementStore, Settler, admit_offer},
    wire::{
        ConfirmationPolicy, Network, PAYMENT_REQUIRED, PAYMENT_RESPONSE, PAYMENT_SIGNATURE, PaymentRequirements,
        SettlementResponse, encode_header,
    },
};

use crate::{
    app::App,
    error::ApiError,
    limits::Limiter,
    paywall::{self, Priced, Protection, SCHEDULE},
};

/// Outside calls that one look may take: a retried read each of the transaction and the tip.
const CALLS_PER_LOOK: u32 = 3;

/// Why nothing is unlocked, where payment would not help.
#[derive(Debug, thiserror::Error)]
pub enum UnlockError {
    /// No listing has this id, or the operator hid it.
    #[error("no such listing")]
    UnknownListing,
    /// A payment that cannot be taken.
    #[error(transparent)]
    Refused(Refusal),
}

/// One request at the paywall.
struct Gate<'a> {
    app: &'a App,
    request: &'a Request,
    terms: Terms,
    clock: Millis,
    protection: Rc<Option<Protection>>,
    database: D1,
}

/// Answers as the headers ask.
pub async fn show(app: &App, id: &str, request: &Request) -> Result<Response, ApiError> {
    let id: ListingId = id.parse().map_err(|_| UnlockError::UnknownListing)?;
    let database = app.database()?;
    let Priced { terms, clock } = paywall::priced(app, &database, &id).await?.ok_or(UnlockError::UnknownListing)?;
    let hidden = terms.hidden;
    let gate = Gate { app, request, terms, clock, protection: app.protection()?, database };
    if let Some(payment) = request.headers().get(PAYMENT_SIGNATURE)? {
        app.limit_client(Limiter::Payment, request).await?;
        return gate.paid(&payment).await;
    }
    match request.headers().get("x-service-proof")? {
        Some(proof) => {
            app.limit_client(Limiter::Proof, request).await?;
            gate.returning(&proof).await
        }
        None if hidden => Err(UnlockError::UnknownListing.into()),
        None => gate.ask("PAYMENT-SIGNATURE header is required", "payment required: choose one of the terms", None),
    }
}

impl Gate<'_> {
    /// 402 with the terms, and why: a stable code in the header, words in the body. `settlement` tells what became of a
    /// payment that was tried.
    fn ask(&self, code: &str, error: &str, settlement: Option<SettlementResponse>) -> Result<Response, ApiError> {
        let required = paywall::payment_required(&self.terms, self.accepts()?, &self.request.url()?, code);
        let header = encode_header(&required).map_err(|error| Fault::Inconsistent(format!("terms: {error}")))?;
        let mut response = answer::json(serde_json::json!({ "error": error }).to_string())?.with_status(402);
        response.headers_mut().set(PAYMENT_REQUIRED, &header)?;
        response.headers_mut().set("cache-control", "no-store")?;
        if let Some(settlement) = settlement {
            let header =
                encode_header(&settlement).map_err(|error| Fault::Inconsistent(format!("settlement: {error}")))?;
            response.headers_mut().set(PAYMENT_RESPONSE, &header)?;
        }
        Ok(response)
    }

    /// Every way to pay: straight to the seller, or into the escrow under a quote made now.
    fn accepts(&self) -> Result<Vec<PaymentRequirements>, ApiError> {
        let mut accepts: Vec<_> = paywall::instant(&self.terms).into_iter().collect();
        if let Some(protection) = self.protection.as_ref() {
            let nonce = edge::random()?;
            if let Some(quote) = protection.quote(&self.terms, self.clock, nonce) {
                accepts.push(
                    protected::requirements(&quote).map_err(|error| Fault::Inconsistent(format!("quote: {error}")))?,
                );
            }
        }
        Ok(accepts)
    }

    fn refuse(&self, refusal: &Refusal) -> Result<Response, ApiError> {
        self.ask(refusal.code(), &refusal.to_string(), None)
    }

    /// What is sold.
    async fn content(&self) -> Result<String, ApiError> {
        let content = self.app.contents()?.get(&self.terms.content_hash).await?;
        Ok(content.ok_or_else(|| Fault::Inconsistent(format!("{} has no content", self.terms.id)))?)
    }

    async fn admit_instant(
        &self,
        header: &str,
        offer: &Offer,
        chain: &Blockfrost,
    ) -> Result<Admission, SettleError<DatabaseError>> {
        let requirements = paywall::instant(&self.terms).ok_or(Refusal::AcceptedDiffers("extra"))?;
        let request = x402_cardano::settlement::Request { header, resource: &self.terms.id, terms_digest: None };
        admit_offer(offer, &request, &Settlements(&self.database), chain, async |offer| {
            default::verify(&requirements, offer, chain, &WebCrypto, self.moment()).await
        })
        .await
    }

    async fn admit_protected(
        &self,
        header: &str,
        offer: &Offer,
        protection: &Protection,
        chain: &Blockfrost,
    ) -> Result<Admission, SettleError<DatabaseError>> {
        let taken = protected::Taken::recognise(&protection.issuer(), &self.terms.sale(), offer)?;
        let terms_digest = Some(taken.terms_digest().0);
        let request = x402_cardano::settlement::Request { header, resource: &self.terms.id, terms_digest };
        admit_offer(offer, &request, &Settlements(&self.database), chain, async |offer| {
            Ok(taken.verify(offer, chain, &WebCrypto, self.moment()).await?.payment)
        })
        .await
    }

    const fn moment(&self) -> Moment {
        Moment { now_ms: self.clock, slots: SlotConfig::PREPROD }
    }

    async fn paid(&self, header: &str) -> Result<Response, ApiError> {
        let chain = self.app.chain()?;
        let store = Settlements(&self.database);
        let offer = match Offer::from_header(header) {
            Ok(offer) => offer,
            Err(refusal) => return self.refuse(&refusal),
        };
        let admission = match (offer.accepted.asset_transfer_method(), self.protection.as_ref()) {
            (method, Some(protection)) if method == protection.method() => {
                self.admit_protected(header, &offer, protection, &chain).await
            }
            _ => self.admit_instant(header, &offer, &chain).await,
        };
        let admission = match admission {
            Ok(admission) => admission,
            Err(SettleError::Refused(refusal)) => return self.refuse(&refusal),
            Err(error) => return Err(unsettled(error)),
        };
        let (tx, payer) = (*admission.tx(), *admission.payer());
        let bought = self.database.run(purchase::owner(&tx)).await?;
        if bought.first_json::<Owned>()?.is_some_and(|bought| bought.status == "refunded") {
            return self.ask("payment_refunded", "this payment was refunded: pay with a new transaction", None);
        }
        let content = self.content().await?;
        let looks = usize::try_from(self.app.usage().calls_left() / CALLS_PER_LOOK).unwrap_or(0);
        let schedule = SCHEDULE.get(..looks.min(SCHEDULE.len())).unwrap_or(&SCHEDULE);
        let policy = ConfirmationPolicy::IN_BLOCK;
        let settler = Settler { chain: &chain, store: &store, sleep: &self.app.timer(), policy, schedule };
        let outcome = match settler.settle(admission, self.app.now_ms()).await {
            Ok(outcome) => outcome,
            Err(SettleError::Refused(refusal)) => return self.refuse(&refusal),
            Err(error) => return Err(unsettled(error)),
        };
        console_log!("payment {tx} for {}: {}", self.terms.id, outcome_name(&outcome));
        let settlement = outcome.response(&tx, &payer, Network::Preprod);
        let Some(refusal) = outcome.refusal() else {
            return self.deliver(&tx, content, chain.newest(), &settlement).await;
        };
        self.ask(refusal.code(), &refusal.to_string(), Some(settlement))
    }

    /// Hands out what was paid for. From then on the payment alone, which anyone can copy from the chain, opens nothing.
    async fn deliver(
        &self,
        tx: &TxHash,
        content: String,
        newest: Option<Tip>,
        settlement: &SettlementResponse,
    ) -> Result<Response, ApiError> {
        let mut notes: Vec<_> = newest.as_ref().map(chain_state::note).into_iter().collect();
        // Who hung up did not get it: their same request may come again.
        if !self.request.inner().signal().aborted() {
            notes.push(settlement::mark_delivered(tx, edge::now_ms()));
        }
        if !notes.is_empty() {
            self.database.batch(notes).await?;
        }
        let mut response = answer::private_text(content)?;
        let header = encode_header(settlement).map_err(|error| Fault::Inconsistent(format!("settlement: {error}")))?;
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
                let mut response = answer::private_text(self.content().await?)?;
                response.headers_mut().set("x-service-purchase", &purchase.to_string())?;
                Ok(response)
            }
        }
    }

    /// The purchase on record; else a payment that was submitted and is in a block by now, recorded with that.
    async fn find_purchase(&self, proof: &Proof) -> Result<Option<TxHash>, ApiError> {
        let owned = purchase::owned(&self.terms.id, &proof.address);
        let open = settlement::open_payments(&self.terms.id, &proof.address);
        let [owned, open] = exactly(self.database.batch(vec![owned, open]).await?)?;
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

const fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Confirmed(_) => "confirmed",
        Outcome::Pending(_) => "pending",
        Outcome::Refused(_) => "refused",
        Outcome::Expired => "expired",
    }
}

fn unsettled(error: SettleError<DatabaseError>) -> ApiError {
    match error {
        SettleError::Refused(refusal) => UnlockError::Refused(refusal).into(),
        SettleError::Chain(error) => error.into(),
        SettleError::Store(error) => error.into(),
    }
}
