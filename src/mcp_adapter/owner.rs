//! For the agent of an account: it spends from the service wallet, within the account's limits.

use agents::{
    mcp::shop::{BoughtListing, Ordered as Answer, Shelf, Shop, ShopError, WalletState, WithdrawalSent},
    oauth::grant::Caller,
};
use api_types::{Bought, RequestStatus};
use cardano::{Lovelace, TxHash, chain::Chain};
use edge::serve::Request;
use market::{
    DeliveryMode, ListingId,
    account::{self, DEMO_OWNER},
    catalogue::{ListingTerms, Page},
    checkout::{BuyError, NotRead, OwnPurchase},
    limits::{self as spending, SpendRefused},
    purchase::{self, Cursor},
    purchase_request::{Asked, RequestId},
    withdraw::{self, WithdrawError},
};
use sql::{Database, exactly};

use super::{Counter, told};
use crate::{
    app::App,
    checkout::{self, Ordered},
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

    /// Asks the owner to approve a purchase.
    async fn ask(&self, terms: &ListingTerms, mode: DeliveryMode) -> Result<Answer, ShopError> {
        let (app, Caller { grant, account, .. }) = (self.app(), self.caller);
        let asked = Asked { owner: &account.owner, grant, listing: &terms.id, mode, price: terms.price_lovelace };
        let id = RequestId::new(edge::random().map_err(told)?);
        let request = asked.ask(&app.database(), id, app.now_ms()).await.map_err(told)?;
        let request = request.ok_or(ShopError::TooManyWaiting)?;
        match request.status {
            RequestStatus::Declined => Err(ShopError::Declined),
            RequestStatus::Waiting | RequestStatus::Approved | RequestStatus::Used => {
                Ok(Answer::Asked { request, listed_hash: terms.content_hash })
            }
        }
    }

    async fn limit(&self, limiter: Counted) -> Result<(), ShopError> {
        self.app().limit(limiter, &limits::of_account(&self.caller.account)).await.map_err(told)
    }
}

impl Shop for OwnerShop<'_> {
    fn shelf(&self) -> &impl Shelf {
        &self.counter
    }

    fn is_demo(&self) -> bool {
        self.caller.account.owner == DEMO_OWNER
    }

    async fn owned(&self, id: &ListingId) -> Result<Option<TxHash>, ShopError> {
        let owned = purchase::owned_by(id, &self.caller.account.keys());
        self.app().database().run(owned).await.map_err(told)?.first_json().map_err(told)
    }

    async fn buy(&self, id: &ListingId, mode: DeliveryMode) -> Result<Answer, ShopError> {
        let Counter { app, request } = self.counter;
        match checkout::order(app, request, &self.caller.account, id.as_str(), mode).await.map_err(told)? {
            Ordered::UnknownListing => Err(ShopError::NoListing),
            Ordered::Bought(terms, bought) => Ok(Answer::Bought(delivered(&terms, *bought))),
            // It is unconfirmed, or its result is.
            Ordered::NotBought(terms, BuyError::Pending(tx) | BuyError::NoResult(tx)) => {
                Ok(Answer::Bought(BoughtListing {
                    tx,
                    paid: terms.price_lovelace,
                    already_owned: false,
                    listed_hash: terms.content_hash,
                    content: None,
                    deadlines: None,
                }))
            }
            Ordered::NotBought(terms, BuyError::SpendRefused(SpendRefused::Unapproved)) => self.ask(&terms, mode).await,
            Ordered::NotBought(terms, error) => Err(not_bought(error, mode, terms.price_lovelace)),
        }
    }

    async fn purchases(&self, after: Option<Cursor>) -> Result<Page, ShopError> {
        self.limit(Counted::Account).await?;
        purchase::of_buyers(&self.app().database(), &self.caller.account.keys(), after).await.map_err(told)
    }

    async fn status(&self, tx: &TxHash, with_content: bool) -> Result<OwnPurchase, ShopError> {
        self.limit(Counted::Account).await?;
        let Counter { app, request } = self.counter;
        let read = checkout::own_purchase(app, request, &self.caller.account, tx, with_content).await.map_err(told)?;
        read.map_err(|error| match error {
            NotRead::Unknown => ShopError::NoPurchase,
            NotRead::Failed => ShopError::PaymentFailed,
            NotRead::Refunded => ShopError::Refunded,
            NotRead::Unavailable(error) => told(error),
        })
    }

    async fn wallet(&self) -> Result<WalletState, ShopError> {
        self.limit(Counted::Account).await?;
        let (app, account) = (self.app(), &self.caller.account);
        let database = app.database();
        let address = account.wallet_address.to_string();
        let reads = vec![spending::spent_today(&account.owner, app.now_ms()), account::pending(&address)];
        let [spent, pending] = exactly(database.batch(reads).await.map_err(told)?).map_err(told)?;
        let spent: Option<Lovelace> = spent.first_json().map_err(told)?;
        let pending: Option<Lovelace> = pending.first_json().map_err(told)?;
        let balance = self.counter.chain()?.balance_of(&address).await.map_err(told)?;
        Ok(WalletState {
            owner: account.owner.clone(),
            address,
            balance: balance.saturating_sub(pending.unwrap_or_default()),
            max_per_payment: account.max_per_payment,
            daily_budget: account.daily_budget,
            spent_today: spent.unwrap_or_default(),
            ask_above: account.ask_above,
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
        let key = app.account_key(account).map_err(told)?;
        let sent = withdraw::withdraw(&database, &chain, account, &key, app.now_ms()).await;
        let pending = match &sent {
            Err(WithdrawError::Nothing { .. } | WithdrawError::Busy) => {
                let pending = database.run(account::pending(&account.wallet_address.to_string())).await;
                let pending: Option<Lovelace> = pending.map_err(told)?.first_json().map_err(told)?;
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
            WithdrawError::Port(error) => told(error),
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

fn delivered(terms: &ListingTerms, bought: Bought) -> BoughtListing {
    BoughtListing {
        tx: bought.purchase.id,
        paid: terms.price_lovelace,
        already_owned: bought.already_owned,
        listed_hash: terms.content_hash,
        content: Some(bought.content),
        deadlines: bought.purchase.escrow.and_then(|escrow| escrow.deadlines),
    }
}

fn not_bought(error: BuyError, mode: DeliveryMode, price: Lovelace) -> ShopError {
    match error {
        BuyError::NotOffered(_) => ShopError::ModeNotOffered(mode),
        BuyError::SpendRefused(SpendRefused::PerPayment { limit }) => ShopError::OverPurchaseLimit { price, limit },
        BuyError::SpendRefused(SpendRefused::Daily { limit, spent }) => {
            ShopError::OverDailyBudget { price, left: limit.saturating_sub(spent) }
        }
        BuyError::Insufficient { missing, wallet } => ShopError::TooLittle { missing, address: wallet.to_string() },
        BuyError::Unavailable(error) => told(error),
        BuyError::Ledger(reason) => refused_by_the_ledger(&reason),
        error => ShopError::NotDone(error.to_string()),
    }
}
