//! The shop as agents meet it: the ports of `agents::mcp::shop` on the checkout.

use agents::{
    mcp::{
        open,
        shop::{
            BoughtListing, OpenShop, Presentation, PurchaseState, Shelf, Shop, ShopError, Unlocked, WalletState,
            WithdrawalSent,
        },
    },
    oauth::grant::{self, Caller},
};
use cardano::{Address, ContentHash, Lovelace, TxHash, chain::Chain};
use edge::{contents::ContentStore, d1::D1, ed25519::WebCrypto};
use market::{
    DeliveryMode, ListingId,
    account::{self, DEMO_OWNER},
    catalogue::{self, Filter, Page},
    checkout::{self, BuyError, Checkout, Order, PayError, Presented, Way, buyers_of},
    contents::Contents,
    payment::{self, NotGranted},
    proof::Proof,
    purchase::{self, Owned, Status},
    withdraw::{self, WithdrawError},
};
use serde::Deserialize;
use serde_json::{Value, json};
use sql::{Database, exactly};
use url::Url;
use worker::Request;
use x402_cardano::{
    Refusal,
    settlement::NotSettled,
    wire::{PaymentRequirements, SettlementResponse},
};

use crate::{
    app::App,
    error::ApiError,
    limits::Limiter,
    paywall::{self, Methods, Priced, SCHEDULE},
};

/// Whatever of ours fails: the client may try again.
fn unavailable(error: impl Into<ApiError>) -> ShopError {
    ShopError::Unavailable(error.into().to_string())
}

/// A listing's terms, if it is for sale.
async fn priced(app: &App, database: &D1, id: &ListingId) -> Result<Priced, ShopError> {
    paywall::priced(app, database, id).await.map_err(unavailable)?.ok_or(ShopError::NoListing)
}

/// Everybody's side of it.
struct Counter<'a> {
    app: &'a App,
    request: &'a Request,
}

impl Counter<'_> {
    async fn search(&self, filter: Filter) -> Result<Page, ShopError> {
        catalogue::page(&self.app.database().map_err(unavailable)?, &filter).await.map_err(unavailable)
    }

    async fn listing(&self, id: &ListingId) -> Result<String, ShopError> {
        let database = self.app.database().map_err(unavailable)?;
        catalogue::one(&database, id).await.map_err(unavailable)?.ok_or(ShopError::NoListing)
    }
}

/// The shop for the agent of an account.
pub struct OwnerShop<'a> {
    counter: Counter<'a>,
    caller: Caller,
}

impl<'a> OwnerShop<'a> {
    /// For this caller.
    pub const fn new(app: &'a App, request: &'a Request, caller: Caller) -> Self {
        Self { counter: Counter { app, request }, caller }
    }

    fn app(&self) -> &App {
        self.counter.app
    }

    async fn limit(&self, limiter: Limiter) -> Result<(), ShopError> {
        self.app().limit(limiter, &self.caller.account.owner).await.map_err(unavailable)
    }

    /// Notes which agent a payment is of. It shows what each spent; limits do not depend on it.
    async fn attribute(&self, database: &D1, tx: &TxHash) {
        if let Err(error) = database.run(grant::attribute(&self.caller.grant, &tx.to_string())).await {
            worker::console_error!("payment {tx} is not attributed to its agent: {error}");
        }
    }

    async fn content(&self, listing: &str) -> Result<(ContentHash, Option<String>), ShopError> {
        let missing = || ShopError::Unavailable(format!("{listing} has no content"));
        let database = self.app().database().map_err(unavailable)?;
        let hash = database.run(catalogue::content_hash(listing)).await.map_err(unavailable)?;
        let hash: ContentHash = hash.first_json().map_err(unavailable)?.ok_or_else(missing)?;
        let contents = self.app().contents().map_err(unavailable)?;
        Ok((hash, contents.get(&hash).await.map_err(unavailable)?))
    }
}

impl Shelf for OwnerShop<'_> {
    async fn search(&self, filter: Filter) -> Result<Page, ShopError> {
        self.counter.search(filter).await
    }

    async fn listing(&self, id: &ListingId) -> Result<String, ShopError> {
        self.counter.listing(id).await
    }
}

/// What of a purchase's public JSON a buyer is told first.
#[derive(Deserialize)]
struct Made {
    id: TxHash,
    escrow: Option<MadeEscrow>,
}

#[derive(Deserialize)]
struct MadeEscrow {
    deadlines: Option<Value>,
}

