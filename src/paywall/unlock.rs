//! Unlocking a listing. HTTP and MCP render the same [`Outcome`].
//!
//! ```text
//! neither      payment required
//! a proof      the content again, for its buyer (X-Service-Proof or SIGN-IN-WITH-X)
//! a payment    paid by market::checkout: the content, or payment required, with the reason
//! ```
//!
//! A payment that is not included in time is `settlement_pending`. Repeating the request waits for the same
//! transaction; no new terms are offered, because they would invite a second payment.

use std::{cell::RefCell, rc::Rc};

use cardano::{Address, Network, TxHash};
use edge::{
    answer::Fault,
    ed25519::WebCrypto,
    http,
    settings::{Cached, once},
};
use market::{
    DeliveryMode, ListingId,
    catalogue::ListingTerms,
    checkout::{self as market_checkout, PayError, Presentation, Presented, Unavailable},
    proof::{Proof, ProofError},
};
use x402_cardano::{
    request_commitment::RequestDigest,
    wire::{
        Extensions, PaymentRequired, PaymentRequirements, SettlementResponse, request_binding,
        sign_in_with_x::{NonceKey, Resource},
    },
};

use super::resource_info;
use crate::{
    app::App,
    checkout,
    error::ApiError,
    limits,
    methods::Methods,
    read_cache::{self, Priced},
    receipts,
};

thread_local! {
    static NONCE_KEY: Cached<NonceKey> = const { RefCell::new(None) };
}

/// Outcome of a request to unlock a listing.
pub enum Outcome {
    /// The content is delivered, because it is paid for now or was paid for before.
    Delivered {
        content: String,
        /// Settlement of the payment in this request, with a receipt; `None` if the content was paid for before.
        settlement: Option<SettlementResponse>,
        /// Payment transaction of the earlier purchase; `None` if this request paid.
        purchase: Option<TxHash>,
    },
    /// Payment is required, for this reason. If a submitted payment is not confirmed yet, the second value holds the
    /// terms of that payment, and no other terms are offered. The reason is [`PayError::Unavailable`] only while
    /// protected sales are paused.
    PaymentRequired(PayError, Option<PaymentRequirements>),
    /// No listing with this id is for sale.
    UnknownListing,
}

/// A listing's paywall in the context of a request.
pub struct Paywall<'a> {
    pub app: &'a App,
    pub priced: Priced,
    pub methods: Rc<Methods>,
}

impl<'a> Paywall<'a> {
    /// Returns the paywall of a listing, or `None` if there is no such listing.
    pub async fn of(app: &'a App, id: &ListingId) -> Result<Option<Self>, ApiError> {
        let Some(priced) = read_cache::priced(app, id).await? else { return Ok(None) };
        Ok(Some(Self { app, priced, methods: app.methods()? }))
    }

    /// Returns the listing's terms.
    pub fn terms(&self) -> &ListingTerms {
        &self.priced.terms
    }

    /// Sells the listing, or delivers an earlier purchase again. `digest` returns the digest of the request, because a
    /// payment may be bound to one request.
    pub async fn unlock(
        &self,
        shown: Presentation,
        digest: impl FnOnce() -> Option<RequestDigest>,
    ) -> Result<Outcome, ApiError> {
        let proven = match (shown.proof, shown.sign_in) {
            (Some(proof), _) => Some(self.proven(&proof).await),
            (None, Some(sign_in)) => Some(self.signed_in(&sign_in).await?),
            (None, None) => None,
        };
        let proven = match proven.transpose() {
            Ok(address) => address,
            Err(error) => return Ok(self.payment_required(error, None)),
        };
        match (shown.payment, proven) {
            (Some(payment), proven) => self.pay(&payment, proven, digest()).await,
            (None, Some(buyer)) => self.redeliver(buyer).await,
            (None, None) if self.is_paused() => Ok(self.payment_required(Unavailable::ChainBehind, None)),
            (None, None) => match self.app.chain()?.refused() {
                // No terms are offered, because a payment could be neither verified nor submitted.
                Some(refused) => Err(Fault::from(refused).into()),
                None => Ok(self.payment_required(PayError::Unpaid, None)),
            },
        }
    }

    /// Verifies a proof of an earlier purchase of this listing, and returns the address that signed the proof.
    async fn proven(&self, header: &str) -> Result<Address, ProofError> {
        let proof = Proof::from_header(header)?;
        let digest = proof.unlock_digest(self.terms().id.as_str());
        proof.check(&WebCrypto, &digest, self.app.now_ms).await?;
        Ok(proof.address)
    }

    /// Verifies a signed challenge from this listing's 402 answer, and returns the address that signed it.
    async fn signed_in(&self, header: &str) -> Result<Result<Address, ProofError>, ApiError> {
        let signed_in = async |resource: Resource<'_>| resource.check(&WebCrypto, header, self.app.now_ms).await;
        Ok(self.with_resource(signed_in).await?.map_err(ProofError::from))
    }

