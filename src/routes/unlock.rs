//! `GET /listings/{id}/unlock`: the paywall. Directories try it with HEAD, which is told the terms and nothing else: a HEAD
//! could not carry what is paid for. They try POST, too, which is as good as GET.
//!
//! ```text
//! no header            402 with the terms
//! X-Service-Proof      the content again, for who paid before
//! PAYMENT-SIGNATURE    market::checkout pays: 200 with the content, or 402 that says why not
//! ```
//!
//! A payment that is not in a block in time is 402 `settlement_pending`: the same request again goes on waiting for the same
//! transaction, and no fresh terms invite a second one.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use cardano::{Address, keys::SignEd25519 as _};
use edge::serve::{Request, Response};
use edge::{
    answer::{self, ErrorAnswer, Fault},
    ed25519::WebCrypto,
    http,
};
use market::{
    ListingId,
    checkout::{self, PayError, PaymentOption, Presented, Unavailable},
    proof::Proof,
};
use x402_cardano::{
    Refusal,
    method::QuoteTemplate,
    request_commitment::RequestDigest,
    settlement::NotSettled,
    wire::{
        HeaderTemplate, PAYMENT_REQUIRED, PAYMENT_RESPONSE, PAYMENT_SIGNATURE, PaymentRequired, PaymentRequirements,
        SettlementResponse, encode_header, request_binding,
    },
};

use crate::{
    app::App,
    checkout::Ports,
    error::{ApiError, Refused},
    limits::{self, Counted},
    methods::Methods,
    paywall::{self, Priced, SCHEDULE},
    receipts,
};

/// The code of a request that brings no payment.
const UNPAID: &str = "PAYMENT-SIGNATURE header is required";
/// The code of a payment that spends what another one on its way spends.
const INPUTS_TAKEN: &str = "invalid_exact_cardano_payload_input_not_available";
/// The code of a lock that would hardly be in a block in time.
const EXPIRES_TOO_SOON: &str = "invalid_exact_cardano_payload_ttl_too_soon";
/// Headers of terms that an isolate keeps, of some two kilobytes each.
const MAX_HEADERS: usize = 1_000;

thread_local! {
    /// What is the same in each unpaid answer, by the address of the paywall.
    static HEADERS: RefCell<HashMap<String, Rc<Unpaid>>> = RefCell::default();
}

/// What an unpaid request is told of a listing each time, but for its secret and its quote. Prices never change.
struct Unpaid {
    header: HeaderTemplate,
    /// Where the listing is sold under quotes.
    quotes: Option<QuoteTemplate>,
}

/// Why nothing is unlocked, where payment would not help.
#[derive(Debug, thiserror::Error)]
pub enum UnlockError {
    /// No listing has this id, or the operator hid it.
    #[error("no such listing")]
    UnknownListing,
    /// A payment that cannot be read.
    #[error(transparent)]
    Malformed(Refusal),
    /// The client's identifier belongs to another payment.
    #[error(transparent)]
    IdentifierTaken(PayError),
    /// Paid, and not as deep in the chain as it has to be; or not paid, because too many sales wait.
    #[error(transparent)]
    NotNow(Unavailable),
}

impl Refused for UnlockError {
    fn answer(&self) -> ErrorAnswer {
        let text = self.to_string();
        match self {
            Self::UnknownListing => ErrorAnswer::not_found(text),
            Self::Malformed(_) => ErrorAnswer::bad_request(text),
            Self::IdentifierTaken(_) => ErrorAnswer::conflict(text),
            Self::NotNow(_) => ErrorAnswer::unavailable(text),
        }
    }
}

impl From<Unavailable> for ApiError {
    fn from(error: Unavailable) -> Self {
        match error {
            Unavailable::Database(error) => error.into(),
            Unavailable::Chain(error) => error.into(),
            Unavailable::Contents(error) => error.into(),
            Unavailable::Unconfirmed(_)
            | Unavailable::NoResult(_)
            | Unavailable::Refundable(_)
            | Unavailable::Restoring
            | Unavailable::ChainBehind => UnlockError::NotNow(error).into(),
        }
    }
}