impl Shop for OwnerShop<'_> {
    async fn buy(&self, id: &ListingId, mode: DeliveryMode) -> Result<BoughtListing, ShopError> {
        self.limit(Limiter::Buy).await?;
        let (app, account) = (self.app(), &self.caller.account);
        let database = app.database().map_err(unavailable)?;
        let Priced { terms, clock } = priced(app, &database, id).await?;
        if terms.hidden {
            return Err(ShopError::NoListing);
        }
        let (chain, contents, methods) = (
            app.chain().map_err(unavailable)?,
            app.contents().map_err(unavailable)?,
            app.methods().map_err(unavailable)?,
        );
        let (ways, timer, signal) = (methods.ways(), app.timer(), self.counter.request.inner().signal());
        let checkout = Checkout {
            database: &database,
            chain: &chain,
            signatures: &WebCrypto,
            sleep: &timer,
            contents: &contents,
            ways: &ways,
            now: app.now_ms(),
            clock,
            schedule: &SCHEDULE,
            confirmations: methods.confirmations,
            hung_up: &|| signal.aborted(),
        };
        let key = app.account_key(account).map_err(unavailable)?;
        let nonce = edge::random().map_err(unavailable)?;
        let order = Order { account, key: &key, terms: &terms, mode, nonce };
        let bought = match checkout.buy(&order).await {
            Ok(bought) => bought,
            Err(BuyError::Pending(tx)) => {
                self.attribute(&database, &tx).await;
                return Ok(BoughtListing {
                    tx,
                    paid: terms.price_lovelace,
                    already_owned: false,
                    listed_hash: terms.content_hash,
                    content: None,
                    deadlines: None,
                });
            }
            Err(error) => return Err(not_bought(error, mode, terms.price_lovelace)),
        };
        let made: Made = serde_json::from_str(&bought.purchase)
            .map_err(|error| ShopError::Unavailable(format!("a purchase cannot be read: {error}")))?;
        if !bought.already_owned {
            self.attribute(&database, &made.id).await;
        }
        Ok(BoughtListing {
            tx: made.id,
            paid: terms.price_lovelace,
            already_owned: bought.already_owned,
            listed_hash: terms.content_hash,
            content: Some(bought.content),
            deadlines: made.escrow.and_then(|escrow| escrow.deadlines),
        })
    }

    async fn purchases(&self, cursor: Option<&str>) -> Result<Page, ShopError> {
        self.limit(Limiter::Account).await?;
        let after = cursor.and_then(|cursor| {
            let (at, id) = cursor.split_once('.')?;
            Some((at.parse().ok()?, id.parse().ok()?))
        });
        if cursor.is_some() && after.is_none() {
            return Err(ShopError::NoPurchase);
        }
        let database = self.app().database().map_err(unavailable)?;
        purchase::of_buyers(&database, &buyers_of(&self.caller.account), after).await.map_err(unavailable)
    }

    async fn status(&self, tx: &TxHash, with_content: bool) -> Result<PurchaseState, ShopError> {
        self.limit(Limiter::Account).await?;
        let database = self.app().database().map_err(unavailable)?;
        let reads = vec![purchase::owner(tx), purchase::read(tx), payment::record(tx)];
        let answers = database.batch(reads).await.map_err(unavailable)?;
        let [owned, shown, record] = exactly(answers).map_err(unavailable)?;
        let buyers = buyers_of(&self.caller.account);
        let Some(owned) = owned.first_json::<Owned>().map_err(unavailable)? else {
            let record = payment::all(&record).map_err(unavailable)?.into_iter().next();
            let record = record.filter(|record| buyers.contains(&record.payer.to_string()));
            let record = record.ok_or(ShopError::NoPurchase)?;
            if !record.entry.state.is_open() {
                return Err(ShopError::PaymentFailed("the transaction took no effect".into()));
            }
            let (listed_hash, _) = self.content(&record.listing_id).await?;
            return Ok(PurchaseState { purchase: None, listed_hash, content: None });
        };
        if !buyers.contains(&owned.buyer_address.to_string()) {
            return Err(ShopError::NoPurchase);
        }
        if with_content && owned.status == Status::Refunded {
            return Err(ShopError::Refunded);
        }
        let (listed_hash, content) = self.content(&owned.listing_id).await?;
        let purchase = shown.first().map(str::to_owned);
        Ok(PurchaseState { purchase, listed_hash, content: content.filter(|_| with_content) })
    }

    async fn wallet(&self) -> Result<WalletState, ShopError> {
        self.limit(Limiter::Account).await?;
        let (app, account) = (self.app(), &self.caller.account);
        let database = app.database().map_err(unavailable)?;
        let spent = database.run(account::spent_today(&account.owner, app.now_ms())).await.map_err(unavailable)?;
        let spent: Option<Lovelace> = spent.first_json().map_err(unavailable)?;
        let address = account.wallet_address.to_string();
        let balance = app.chain().map_err(unavailable)?.balance_of(&address).await.map_err(unavailable)?;
        Ok(WalletState {
            owner: account.owner.clone(),
            address,
            balance,
            max_per_payment: account.max_per_payment,
            daily_budget: account.daily_budget,
            spent_today: spent.unwrap_or_default(),
            is_demo: account.owner == DEMO_OWNER,
        })
    }

    async fn withdraw(&self) -> Result<WithdrawalSent, ShopError> {
        self.limit(Limiter::Withdraw).await?;
        let (app, account) = (self.app(), &self.caller.account);
        if account.owner == DEMO_OWNER {
            return Err(ShopError::DemoWallet);
        }
        let (database, chain) = (app.database().map_err(unavailable)?, app.chain().map_err(unavailable)?);
        let key = app.account_key(account).map_err(unavailable)?;
        let sent = withdraw::withdraw(&database, &chain, account, &key, app.now_ms()).await;
        let sent = sent.map_err(|error| match error {
            WithdrawError::NoOwner => ShopError::DemoWallet,
            WithdrawError::Nothing { .. } => ShopError::NothingToWithdraw,
            WithdrawError::Database(error) => unavailable(error),
            WithdrawError::Chain(error) => unavailable(error),
            error => ShopError::NotDone(error.to_string()),
        })?;
        Ok(WithdrawalSent { tx: sent.tx, amount: sent.lovelace, to: account.owner.clone() })
    }
}