    /// Returns the x402 extension with a new challenge to sign in with, or an empty map if no secret or no origin is
    /// configured.
    pub async fn challenge(&self) -> Result<Extensions, ApiError> {
        let (random, now) = (edge::random()?, self.app.now_ms);
        let offered = self.with_resource(async |resource: Resource<'_>| resource.offered(random, now)).await;
        Ok(offered.unwrap_or_default())
    }

    /// Calls `run` with this listing as the resource that a client signs in to. The resource's origin is the
    /// configured one, because a request could claim any origin.
    async fn with_resource<T>(&self, run: impl AsyncFnOnce(Resource<'_>) -> T) -> Result<T, ApiError> {
        let (origin, keys) = (self.app.origin()?, self.app.keys()?);
        let key = once(&NONCE_KEY, || {
            let short = || Fault::Inconsistent("the secret for nonces is too short".into());
            Ok::<_, ApiError>(NonceKey::derive(keys.master(keys.current_version()?)?).ok_or_else(short)?)
        })?;
        let uri = super::resource_url(&origin, &self.terms().id);
        Ok(run(Resource { origin: &origin, uri: &uri, network: Network::Preprod, key: &key }).await)
    }

    /// Returns whether protected sales of this listing are paused.
    fn is_paused(&self) -> bool {
        self.priced.clock.is_behind && self.methods.quotes(&self.terms().modes)
    }

    /// Returns [`Outcome::PaymentRequired`]. If the listing is off sale, returns [`Outcome::UnknownListing`] instead,
    /// unless `why` reports on an earlier payment.
    fn payment_required(&self, why: impl Into<PayError>, pending: Option<PaymentRequirements>) -> Outcome {
        let why = why.into();
        if self.terms().hidden && !why.reports_earlier_payment() {
            return Outcome::UnknownListing;
        }
        Outcome::PaymentRequired(why, pending)
    }

    async fn pay(
        &self,
        header: &str,
        proven: Option<Address>,
        digest: Option<RequestDigest>,
    ) -> Result<Outcome, ApiError> {
        let Self { app, priced, .. } = self;
        let presented = match Presented::read(header, &limits::client(&app.request)?, digest.as_ref()) {
            Ok(presented) => presented,
            Err(refusal) => return Ok(self.payment_required(refusal, None)),
        };
        let _held = http::hold(&app.request, limits::payment_bytes(header))?;
        let pay = async |checkout: &checkout::ApiCheckout<'_>| checkout.pay(&priced.terms, &presented, proven).await;
        let options = self.methods.options_for(self.terms());
        let paid = checkout::with(app, priced.clock, &options, pay).await?;
        app.line.note("tx", &presented.tx().to_string());
        app.line.note("outcome", paid.as_ref().map_or_else(PayError::code, |_| "delivered"));
        let error = paid.as_ref().err().map(|error| api_types::Error::from(error.clone()).code);
        app.record_payment(self.methods.mode_of(&presented), error);
        match paid {
            Ok(mut paid) => {
                receipts::attach(app, &priced.terms, &mut paid.settlement);
                let settlement = Some(paid.settlement);
                Ok(Outcome::Delivered { content: paid.content, settlement, purchase: None })
            }
            Err(PayError::Unavailable(error)) => Err(error.into()),
            Err(PayError::OffSale) => Ok(Outcome::UnknownListing),
            Err(error) => {
                let pending = error.is_pending().then(|| presented.accepted().ok()).flatten();
                Ok(self.payment_required(error, pending))
            }
        }
    }

    /// Delivers the content again to an address that has paid and signed.
    async fn redeliver(&self, buyer: Address) -> Result<Outcome, ApiError> {
        let Self { app, priced, .. } = self;
        let found = async |checkout: &checkout::ApiCheckout<'_>| {
            checkout.redeliver(&priced.terms, &[*buyer.payment_key()]).await
        };
        Ok(match checkout::with(app, priced.clock, &[], found).await?? {
            None => self.payment_required(PayError::NotOwned, None),
            Some(found) => {
                Outcome::Delivered { content: found.content, settlement: None, purchase: Some(found.purchase) }
            }
        })
    }

    /// Returns the requirements of the pending payment if there is one. Otherwise returns those of every payment
    /// method, with a new quote for the escrow.
    pub async fn accepts(&self, pending: Option<PaymentRequirements>) -> Result<Vec<PaymentRequirements>, ApiError> {
        match pending {
            Some(entry) => Ok(vec![entry]),
            None => {
                let clock = self.priced.clock;
                let mut options = self.methods.options_for(self.terms());
                options.retain(|(mode, _)| *mode != DeliveryMode::Protected || !clock.is_behind);
                let offered =
                    market_checkout::quote(&WebCrypto, &options, self.terms(), clock.ms, edge::random()?).await;
                let offered = offered.map_err(Fault::inconsistent("quote"))?;
                Ok(offered.into_iter().map(|offered| offered.requirements).collect())
            }
        }
    }

    /// Builds a 402 answer with a new secret.
    pub fn required(
        &self,
        url: String,
        mut extensions: Extensions,
        accepts: Vec<PaymentRequirements>,
        error: &str,
        secret: &str,
    ) -> PaymentRequired<Extensions> {
        extensions.extend(request_binding::offered(secret));
        PaymentRequired::new(resource_info(self.terms(), url), accepts, Some(error)).with_extensions(extensions)
    }
}
