//! For the agent of an account: it spends from the service wallet, within the account's limits.

use agents::{
    mcp::shop::{BoughtListing, PurchaseState, Shelf, Shop, ShopError, WalletState, WithdrawalSent},
    oauth::grant::Caller,
};
use api_types::Purchase;
use cardano::{ContentHash, Lovelace, TxHash, chain::Chain};
use edge::http;
use edge::serve::Request;
use market::{
    DeliveryMode, ListingId,
    account::{self, DEMO_OWNER},
    catalogue::{self, Filter, Page},
    chain_state,
    checkout::{self, BuyError, Order, Unavailable},
    contents::Contents,
    limits::{self as spending, SpendRefused},
    payment,
    purchase::{self, Owned, Status},
    withdraw::{self, WithdrawError},
};
use serde::Deserialize;
use serde_json::{Map, Value};
use sql::{Database, exactly};

use super::{Counter, priced, unavailable};
use crate::{
    app::App,
    limits::{self, Counted},
};

/// The shop for the agent of an account.
pub struct OwnerShop<'a> {
    counter: Counter<'a>,
    caller: &'a Caller,
}

impl<'a> OwnerShop<'a> {
    /// For this caller.
    pub const fn new(app: &'a App, request: &'a Request, caller: &'a Caller) -> Self {
        Self { counter: Counter { app, request }, caller }
    }

    fn app(&self) -> &App {
        self.counter.app
    }

    async fn limit(&self, limiter: Counted) -> Result<(), ShopError> {
        self.app().limit(limiter, &limits::of_account(&self.caller.account)).await.map_err(unavailable)
    }

    async fn content_hash(&self, listing: &str) -> Result<ContentHash, ShopError> {
        let missing = || ShopError::Unavailable(format!("{listing} has no content"));
        let hash = self.app().database().run(catalogue::content_hash(listing)).await.map_err(unavailable)?;
        hash.first_json().map_err(unavailable)?.ok_or_else(missing)
    }
}

impl Shelf for OwnerShop<'_> {
    fn origin(&self) -> String {
        self.counter.origin()
    }

    fn icon(&self) -> String {
        pages::asset::ICON.path.clone()
    }

    async fn search(&self, filter: Filter) -> Result<Page, ShopError> {
        self.counter.search(filter).await
    }

    async fn listing(&self, id: &ListingId) -> Result<String, ShopError> {
        self.counter.listing(id).await
    }
}

