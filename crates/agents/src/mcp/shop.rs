//! The traits through which the tools use the shop. The worker implements them with the checkout.

use std::rc::Rc;

use api_types::{Bought, BuyerAction, Purchase, PurchaseRequest, SubmittedAction, Withdrawal};
use cardano::{ContentHash, Lovelace, TxHash};
use market::{
    account::Account,
    catalogue::{Filter, ListingTerms, Page},
    checkout::{OwnPurchase, Presentation},
    listing::{DeliveryMode, ListingId},
    purchase::Cursor,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Parses JSON that the shop returned.
pub(super) fn parsed<T: DeserializeOwned>(json: &str) -> Result<T, ShopError> {
    serde_json::from_str(json).map_err(|error| ShopError::Unavailable(error.to_string()))
}

/// The public catalogue.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait Shelf {
    /// Returns the service's origin, without a trailing slash.
    fn origin(&self) -> String;
    /// Returns a page of listings, ranked if the filter contains words.
    async fn search(&self, filter: Filter) -> Result<Page, ShopError>;
    /// Returns a listing's public JSON.
    async fn listing(&self, id: &ListingId) -> Result<String, ShopError>;
}

/// Operations of the shop for an agent that pays from an account's service wallet. The implementation knows the
/// account.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait Shop {
    /// Returns the catalogue.
    fn shelf(&self) -> &impl Shelf;
    /// Returns the account whose service wallet pays.
    fn account(&self) -> &Account;
    /// Returns the payment transaction of the account's purchase of a listing, or `None` if the account does not own
    /// the listing.
    async fn owned(&self, id: &ListingId) -> Result<Option<TxHash>, ShopError>;
    /// Buys a listing with the balance of the service wallet. If the account already owns the listing, returns the
    /// existing purchase; if the owner's approval is needed, asks for it. `expected_price` is the price that the client
    /// expects, if it sent one.
    ///
    /// A retry with the same listing and mode never pays twice, and the purchase continues if the client disconnects.
    /// Returns within 45 s, as pending if no block includes the payment by then.
    async fn buy(
        &self,
        id: &ListingId,
        mode: DeliveryMode,
        expected_price: Option<Lovelace>,
    ) -> Result<Ordered, ShopError>;
    /// Returns a page of the account's purchases, newest first, and the cursor of the next page if there is one.
    /// `after` is the previous page's cursor.
    async fn purchases(&self, after: Option<Cursor>) -> Result<(Vec<Purchase>, Option<Cursor>), ShopError>;
    /// Returns one purchase, with its content if the account owns it and `with_content` is set.
    async fn status(&self, tx: &TxHash, with_content: bool) -> Result<OwnPurchase, ShopError>;
    /// Returns the state of the service wallet.
    async fn wallet(&self) -> Result<WalletState, ShopError>;
    /// Sends the balance of the service wallet to the owner. A retry within a minute returns the same answer.
    async fn withdraw(&self) -> Result<Withdrawal, ShopError>;
    /// Performs a buyer's action on a purchase that the service wallet paid for. Idempotent: a retry never submits a
    /// second transaction.
    async fn act(&self, purchase: &TxHash, action: BuyerAction) -> Result<SubmittedAction, ShopError>;
}

/// Operations of the shop for an agent that pays from its own wallet.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait OpenShop: Shelf {
    /// Sells a listing over x402, or delivers an earlier purchase again. `shown` is the payment or proof that the
    /// client sent.
    async fn unlock(&self, id: &ListingId, shown: Presentation) -> Result<Unlocked, ShopError>;
}

/// The outcome of an order for a listing.
#[derive(Clone, Debug, PartialEq)]
pub struct Ordered {
    pub listing: Rc<ListingTerms>,
    /// Payment status of the order.
    pub outcome: OrderOutcome,
}

/// Payment status of an order.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderOutcome {
    /// The listing is paid for, by this order or by an earlier one.
    Bought(Box<Bought>),
    /// The payment was submitted in this transaction. No block includes the payment yet, or none includes the escrow's
    /// result.
    Pending(TxHash),
    /// Nothing is paid yet: the owner has been asked for approval.
    Asked(PurchaseRequest),
}

/// Current state of a service wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalletState {
    /// Balance on the chain, minus the amounts reserved for pending purchases.
    pub balance: Lovelace,
    /// Amount of the daily budget that is spent or reserved today.
    pub spent_today: Lovelace,
}

/// The outcome of `unlock_listing`.
#[derive(Clone, Debug, PartialEq)]
pub enum Unlocked {
    /// Nothing is delivered, because the payment is missing, failed, or is still pending.
    PaymentRequired {
        /// x402's PaymentRequired. Its `error` says why a payment was rejected or not settled.
        required: Value,
        /// x402's SettlementResponse of a failed or pending settlement; `None` if no payment was sent.
        settlement: Option<Value>,
    },
    /// The content is paid for and delivered.
    Delivered {
        content: String,
        /// SHA-256 of the content, as promised by the listing.
        listed_hash: ContentHash,
        /// x402's SettlementResponse, if this call paid; otherwise `None`.
        settlement: Option<Value>,
        /// Payment transaction of an earlier purchase; `None` if this call paid.
        purchase: Option<TxHash>,
    },
}

