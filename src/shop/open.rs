//! For agents with wallets of their own: they pay over x402, inside the tool call.

use std::rc::Rc;

use agents::mcp::{
    open,
    shop::{OpenShop, Presentation, Shelf, ShopError, Unlocked},
};
use cardano::Address;
use edge::serve::Request;
use edge::{ed25519::WebCrypto, http};
use market::{
    ListingId,
    catalogue::{Filter, Page},
    checkout::{self, PayError, Presented},
    proof::Proof,
};
use serde_json::{Map, Value, json};
use x402_cardano::{
    Refusal,
    settlement::NotSettled,
    wire::{PaymentRequirements, SettlementResponse, bazaar, payment_identifier, request_binding},
};

use super::{Counter, priced, unavailable};
use crate::{
    app::App,
    limits::{self, Counted},
    methods::Methods,
    paywall::{self, Priced},
    receipts,
};

/// The shop for agents with wallets of their own.
pub struct OpenCounter<'a>(Counter<'a>);

impl<'a> OpenCounter<'a> {
    /// For whoever sent this request.
    pub const fn new(app: &'a App, request: &'a Request) -> Self {
        Self(Counter { app, request })
    }
}

impl Shelf for OpenCounter<'_> {
    fn origin(&self) -> String {
        self.0.origin()
    }

    fn icon(&self) -> String {
        pages::asset::ICON.path.clone()
    }

    async fn search(&self, filter: Filter) -> Result<Page, ShopError> {
        self.0.search(filter).await
    }

    async fn listing(&self, id: &ListingId) -> Result<String, ShopError> {
        self.0.listing(id).await
    }
}

/// The extensions of the tool's 402.
fn extensions() -> Map<String, Value> {
    let mut extensions = payment_identifier::offered();
    if let Some(tool) = open::paid_tool() {
        let text = |name| tool.get(name).and_then(Value::as_str).unwrap_or_default();
        let input_schema = tool.get("inputSchema").unwrap_or(&Value::Null);
        let tool = bazaar::Tool { name: text("name"), description: text("title"), input_schema };
        extensions.extend(tool.extension());
    }
    extensions
}

/// A listing at the open counter, with what is the same for asking and paying.
struct OpenSale<'a> {
    counter: &'a Counter<'a>,
    priced: Priced,
    methods: Rc<Methods>,
}

impl OpenShop for OpenCounter<'_> {
    async fn unlock(&self, id: &ListingId, shown: Presentation) -> Result<Unlocked, ShopError> {
        let app = self.0.app;
        let priced = priced(app, self.0.request, id).await?;
        let sale = OpenSale { counter: &self.0, priced, methods: app.methods().map_err(unavailable)? };
        if shown.payment.is_some() {
            app.limit_client(Counted::Payment, self.0.request).await.map_err(unavailable)?;
        } else if shown.proof.is_some() {
            app.limit_client(Counted::Proof, self.0.request).await.map_err(unavailable)?;
        }
        let proven = match shown.proof.map(|proof| Proof::from_header(&proof)).transpose() {
            Ok(None) => None,
            Ok(Some(proof)) => {
                let digest = proof.unlock_digest(&sale.priced.terms.id);
                if let Err(error) = proof.check(&WebCrypto, &digest, app.now_ms()).await {
                    return sale.ask(&error.to_string()).await;
                }
                Some(proof.address)
            }
            Err(error) => return sale.ask(&error.to_string()).await,
        };
        match (shown.payment, proven) {
            (Some(payment), proven) => sale.pay(&payment, proven).await,
            (None, Some(buyer)) => sale.again(&buyer).await,
            (None, None) => sale.ask("payment required: choose one of accepts").await,
        }
    }
}