impl Shop for OwnerShop<'_> {
    fn is_demo(&self) -> bool {
        self.caller.account.owner == DEMO_OWNER
    }

    async fn owned(&self, id: &ListingId) -> Result<Option<TxHash>, ShopError> {
        let owned = purchase::owned_by(id.as_str(), &self.caller.account.keys());
        self.app().database().run(owned).await.map_err(unavailable)?.first_json().map_err(unavailable)
    }

    async fn buy(&self, id: &ListingId, mode: DeliveryMode) -> Result<BoughtListing, ShopError> {
        self.limit(Counted::Buy).await?;
        let (app, account) = (self.app(), &self.caller.account);
        let _held = http::hold(self.counter.request, limits::PURCHASE_BYTES).map_err(unavailable)?;
        let priced = priced(app, self.counter.request, id).await?;
        let terms = &priced.terms;
        let ports = self.counter.ports()?;
        let (options, signal) = (ports.options(terms), self.counter.request.inner().signal());
        let hung_up = || signal.aborted();
        let checkout = ports.checkout(&options, &priced, &hung_up).map_err(unavailable)?;
        let key = app.account_key(account).map_err(unavailable)?;
        let nonce = edge::random().map_err(unavailable)?;
        let order = Order { account, key: &key, terms, mode, nonce };
        let bought = match checkout.buy(&order).await {
            Ok(bought) => bought,
            // It is on its way, or its result is.
            Err(BuyError::Pending(tx) | BuyError::Unavailable(Unavailable::NoResult(tx))) => {
                return Ok(BoughtListing {
                    tx,
                    paid: terms.price_lovelace,
                    already_owned: false,
                    listed_hash: terms.content_hash,
                    content: None,
                    deadlines: None,
                });
            }
            Err(BuyError::NotOffered(_)) if terms.hidden => return Err(ShopError::NoListing),
            Err(error) => return Err(not_bought(error, mode, terms.price_lovelace)),
        };
        let made: Purchase = serde_json::from_str(&bought.purchase)
            .map_err(|error| ShopError::Unavailable(format!("a purchase cannot be read: {error}")))?;
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
        self.limit(Counted::Account).await?;
        let after = cursor.and_then(|cursor| {
            let (at, id) = cursor.split_once('.')?;
            Some((at.parse().ok()?, id.parse().ok()?))
        });
        if cursor.is_some() && after.is_none() {
            return Err(ShopError::NoPurchase);
        }
        let database = self.app().database();
        let page = purchase::of_buyers(&database, &self.caller.account.keys(), after).await.map_err(unavailable)?;
        titled(&database, page).await
    }

    async fn status(&self, tx: &TxHash, with_content: bool) -> Result<PurchaseState, ShopError> {
        self.limit(Counted::Account).await?;
        let database = self.app().database();
        let buyers = self.caller.account.keys();
        let reads = vec![
            purchase::owned_purchase(tx, &buyers),
            purchase::read(tx),
            payment::record_of(tx, &buyers),
            chain_state::read_time(),
        ];
        let answers = database.batch(reads).await.map_err(unavailable)?;
        let [owned, shown, record, time] = exactly(answers).map_err(unavailable)?;
        let Some(owned) = owned.first_json::<Owned>().map_err(unavailable)? else {
            let record = payment::all(&record).map_err(unavailable)?.into_iter().next();
            let record = record.ok_or(ShopError::NoPurchase)?;
            if !record.entry.state.is_open() {
                return Err(ShopError::PaymentFailed("the transaction took no effect".into()));
            }
            let listed_hash = self.content_hash(&record.listing_id).await?;
            return Ok(PurchaseState { purchase: None, listed_hash, content: None });
        };
        if with_content && owned.status == Status::Refunded {
            return Err(ShopError::Refunded);
        }
        if with_content {
            let (chain, methods) = (self.counter.chain()?, self.app().methods().map_err(unavailable)?);
            let lead = self.app().settings().map_err(unavailable)?.lead;
            let clock = chain_state::clock(&time, self.app().now_ms(), lead).map_err(unavailable)?;
            let given = checkout::ensure_redeliverable(&database, &chain, &owned, methods.confirmations, clock).await;
            given.map_err(unavailable)?;
        }
        let listed_hash = self.content_hash(&owned.listing_id).await?;
        let content = match with_content {
            true => {
                let contents = self.app().contents(self.counter.request).map_err(unavailable)?;
                contents.bought(&listed_hash, tx).await.map_err(unavailable)?
            }
            false => None,
        };
        Ok(PurchaseState { purchase: shown.first().map(str::to_owned), listed_hash, content })
    }

    async fn wallet(&self) -> Result<WalletState, ShopError> {
        self.limit(Counted::Account).await?;
        let (app, account) = (self.app(), &self.caller.account);
        let database = app.database();
        let address = account.wallet_address.to_string();
        let reads = vec![spending::spent_today(&account.owner, app.now_ms()), account::pending(&address)];
        let [spent, pending] = exactly(database.batch(reads).await.map_err(unavailable)?).map_err(unavailable)?;
        let spent: Option<Lovelace> = spent.first_json().map_err(unavailable)?;
        let pending: Option<Lovelace> = pending.first_json().map_err(unavailable)?;
        let balance = self.counter.chain()?.balance_of(&address).await.map_err(unavailable)?;
        Ok(WalletState {
            owner: account.owner.clone(),
            address,
            balance: balance.saturating_sub(pending.unwrap_or_default()),
            max_per_payment: account.max_per_payment,
            daily_budget: account.daily_budget,
            spent_today: spent.unwrap_or_default(),
            is_demo: account.owner == DEMO_OWNER,
        })
    }

    async fn withdraw(&self) -> Result<WithdrawalSent, ShopError> {
        self.limit(Counted::Withdraw).await?;
        let (app, account) = (self.app(), &self.caller.account);
        if account.owner == DEMO_OWNER {
            return Err(ShopError::DemoWallet);
        }
        let (database, chain) = (app.database(), self.counter.chain()?);
        let key = app.account_key(account).map_err(unavailable)?;
        let sent = withdraw::withdraw(&database, &chain, account, &key, app.now_ms()).await;
        let pending = match &sent {
            Err(WithdrawError::Nothing { .. } | WithdrawError::Busy) => {
                let pending = database.run(account::pending(&account.wallet_address.to_string())).await;
                let pending: Option<Lovelace> = pending.map_err(unavailable)?.first_json().map_err(unavailable)?;
                pending.unwrap_or_default() > Lovelace::ZERO
            }
            _ => false,
        };
        let sent = sent.map_err(|error| match error {
            WithdrawError::NoOwner => ShopError::DemoWallet,
            WithdrawError::Nothing { balance } => ShopError::NothingToWithdraw { balance, pending },
            WithdrawError::Busy if pending => {
                ShopError::NotDone("a purchase is on its way: withdraw once it is in a block, in about a minute".into())
            }
            WithdrawError::Ledger(reason) => refused_by_the_ledger(&reason),
            WithdrawError::Database(error) => unavailable(error),
            WithdrawError::Chain(error) => unavailable(error),
            error => ShopError::NotDone(error.to_string()),
        })?;
        Ok(WithdrawalSent { tx: sent.tx, amount: sent.lovelace, to: account.owner.clone() })
    }
}