/// One request at the paywall.
struct Gate<'a> {
    app: &'a App,
    request: &'a Request,
    priced: Priced,
    methods: Rc<Methods>,
}

/// A 402: a stable code in the header, words in the body, and what became of a payment that was tried.
struct Ask<'a> {
    code: &'a str,
    words: &'a str,
    settlement: Option<&'a SettlementResponse>,
    /// The entry under which a payment is on its way: the only one to show meanwhile.
    pending: Option<PaymentRequirements>,
}

impl<'a> Ask<'a> {
    const fn new(code: &'a str, words: &'a str) -> Self {
        Self { code, words, settlement: None, pending: None }
    }
}

/// The code of a 402 while protected sales are paused.
const PAUSED: &str = "protected_paused";

/// Answers as the headers ask.
pub async fn show(app: &App, id: &str, request: &Request) -> Result<Response, ApiError> {
    let id: ListingId = id.parse().map_err(|_| UnlockError::UnknownListing)?;
    let priced = paywall::priced(app, request, &id).await?.ok_or(UnlockError::UnknownListing)?;
    let gate = Gate { app, request, priced, methods: app.methods()? };
    if request.method() == "HEAD" {
        return gate.ask(&Ask::new(UNPAID, "payment required: choose one of the terms")).await;
    }
    let (payment, proof) = (request.headers().get(PAYMENT_SIGNATURE)?, request.headers().get("x-service-proof")?);
    if payment.is_some() {
        app.limit_client(Counted::Payment, request).await?;
    } else if proof.is_some() {
        app.limit_client(Counted::Proof, request).await?;
    }
    let proven = match proof.map(|proof| Proof::from_header(&proof)) {
        None => None,
        Some(Err(error)) => return gate.ask(&Ask::new("proof_refused", &error.to_string())).await,
        Some(Ok(proof)) => {
            let digest = proof.unlock_digest(&gate.priced.terms.id);
            if let Err(error) = proof.check(&WebCrypto, &digest, app.now_ms()).await {
                return gate.ask(&Ask::new("proof_refused", &error.to_string())).await;
            }
            Some(proof.address)
        }
    };
    match (payment, proven) {
        (Some(payment), proven) => gate.paid(&payment, proven).await,
        (None, Some(buyer)) => gate.returning(&buyer).await,
        (None, None) if gate.is_paused() => gate.ask(&Ask::new(PAUSED, &Unavailable::ChainBehind.to_string())).await,
        (None, None) => gate.ask(&Ask::new(UNPAID, "payment required: choose one of the terms")).await,
    }
}