/// Reason why the shop did not do what a tool requested. The messages are for the model and tell it what to do next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShopError {
    /// The listing does not exist.
    #[error("There is no listing with this id. Call search_listings and use an id from its results.")]
    NoListing,
    /// The purchase does not exist or belongs to another account.
    #[error("This account has no purchase with this transaction. Call my_purchases for the ones it has.")]
    NoPurchase,
    /// The listing is not offered in this mode.
    #[error("The seller does not offer mode {}. Call get_listing and use one of its modes.", .0.as_str())]
    ModeNotOffered(DeliveryMode),
    /// The price exceeds the account's limit per purchase.
    #[error(
        "Not bought: {} is more than the {} that the owner allows per purchase. Choose something cheaper, or ask the owner \
         to raise the limit.", .price.display_tada(), .limit.display_tada()
    )]
    OverPurchaseLimit { price: Lovelace, limit: Lovelace },
    /// The price exceeds the amount that is left of today's budget.
    #[error(
        "Not bought: {} is more than the {} left of today's budget, which begins anew at midnight UTC. Wait, choose \
         something cheaper, or ask the owner to raise the budget.", .price.display_tada(), .left.display_tada()
    )]
    OverDailyBudget { price: Lovelace, left: Lovelace },
    /// The owner has paused all agents of the account.
    #[error(
        "Nothing was done: the owner has paused all agents, so none of them can move money. Ask the owner to end the pause."
    )]
    Paused,
    /// The owner lets agents buy with protection only.
    #[error(
        "Not bought: the owner's rule is that agents buy with protection only. Buy in mode protected, choose a listing \
         that has it, or ask the owner to change the rule."
    )]
    ProtectedOnly,
    /// The owner lets agents buy only from sellers with a higher reputation.
    #[error(
        "Not bought: the owner's rule is that agents buy only from sellers with a reputation of at least {least}. Call \
         search_listings with minReputation {least}, or ask the owner to change the rule."
    )]
    Reputation {
        /// Minimum reputation of the seller.
        least: u8,
    },
    /// The owner declined the purchase.
    #[error(
        "Not bought: the owner declined this purchase. Do not try it again: choose something else, or ask the owner."
    )]
    Declined,
    /// Too many purchase requests already wait for the owner's answer.
    #[error("Not bought: too many purchases wait for the owner's approval already. Ask the owner to answer them.")]
    TooManyWaiting,
    /// The balance of the service wallet is too low.
    #[error(
        "Not bought: the owner's Surety balance is too low. Ask the owner to send at least {} more (preprod tADA) to {address}, then try again.", .missing.display_tada()
    )]
    TooLittle { missing: Lovelace, address: String },
    /// The purchase was refunded.
    #[error("This purchase was refunded, so its content is not available. Call get_purchase_status for its timeline.")]
    Refunded,
    /// The demo wallet, which all clients share, cannot be withdrawn from.
    #[error(
        "The shared demo wallet cannot be withdrawn from. Nothing is to be done: its tADA stays for others to try."
    )]
    DemoWallet,
    /// The purchase was paid from the demo wallet, which all clients share, so no client may act on it.
    #[error(
        "Not done: the shared demo wallet's purchases are protected by the service itself, and nobody else acts on them. \
         Nothing is to be done: get_purchase_status shows what happens by itself."
    )]
    DemoPurchase,
    /// The balance is too small to withdraw. `pending` is set if a purchase in progress has reserved part of it.
    #[error(
        "There is nothing to withdraw: the Surety balance is {}, of which about 2 tADA are kept for fees{}.", .balance.display_tada(),
        if *.pending { ", and a purchase is on its way: its change can be withdrawn once it is in a block, in about a minute" } else { "" }
    )]
    NothingToWithdraw { balance: Lovelace, pending: bool },
    /// The payment failed: it was not included in a block, so nothing was paid.
    #[error("This payment failed: nothing was paid. Call my_wallet, then try buy_listing again.")]
    PaymentFailed,
    /// The caller exceeded a rate limit. The text names the limit and says when to retry.
    #[error("Rate limited: {0}. Nothing was paid by this call.")]
    RateLimited(String),
    /// Another reason, which the text explains to the model.
    #[error("Not done: {0}.")]
    NotDone(String),
    /// A part of the service failed temporarily. The text is only for the log.
    #[error("The service cannot answer now. Make the same call again in some seconds: nothing is paid twice.")]
    Unavailable(String),
}