/// What a node says is for our log: no model can act on it.
fn refused_by_the_ledger(reason: &str) -> ShopError {
    edge::log::fault(&edge::answer::Fault::Inconsistent(format!("the ledger refused a transaction: {reason}")));
    let text = "the network refused the transaction, nothing was sent: call my_wallet, then try the same call again";
    ShopError::NotDone(text.into())
}

/// A listing's title and price.
#[derive(Deserialize)]
struct Titled {
    id: String,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// A page of purchases, each with the title and price of what it bought.
async fn titled(database: &impl Database, page: Page) -> Result<Page, ShopError> {
    let mut purchases: Vec<Value> = serde_json::from_str(&page.json).map_err(|error| broken(&error))?;
    let id = |purchase: &Value| purchase.get("listingId").and_then(Value::as_str).map(str::to_owned);
    let ids: Vec<String> = purchases.iter().filter_map(id).collect();
    let rows = database.run(catalogue::titles_and_prices(&ids)).await.map_err(unavailable)?.rows;
    let titles: Result<Vec<Titled>, _> = rows.iter().map(|row| serde_json::from_str(row)).collect();
    let titles = titles.map_err(|error| broken(&error))?;
    for purchase in &mut purchases {
        let bought = id(purchase);
        let title = titles.iter().find(|title| Some(&title.id) == bought.as_ref());
        if let (Some(fields), Some(title)) = (purchase.as_object_mut(), title) {
            fields.extend(title.rest.clone());
        }
    }
    Ok(Page { json: Value::from(purchases).to_string(), ..page })
}

fn broken(error: &serde_json::Error) -> ShopError {
    ShopError::Unavailable(format!("a purchase cannot be read: {error}"))
}

fn not_bought(error: BuyError, mode: DeliveryMode, price: Lovelace) -> ShopError {
    match error {
        BuyError::NotOffered(_) => ShopError::ModeNotOffered(mode),
        BuyError::SpendRefused(SpendRefused::PerPayment { limit }) => ShopError::OverPurchaseLimit { price, limit },
        BuyError::SpendRefused(SpendRefused::Daily { limit, spent }) => {
            ShopError::OverDailyBudget { price, left: limit.saturating_sub(spent) }
        }
        BuyError::Insufficient { missing, wallet } => ShopError::TooLittle { missing, address: wallet.to_string() },
        BuyError::Unavailable(error) => unavailable(error),
        BuyError::Ledger(reason) => refused_by_the_ledger(&reason),
        error => ShopError::NotDone(error.to_string()),
    }
}