impl OpenSale<'_> {
    /// The terms, and why they are shown, for as long as the listing is for sale.
    async fn ask(&self, why: &str) -> Result<Unlocked, ShopError> {
        if self.priced.terms.hidden {
            return Err(ShopError::NoListing);
        }
        self.tell(why, None, None).await
    }

    /// The same to who paid already: what became of that is told of a hidden listing, too, and nothing is offered beside it.
    /// `pending` is the entry under which a payment is on its way: the only one to show meanwhile.
    async fn tell(
        &self,
        why: &str,
        pending: Option<PaymentRequirements>,
        settlement: Option<&SettlementResponse>,
    ) -> Result<Unlocked, ShopError> {
        let accepts = match pending {
            Some(entry) => vec![entry],
            None => {
                let nonce = edge::random().map_err(unavailable)?;
                let (terms, clock) = (&self.priced.terms, self.priced.clock);
                let options = self.methods.offered(&self.priced);
                let offered = checkout::quote(&WebCrypto, &options, terms, clock, nonce).await;
                let offered = offered.map_err(|error| ShopError::Unavailable(format!("quote: {error}")))?;
                offered.into_iter().map(|offered| offered.requirements).collect()
            }
        };
        let resource = paywall::resource_info(&self.priced.terms, open::RESOURCE_URL.to_owned());
        let mut extensions = extensions();
        extensions.extend(request_binding::offered(&paywall::secret().map_err(unavailable)?));
        let required = json!(paywall::payment_required(resource, extensions, accepts, why));
        Ok(Unlocked::PaymentRequired { required, settlement: settlement.map(|settlement| json!(settlement)) })
    }

    /// The content again, for an address that paid for it and signs for it now.
    async fn again(&self, buyer: &Address) -> Result<Unlocked, ShopError> {
        let ports = self.counter.ports()?;
        let checkout = ports.checkout(&[], &self.priced, &|| false).map_err(unavailable)?;
        let found = checkout.redeliver(&self.priced.terms, &[*buyer.payment_key()]).await.map_err(unavailable)?;
        match found {
            None => self.ask("this address has not bought this listing: pay for it").await,
            Some(found) => Ok(Unlocked::Delivered {
                content: found.content,
                listed_hash: self.priced.terms.content_hash,
                settlement: None,
                purchase: Some(found.purchase),
            }),
        }
    }

    async fn pay(&self, payment: &str, proven: Option<Address>) -> Result<Unlocked, ShopError> {
        let (app, request) = (self.counter.app, self.counter.request);
        // The extension has no profile for tools yet: a payment commits to the request that pays the listing over HTTP.
        let digest = paywall::unlock_digest(app, request, &self.priced.terms.id);
        let client = limits::client(request).map_err(unavailable)?;
        let presented = match Presented::of_request(payment, &client, digest.as_ref()) {
            Ok(presented) => presented,
            Err(refusal) => return self.ask(&refusal.to_string()).await,
        };
        let _held = http::hold(request, limits::payment_bytes(payment)).map_err(unavailable)?;
        let ports = self.counter.ports()?;
        let (options, signal) = (ports.options(&self.priced.terms), self.counter.request.inner().signal());
        let hung_up = || signal.aborted();
        let checkout = ports.checkout(&options, &self.priced, &hung_up).map_err(unavailable)?;
        let error = match checkout.pay(&self.priced.terms, &presented, proven).await {
            Ok(mut paid) => {
                receipts::attach(app, self.counter.request, &self.priced.terms, &mut paid.settlement);
                return Ok(Unlocked::Delivered {
                    content: paid.content,
                    listed_hash: self.priced.terms.content_hash,
                    settlement: Some(json!(paid.settlement)),
                    purchase: None,
                });
            }
            Err(error) => error,
        };
        let words = error.to_string();
        match error {
            PayError::NotSettled(refusal, settlement) => {
                let pends = matches!(refusal, Refusal::Settlement(NotSettled::Pending));
                let pending = pends.then(|| presented.accepted().ok()).flatten();
                self.tell(refusal.code(), pending, Some(&settlement)).await
            }
            PayError::Unavailable(error) => Err(unavailable(error)),
            PayError::IdentifierTaken => Err(ShopError::NotDone(words)),
            PayError::Refunded | PayError::Public => self.tell(&words, None, None).await,
            PayError::Refused(_) | PayError::TooManyUnresolved | PayError::ExpiresTooSoon | PayError::InputsTaken => {
                self.ask(&words).await
            }
        }
    }
}
