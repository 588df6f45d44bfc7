//! What the tools need of the shop: two ports, connected to the checkout by the worker.

use std::rc::Rc;

use api_types::{Bought, PurchaseRequest, mcp::Withdrawal};
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

/// What the shop's JSON says.
pub(super) fn parsed<T: DeserializeOwned>(json: &str) -> Result<T, ShopError> {
    serde_json::from_str(json).map_err(|error| ShopError::Unavailable(error.to_string()))
}

/// The catalogue as every client sees it.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait Shelf {
    /// Our address, without a slash behind it.
    fn origin(&self) -> String;
    /// A page of listings, ranked where the filter has words.
    async fn search(&self, filter: Filter) -> Result<Page, ShopError>;
    /// A listing's public JSON.
    async fn listing(&self, id: &ListingId) -> Result<String, ShopError>;
}

/// The shop as the agent of one account meets it: the implementation holds the caller.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait Shop {
    /// The catalogue.
    fn shelf(&self) -> &impl Shelf;
    /// Whose service wallet it is.
    fn account(&self) -> &Account;
    /// The purchase by which the account owns a listing, if it does.
    async fn owned(&self, id: &ListingId) -> Result<Option<TxHash>, ShopError>;
    /// Buys from the service wallet within the limits, finds what is owned, or asks the owner to approve it. Asking again for
    /// the same listing and mode never pays twice; the purchase goes on when the client hangs up. Answers within 45 s, pending
    /// if it must.
    async fn buy(&self, id: &ListingId, mode: DeliveryMode) -> Result<Ordered, ShopError>;
    /// The account's purchases, newest first, each with the listing's title and price.
    async fn purchases(&self, after: Option<Cursor>) -> Result<Page, ShopError>;
    /// One purchase, with its content where the account owns it and `with_content` is set.
    async fn status(&self, tx: &TxHash, with_content: bool) -> Result<OwnPurchase, ShopError>;
    /// The service wallet.
    async fn wallet(&self) -> Result<WalletState, ShopError>;
    /// Sends what is left to the owner. Within a minute of one that was sent, the same answer.
    async fn withdraw(&self) -> Result<Withdrawal, ShopError>;
}

/// The shop as an agent with a wallet of its own meets it.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait OpenShop: Shelf {
    /// Sells over x402, or hands out again what was bought.
    async fn unlock(&self, id: &ListingId, shown: Presentation) -> Result<Unlocked, ShopError>;
}

/// What came of an order.
#[derive(Clone, Debug, PartialEq)]
pub struct Ordered {
    pub listing: Rc<ListingTerms>,
    /// Whether it is paid.
    pub outcome: OrderOutcome,
}

/// Whether an order is paid.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderOutcome {
    /// Paid, now or before.
    Bought(Box<Bought>),
    /// Paid by this transaction, which waits for its block, or for that of its result.
    Pending(TxHash),
    /// The owner is asked to approve it; nothing is paid.
    Asked(PurchaseRequest),
}

/// A service wallet as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalletState {
    /// On the chain, what is reserved for pending purchases taken off.
    pub balance: Lovelace,
    /// Of the daily budget, spent or reserved today.
    pub spent_today: Lovelace,
}

/// What came of an unlocking.
#[derive(Clone, Debug, PartialEq)]
pub enum Unlocked {
    /// Not paid: x402's PaymentRequired, whose `error` says why a payment was refused or did not settle, and the
    /// SettlementResponse where there is one. Never with content.
    PaymentRequired {
        /// PaymentRequired.
        required: Value,
        /// SettlementResponse of a failed or pending settlement.
        settlement: Option<Value>,
    },
    /// Paid and delivered.
    Delivered {
        content: String,
        /// What the listing promised.
        listed_hash: ContentHash,
        /// SettlementResponse, where it was paid by this call.
        settlement: Option<Value>,
        /// The purchase, where it was made before.
        purchase: Option<TxHash>,
    },
}

/// Why the shop did not do what a tool asked. The texts are for the model: each says what to do next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShopError {
    /// No such listing.
    #[error("There is no listing with this id. Call search_listings and use an id from its results.")]
    NoListing,
    /// No such purchase, or another account's.
    #[error("This account has no purchase with this transaction. Call my_purchases for the ones it has.")]
    NoPurchase,
    /// Not offered this way.
    #[error("The seller does not offer mode {}. Call get_listing and use one of its modes.", .0.as_str())]
    ModeNotOffered(DeliveryMode),
    /// More than one purchase may cost.
    #[error(
        "Not bought: {} is more than the {} that the owner allows per purchase. Choose something cheaper, or ask the owner \
         to raise the limit.", .price.display_tada(), .limit.display_tada()
    )]
    OverPurchaseLimit { price: Lovelace, limit: Lovelace },
    /// More than what is left of today's budget.
    #[error(
        "Not bought: {} is more than the {} left of today's budget, which begins anew at midnight UTC. Wait, choose \
         something cheaper, or ask the owner to raise the budget.", .price.display_tada(), .left.display_tada()
    )]
    OverDailyBudget { price: Lovelace, left: Lovelace },
    /// The owner declined it.
    #[error(
        "Not bought: the owner declined this purchase. Do not try it again: choose something else, or ask the owner."
    )]
    Declined,
    /// Too many requests wait for the owner's answer.
    #[error("Not bought: too many purchases wait for the owner's approval already. Ask the owner to answer them.")]
    TooManyWaiting,
    /// Too little in the wallet.
    #[error(
        "Not bought: the owner's Surety balance is too low. Ask the owner to send at least {} more (preprod tADA) to {address}, then try again.", .missing.display_tada()
    )]
    TooLittle { missing: Lovelace, address: String },
    /// The purchase was refunded.
    #[error("This purchase was refunded, so its content is not available. Call get_purchase_status for its timeline.")]
    Refunded,
    /// All clients share the demo wallet.
    #[error(
        "The shared demo wallet cannot be withdrawn from. Nothing is to be done: its tADA stays for others to try."
    )]
    DemoWallet,
    /// Too little to send; whether a purchase holds the rest until its block.
    #[error(
        "There is nothing to withdraw: the Surety balance is {}, of which about 2 tADA are kept for fees{}.", .balance.display_tada(),
        if *.pending { ", and a purchase is on its way: its change can be withdrawn once it is in a block, in about a minute" } else { "" }
    )]
    NothingToWithdraw { balance: Lovelace, pending: bool },
    /// The payment failed, and no block has it.
    #[error("This payment failed: nothing was paid. Call my_wallet, then try buy_listing again.")]
    PaymentFailed,
    /// Too many calls. The text says of what, and when to come back.
    #[error("Rate limited: {0}. Nothing was paid by this call.")]
    RateLimited(String),
    /// Something else is in the way; the text says what.
    #[error("Not done: {0}.")]
    NotDone(String),
    /// Not now; nothing is known to be wrong. The text is for our log alone.
    #[error("The service cannot answer now. Make the same call again in some seconds: nothing is paid twice.")]
    Unavailable(String),
}
