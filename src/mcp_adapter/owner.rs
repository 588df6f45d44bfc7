//! Implements the tools for an account's agent, which spends from the service wallet within the account's limits.

use agents::{
    mcp::shop::{OrderOutcome, Ordered as Answer, Shelf, Shop, ShopError, WalletState},
    oauth::grant::Caller,
};
use api_types::{BuyerAction, Purchase, PurchaseRequest, RequestStatus, SubmittedAction, Withdrawal};
use cardano::{Lovelace, TxHash, chain::Chain};
use market::{
    DeliveryMode, ListingId,
    account::{self, Account, DEMO_OWNER},
    catalogue::ListingTerms,
    checkout::{BuyError, NotRead, OwnPurchase},
    limits::{self as spending, SpendRefused},
    purchase::{self, Cursor},
    purchase_request::{Asked, RequestId},
    withdraw::{self, WithdrawError},
};
use sql::{Database, One};

use super::told;
use crate::{
    app::App,
    checkout::{self, Ordered},
    limits::{self, Counted},
    routes::purchases,
};

/// The tools for an account's agent.
pub struct OwnerShop<'a> {
    pub app: &'a App,
    pub caller: &'a Caller,
}

impl OwnerShop<'_> {
    /// Asks the owner of the account to approve a purchase.
    async fn ask(&self, terms: &ListingTerms, mode: DeliveryMode) -> Result<PurchaseRequest, ShopError> {
        let (app, Caller { grant, account, .. }) = (self.app, self.caller);
        let asked = Asked { owner: &account.owner, grant, listing: &terms.id, mode, price: terms.price_lovelace };
        let id = RequestId::new(edge::random().map_err(told)?);
        let request = asked.ask(&app.database(), id, app.now_ms).await.map_err(told)?;
        let request = request.ok_or(ShopError::TooManyWaiting)?;
        match request.status {
            RequestStatus::Declined => Err(ShopError::Declined),
            RequestStatus::Waiting | RequestStatus::Approved | RequestStatus::Used => Ok(request),
        }
    }

    async fn limit(&self, limiter: Counted) -> Result<(), ShopError> {
        self.app.limit(limiter, &limits::of_account(&self.caller.account)).await.map_err(told)
    }
}