fn not_bought(error: BuyError, mode: DeliveryMode, price: Lovelace) -> ShopError {
    match error {
        BuyError::NotOffered(_) => ShopError::ModeNotOffered(mode),
        BuyError::NotGranted(NotGranted::PerPayment { limit }) => ShopError::OverPurchaseLimit { price, limit },
        BuyError::NotGranted(NotGranted::Daily { limit, spent }) => {
            ShopError::OverDailyBudget { price, left: limit.saturating_sub(spent) }
        }
        BuyError::Insufficient { missing, wallet } => ShopError::TooLittle { missing, address: wallet.to_string() },
        BuyError::Unavailable(error) => unavailable(error),
        error => ShopError::NotDone(error.to_string()),
    }
}

/// The shop for agents with wallets of their own.
pub struct OpenCounter<'a>(Counter<'a>);

impl<'a> OpenCounter<'a> {
    /// For whoever sent this request.
    pub const fn new(app: &'a App, request: &'a Request) -> Self {
        Self(Counter { app, request })
    }
}

impl Shelf for OpenCounter<'_> {
    async fn search(&self, filter: Filter) -> Result<Page, ShopError> {
        self.0.search(filter).await
    }

    async fn listing(&self, id: &ListingId) -> Result<String, ShopError> {
        self.0.listing(id).await
    }
}

/// A listing at the open counter, with what is the same for asking and paying.
struct Sale<'a> {
    counter: &'a Counter<'a>,
    priced: Priced,
    methods: std::rc::Rc<Methods>,
    database: D1,
    contents: ContentStore,
}

impl OpenShop for OpenCounter<'_> {
    async fn unlock(&self, id: &ListingId, shown: Presentation) -> Result<Unlocked, ShopError> {
        let app = self.0.app;
        let database = app.database().map_err(unavailable)?;
        let priced = priced(app, &database, id).await?;
        let (methods, contents) = (app.methods().map_err(unavailable)?, app.contents().map_err(unavailable)?);
        let sale = Sale { counter: &self.0, priced, methods, database, contents };
        if shown.payment.is_some() {
            app.limit_client(Limiter::Payment, self.0.request).await.map_err(unavailable)?;
        } else if shown.proof.is_some() {
            app.limit_client(Limiter::Proof, self.0.request).await.map_err(unavailable)?;
        }
        let proven = match shown.proof.map(|proof| Proof::from_header(&proof)).transpose() {
            Ok(None) => None,
            Ok(Some(proof)) => {
                let digest = proof.unlock_digest(&sale.priced.terms.id);
                if let Err(error) = proof.check(&WebCrypto, &digest, app.now_ms()).await {
                    return sale.ask(&error.to_string(), None, None);
                }
                Some(proof.address)
            }
            Err(error) => return sale.ask(&error.to_string(), None, None),
        };
        match (shown.payment, proven) {
            (Some(payment), proven) => sale.pay(&payment, proven).await,
            (None, Some(buyer)) => sale.again(&buyer).await,
            (None, None) => sale.ask("payment required: choose one of accepts", None, None),
        }
    }
}