impl Gate<'_> {
    /// The terms, for as long as the listing is for sale.
    async fn ask(&self, ask: &Ask<'_>) -> Result<Response, ApiError> {
        if self.priced.terms.hidden {
            return Err(UnlockError::UnknownListing.into());
        }
        self.tell(ask).await
    }

    /// The same to who paid already: what became of that is told of a hidden listing, too, and nothing is offered beside it.
    async fn tell(&self, ask: &Ask<'_>) -> Result<Response, ApiError> {
        let header = self.terms_header(ask).await?;
        let mut response = answer::json(serde_json::json!({ "error": ask.words }).to_string())?.with_status(402);
        response.headers_mut().set(PAYMENT_REQUIRED, &header)?;
        response.headers_mut().set("cache-control", "no-store")?;
        if let Some(settlement) = ask.settlement {
            let header =
                encode_header(settlement).map_err(|error| Fault::Inconsistent(format!("settlement: {error}")))?;
            response.headers_mut().set(PAYMENT_RESPONSE, &header)?;
        }
        Ok(response)
    }

    /// The terms as a header.
    async fn terms_header(&self, ask: &Ask<'_>) -> Result<String, ApiError> {
        let url = paywall::resource_url(&self.app.public_origin(self.request)?, &self.priced.terms.id);
        // Other methods, queries and bodies have digests of their own.
        let usual = self.request.method() == "GET" && self.request.query().is_none() && !self.request.has_body();
        if usual && ask.code == UNPAID && ask.pending.is_none() {
            return self.unpaid(url).await;
        }
        let accepts = match &ask.pending {
            Some(entry) => vec![entry.clone()],
            None => self.accepts().await?,
        };
        let required = self.required(url, accepts, ask.code, &paywall::secret()?);
        encode_header(&required).map_err(|error| terms_fault(&error))
    }

    fn required(&self, url: String, accepts: Vec<PaymentRequirements>, code: &str, secret: &str) -> PaymentRequired {
        let mut extensions = paywall::extensions(&self.priced.terms);
        extensions.extend(request_binding::offered(secret));
        extensions.extend(paywall::request_digest(self.app, self.request).iter().flat_map(RequestDigest::offered));
        paywall::payment_required(paywall::resource_info(&self.priced.terms, url), extensions, accepts, code)
    }

    /// The terms for who brings no payment: what is the same each time is kept, and only secret and quote are made anew.
    async fn unpaid(&self, url: String) -> Result<String, ApiError> {
        let secret = paywall::secret()?;
        let kept = HEADERS.with_borrow(|kept| kept.get(&url).cloned());
        let kept = match kept {
            Some(kept) => kept,
            None => self.keep(url).await?,
        };
        let (Some(template), Some(method)) = (&kept.quotes, self.methods.quoting(&self.priced.terms.modes)) else {
            return Ok(kept.header.with(&[&secret]));
        };
        let quote = template.draft(self.priced.clock, edge::random()?).map_err(|error| terms_fault(&error))?;
        let signature = WebCrypto.sign(method.signer(), quote.to_sign()).await;
        let parts = quote.signed(signature);
        Ok(kept.header.with(&[&*secret].into_iter().chain(parts.texts()).collect::<Vec<_>>()))
    }

    /// Keeps what is the same in each of a listing's 402.
    async fn keep(&self, url: String) -> Result<Rc<Unpaid>, ApiError> {
        let quoting = self.methods.quoting(&self.priced.terms.modes);
        let quotes = match quoting {
            Some(method) => {
                let template = method.template(&self.priced.terms.sale(), edge::random()?);
                Some(template.map_err(|error| terms_fault(&error))?)
            }
            None => None,
        };
        let mut accepts = self.offers(&[self.methods.unquoted()]).await?;
        accepts.extend(quotes.iter().map(|quotes| quotes.entry().clone()));
        // What no seller can have written into a title.
        let place = paywall::secret()?;
        let required = self.required(url.clone(), accepts, UNPAID, &place);
        let marks: Vec<_> = [&*place].into_iter().chain(quotes.iter().flat_map(QuoteTemplate::marks)).collect();
        let header = HeaderTemplate::new(&required, &marks).map_err(|error| terms_fault(&error))?;
        let unpaid = Rc::new(Unpaid { header, quotes });
        HEADERS.with_borrow_mut(|kept| {
            if kept.len() >= MAX_HEADERS {
                kept.clear();
            }
            kept.insert(url, unpaid.clone());
        });
        Ok(unpaid)
    }

    /// Every way to pay: straight to the seller, or into the escrow under a quote made now.
    async fn accepts(&self) -> Result<Vec<PaymentRequirements>, ApiError> {
        self.offers(&self.methods.offered(&self.priced)).await
    }

    /// Whether protected sales of this listing are paused.
    fn is_paused(&self) -> bool {
        self.priced.behind && self.methods.quoting(&self.priced.terms.modes).is_some()
    }

    async fn offers(&self, ways: &[PaymentOption<'_>]) -> Result<Vec<PaymentRequirements>, ApiError> {
        let offered = checkout::quote(&WebCrypto, ways, &self.priced.terms, self.priced.clock, edge::random()?)
            .await
            .map_err(|error| Fault::Inconsistent(format!("quote: {error}")))?;
        Ok(offered.into_iter().map(|offered| offered.requirements).collect())
    }

    /// The terms were not kept, or the payment cannot be one: 400 where nothing in it can be read.
    async fn refuse(&self, refusal: &Refusal) -> Result<Response, ApiError> {
        if refusal.is_malformed() {
            return Err(UnlockError::Malformed(refusal.clone()).into());
        }
        self.ask(&Ask::new(refusal.code(), &refusal.to_string())).await
    }

    async fn paid(&self, header: &str, proven: Option<Address>) -> Result<Response, ApiError> {
        let client = limits::client(self.request)?;
        let digest = paywall::request_digest(self.app, self.request);
        let presented = match Presented::of_request(header, &client, digest.as_ref()) {
            Ok(presented) => presented,
            Err(refusal) => return self.refuse(&refusal).await,
        };
        let _held = http::hold(self.request, limits::payment_bytes(header))?;
        let ports = Ports::of(self.app, self.request, &SCHEDULE)?;
        let options = ports.options(&self.priced.terms);
        let hung_up = || self.request.inner().signal().aborted();
        let checkout = ports.checkout(&options, &self.priced, &hung_up)?;
        let paid = checkout.pay(&self.priced.terms, &presented, proven).await;
        self.app.line().note("tx", &presented.tx().to_string());
        self.app.line().note("outcome", outcome(&paid));
        let error = match paid {
            Ok(paid) => return self.deliver(paid.content, paid.settlement),
            Err(error) => error,
        };
        let words = error.to_string();
        match error {
            PayError::Refused(refusal) => self.refuse(&refusal).await,
            PayError::NotSettled(refusal, settlement) => {
                let pends = matches!(refusal, Refusal::Settlement(NotSettled::Pending));
                let pending = pends.then(|| presented.accepted().ok()).flatten();
                self.tell(&Ask { settlement: Some(&settlement), pending, ..Ask::new(refusal.code(), &words) }).await
            }
            PayError::Refunded => self.tell(&Ask::new("payment_refunded", &words)).await,
            PayError::Public => self.tell(&Ask::new("payment_public", &words)).await,
            PayError::ExpiresTooSoon => self.ask(&Ask::new(EXPIRES_TOO_SOON, &words)).await,
            PayError::InputsTaken => self.ask(&Ask::new(INPUTS_TAKEN, &words)).await,
            PayError::TooManyUnresolved => self.ask(&Ask::new("payer_unresolved", &words)).await,
            PayError::IdentifierTaken => Err(UnlockError::IdentifierTaken(error).into()),
            PayError::Unavailable(error) => Err(error.into()),
        }
    }

    fn deliver(&self, content: String, mut settlement: SettlementResponse) -> Result<Response, ApiError> {
        let mut response = answer::private_text(content)?;
        receipts::attach(self.app, self.request, &self.priced.terms, &mut settlement);
        let header = encode_header(&settlement).map_err(|error| Fault::Inconsistent(format!("settlement: {error}")))?;
        response.headers_mut().set(PAYMENT_RESPONSE, &header)?;
        Ok(response)
    }

    /// The content again, for an address that paid for it and signs for it now.
    async fn returning(&self, buyer: &Address) -> Result<Response, ApiError> {
        let ports = Ports::of(self.app, self.request, &SCHEDULE)?;
        let checkout = ports.checkout(&[], &self.priced, &|| false)?;
        match checkout.redeliver(&self.priced.terms, &[*buyer.payment_key()]).await? {
            None => self.ask(&Ask::new("not_owned", "this address has not bought this listing: pay for it")).await,
            Some(found) => {
                let mut response = answer::private_text(found.content)?;
                response.headers_mut().set("x-service-purchase", found.purchase.to_string())?;
                Ok(response)
            }
        }
    }
}

fn terms_fault(error: &dyn std::fmt::Display) -> ApiError {
    Fault::Inconsistent(format!("terms: {error}")).into()
}

fn outcome(paid: &Result<checkout::Paid, PayError>) -> &str {
    match paid {
        Ok(_) => "delivered",
        Err(PayError::Refused(refusal) | PayError::NotSettled(refusal, _)) => refusal.code(),
        Err(PayError::Refunded) => "refunded",
        Err(PayError::Public) => "public before",
        Err(PayError::ExpiresTooSoon) => EXPIRES_TOO_SOON,
        Err(PayError::InputsTaken) => INPUTS_TAKEN,
        Err(PayError::TooManyUnresolved) => "too many unresolved",
        Err(PayError::IdentifierTaken) => "identifier taken",
        Err(PayError::Unavailable(_)) => "unavailable",
    }
}