impl Shop for OwnerShop<'_> {
    fn shelf(&self) -> &impl Shelf {
        self.app
    }

    fn account(&self) -> &Account {
        &self.caller.account
    }

    async fn owned(&self, id: &ListingId) -> Result<Option<TxHash>, ShopError> {
        let owned = purchase::owned_by(id, &self.caller.account.keys());
        self.app.database().fetch(owned).await.map_err(told)
    }

    async fn buy(
        &self,
        id: &ListingId,
        mode: DeliveryMode,
        expected_price: Option<Lovelace>,
    ) -> Result<Answer, ShopError> {
        self.limit(Counted::BUY).await?;
        let (listing, outcome) =
            match checkout::order(self.app, self.account(), id.as_str(), mode, expected_price).await.map_err(told)? {
                Ordered::UnknownListing => return Err(ShopError::NoListing),
                Ordered::Bought(terms, bought) => (terms, OrderOutcome::Bought(bought)),
                Ordered::NotBought(
                    terms,
                    BuyError::Pending(tx) | BuyError::NoResult(tx) | BuyError::Unconfirmed(tx),
                ) => (terms, OrderOutcome::Pending(tx)),
                Ordered::NotBought(terms, BuyError::SpendRefused(SpendRefused::Unapproved)) => {
                    let request = self.ask(&terms, mode).await?;
                    (terms, OrderOutcome::Asked(request))
                }
                Ordered::NotBought(terms, error) => return Err(not_bought(error, mode, terms.price_lovelace)),
            };
        Ok(Answer { listing, outcome })
    }

    async fn purchases(&self, after: Option<Cursor>) -> Result<(Vec<Purchase>, Option<Cursor>), ShopError> {
        self.limit(Counted::ACCOUNT).await?;
        purchase::of_buyers(&self.app.database(), &self.caller.account.keys(), after).await.map_err(told)
    }

    async fn status(&self, tx: &TxHash, with_content: bool) -> Result<OwnPurchase, ShopError> {
        self.limit(Counted::ACCOUNT).await?;
        let read = checkout::own_purchase(self.app, &self.caller.account, tx, with_content).await.map_err(told)?;
        read.map_err(|error| match error {
            NotRead::Unknown => ShopError::NoPurchase,
            NotRead::Failed => ShopError::PaymentFailed,
            NotRead::Refunded => ShopError::Refunded,
            NotRead::Unavailable(error) => told(error),
        })
    }

    async fn wallet(&self) -> Result<WalletState, ShopError> {
        self.limit(Counted::ACCOUNT).await?;
        let (app, account) = (self.app, &self.caller.account);
        let database = app.database();
        let address = account.wallet_address.to_string();
        let reads = (spending::spent_today(&account.owner, app.now_ms), account::pending(&address));
        let (One(spent_today), One(pending)) = database.batch(reads).await.map_err(told)?;
        let balance = app.chain().map_err(told)?.balance_of(&address).await.map_err(told)?;
        Ok(WalletState { balance: balance.saturating_sub(pending), spent_today })
    }

    async fn withdraw(&self) -> Result<Withdrawal, ShopError> {
        self.limit(Counted::WITHDRAW).await?;
        let (app, account) = (self.app, &self.caller.account);
        if account.owner == DEMO_OWNER {
            return Err(ShopError::DemoWallet);
        }
        let (database, chain) = (app.database(), app.chain().map_err(told)?);
        let key = app.account_key(account).map_err(told)?;
        let sent = withdraw::withdraw(&database, &chain, account, &key, app.now_ms).await;
        let pending = match &sent {
            Err(WithdrawError::Nothing { .. } | WithdrawError::Busy) => {
                let pending = database.fetch(account::pending(&account.wallet_address.to_string())).await;
                pending.map_err(told)?.0 > Lovelace::ZERO
            }
            _ => false,
        };
        sent.map_err(|error| match error {
            WithdrawError::NoOwner => ShopError::DemoWallet,
            WithdrawError::Nothing { balance } => ShopError::NothingToWithdraw { balance, pending },
            WithdrawError::Busy if pending => {
                ShopError::NotDone("a purchase is on its way: withdraw once it is in a block, in about a minute".into())
            }
            WithdrawError::Ledger(reason) => refused_by_the_ledger(&reason),
            WithdrawError::Port(error) => told(error),
            error => ShopError::NotDone(error.to_string()),
        })
    }

    async fn act(&self, purchase: &TxHash, action: BuyerAction) -> Result<SubmittedAction, ShopError> {
        self.limit(Counted::ACT).await?;
        let tx = purchases::perform(self.app, &self.caller.account, purchase, action).await.map_err(told)?;
        Ok(SubmittedAction { purchase: *purchase, action, tx })
    }
}

/// Creates the error for a transaction that the ledger rejected. The node's reason is only logged, because models
/// cannot act on it.
fn refused_by_the_ledger(reason: &str) -> ShopError {
    edge::log::fault(&edge::answer::Fault::Inconsistent(format!("the ledger refused a transaction: {reason}")));
    let text = "the network refused the transaction, nothing was sent: call my_wallet, then try the same call again";
    ShopError::NotDone(text.into())
}

fn not_bought(error: BuyError, mode: DeliveryMode, price: Lovelace) -> ShopError {
    match error {
        BuyError::NotOffered(_) => ShopError::ModeNotOffered(mode),
        BuyError::SpendRefused(SpendRefused::PerPayment { limit }) => ShopError::OverPurchaseLimit { price, limit },
        BuyError::SpendRefused(SpendRefused::Paused) => ShopError::Paused,
        BuyError::SpendRefused(SpendRefused::ProtectedOnly) => ShopError::ProtectedOnly,
        BuyError::SpendRefused(SpendRefused::Reputation { least }) => ShopError::Reputation { least },
        BuyError::SpendRefused(SpendRefused::Daily { limit, spent }) => {
            ShopError::OverDailyBudget { price, left: limit.saturating_sub(spent) }
        }
        BuyError::Insufficient { missing, wallet } => ShopError::TooLittle { missing, address: wallet.to_string() },
        BuyError::Unavailable(error) => told(error),
        BuyError::Ledger(reason) => refused_by_the_ledger(&reason),
        error => ShopError::NotDone(error.to_string()),
    }
}