impl Sale<'_> {
    /// The terms, and why they are shown. `pending` is the entry under which a payment is on its way: the only one to show
    /// meanwhile.
    fn ask(
        &self,
        why: &str,
        pending: Option<PaymentRequirements>,
        settlement: Option<&SettlementResponse>,
    ) -> Result<Unlocked, ShopError> {
        if self.priced.terms.hidden {
            return Err(ShopError::NoListing);
        }
        let accepts = match pending {
            Some(entry) => vec![entry],
            None => {
                let nonce = edge::random().map_err(unavailable)?;
                let offered = checkout::quote(&self.methods.ways(), &self.priced.terms, self.priced.clock, nonce);
                let offered = offered.map_err(|error| ShopError::Unavailable(format!("quote: {error}")))?;
                offered.into_iter().map(|offered| offered.requirements).collect()
            }
        };
        let url = Url::parse(open::RESOURCE_URL).map_err(|error| ShopError::Unavailable(error.to_string()))?;
        let required = json!(paywall::payment_required(&self.priced.terms, accepts, &url, why));
        Ok(Unlocked::PaymentRequired { required, settlement: settlement.map(|settlement| json!(settlement)) })
    }

    /// The content again, for an address that paid for it and signs for it now.
    async fn again(&self, buyer: &Address) -> Result<Unlocked, ShopError> {
        let app = self.counter.app;
        let (chain, timer) = (app.chain().map_err(unavailable)?, app.timer());
        let checkout = Checkout {
            database: &self.database,
            chain: &chain,
            signatures: &WebCrypto,
            sleep: &timer,
            contents: &self.contents,
            ways: &[],
            now: app.now_ms(),
            clock: self.priced.clock,
            schedule: &[],
            confirmations: self.methods.confirmations,
            hung_up: &|| false,
        };
        let found = checkout.redeliver(&self.priced.terms, &[buyer.to_string()]).await.map_err(unavailable)?;
        match found {
            None => self.ask("this address has not bought this listing: pay for it", None, None),
            Some(found) => Ok(Unlocked::Delivered {
                content: found.content,
                listed_hash: self.priced.terms.content_hash,
                settlement: None,
                purchase: Some(found.purchase),
            }),
        }
    }

    async fn pay(&self, payment: &str, proven: Option<Address>) -> Result<Unlocked, ShopError> {
        let presented = match Presented::read(payment) {
            Ok(presented) => presented,
            Err(refusal) => return self.ask(&refusal.to_string(), None, None),
        };
        let app = self.counter.app;
        let (chain, timer) = (app.chain().map_err(unavailable)?, app.timer());
        // What the operator hid is sold to nobody new.
        let ways: Vec<Way<'_>> = if self.priced.terms.hidden { vec![] } else { self.methods.ways() };
        let signal = self.counter.request.inner().signal();
        let checkout = Checkout {
            database: &self.database,
            chain: &chain,
            signatures: &WebCrypto,
            sleep: &timer,
            contents: &self.contents,
            ways: &ways,
            now: app.now_ms(),
            clock: self.priced.clock,
            schedule: &SCHEDULE,
            confirmations: self.methods.confirmations,
            hung_up: &|| signal.aborted(),
        };
        let error = match checkout.pay(&self.priced.terms, &presented, proven).await {
            Ok(paid) => {
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
                let pending = pends.then(|| serde_json::from_value(presented.accepted()).ok()).flatten();
                self.ask(refusal.code(), pending, Some(&settlement))
            }
            PayError::Unavailable(error) => Err(unavailable(error)),
            PayError::IdentifierTaken => Err(ShopError::NotDone(words)),
            PayError::Refused(_) | PayError::Refunded | PayError::Public => self.ask(&words, None, None),
        }
    }
}
