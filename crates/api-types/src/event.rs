//! Events that owners are notified of.

use cardano::{Lovelace, TxHash};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::Millis;

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A block includes the payment of a purchase.
    Sale,
    /// A block includes the proof of delivery of a protected purchase.
    Proof,
    /// The buyer has asked for a refund before the proof of delivery.
    RefundRequested,
    /// The buyer disputes the delivery.
    Dispute,
    /// The buyer has the money back.
    Refund,
    /// The seller's share of a protected purchase was paid.
    Payout,
    /// The escrow ended without a winner: an arbiter gave both parties equal shares, or the escrow ended in a way that
    /// the contract's rules do not describe.
    Closed,
    /// An agent asks the owner to approve a purchase.
    ApprovalRequested,
    /// A refresh token of an agent was used after it had been replaced. Somebody may have copied it.
    OldToken,
    /// A rollback of the chain removed the block of an earlier event, whose id is in `undoes`.
    RolledBack,
    /// The owner has asked for a test message.
    Test,
}

impl EventKind {
    /// Returns the kind's name in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sale => "sale",
            Self::Proof => "proof",
            Self::RefundRequested => "refund_requested",
            Self::Dispute => "dispute",
            Self::Refund => "refund",
            Self::Payout => "payout",
            Self::Closed => "closed",
            Self::ApprovalRequested => "approval_requested",
            Self::OldToken => "old_token",
            Self::RolledBack => "rolled_back",
            Self::Test => "test",
        }
    }
}

/// An account's part in a purchase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum PurchaseRole {
    /// The account sells the listing.
    Seller,
    /// The account paid, from its Surety balance or from the wallet that it signs in with.
    Buyer,
}

/// An event that an owner is notified of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Id of the event. Webhooks get it in the header `webhook-id`. It does not change when the event is sent again.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^evt_[0-9a-f]{32}$")))]
    pub id: String,
    /// Kind of the event.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// Time of the block that includes the event's transaction, or of the request that caused the event, POSIX ms.
    #[serde(with = "Millis")]
    pub at: u64,
    /// The account's part in the purchase; absent if the event concerns no purchase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<PurchaseRole>,
    /// Id of the listing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listing_id: Option<String>,
    /// Title of the listing at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Id of the purchase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purchase_id: Option<TxHash>,
    /// Transaction that the event reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_hash: Option<TxHash>,
    /// Amount of the event: the seller's share if the account is the seller, the price if it is the buyer, or the price
    /// to be approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount_lovelace: Option<Lovelace>,
    /// Id of the purchase request that waits for approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Id of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Name that the agent's client gave itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
    /// In an event `rolled_back`, the id of the earlier event whose block was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<String>,
    /// Id of the later event `rolled_back` that cancels this event; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<String>,
}

impl Event {
    /// Returns the event as a sentence for people. Texts of sellers and agents in it are not escaped.
    #[must_use]
    pub fn words(&self) -> String {
        let title = self.title.as_deref().unwrap_or("a listing");
        let client = self.client_name.as_deref().unwrap_or("An agent");
        let amount = self.amount_lovelace.unwrap_or_default().display_tada();
        let is_seller = self.role == Some(PurchaseRole::Seller);
        match self.kind {
            EventKind::Sale if is_seller => format!("Sold: {title}. Your share: {amount}"),
            EventKind::Sale => format!("Bought: {title}, for {amount}"),
            EventKind::Proof if is_seller => format!("Delivered: {title}"),
            EventKind::Proof => format!("Delivered, and yours to read: {title}"),
            EventKind::RefundRequested if is_seller => format!("The buyer asks for a refund: {title}"),
            EventKind::RefundRequested => format!("Refund requested: {title}"),
            EventKind::Dispute if is_seller => format!("The buyer disputes the delivery: {title}"),
            EventKind::Dispute => format!("Disputed: {title}"),
            EventKind::Refund if is_seller => format!("Refunded to the buyer: {title}"),
            EventKind::Refund => format!("Your money is back: {amount}, for {title}"),
            EventKind::Payout if is_seller => format!("Paid to you: {amount}, for {title}"),
            EventKind::Payout => format!("The seller was paid: {title}"),
            EventKind::Closed => format!("The escrow ended without a winner: {title}"),
            EventKind::ApprovalRequested => format!("{client} asks to buy {title} for {amount}"),
            EventKind::OldToken => format!("An old key of {client} was used. Remove the agent if that was not you"),
            EventKind::RolledBack => {
                format!("Undone, because the chain dropped its block: an earlier notice of {title}")
            }
            EventKind::Test => "A test message, as you asked".to_owned(),
        }
    }

    /// Returns the path of the page about the event.
    #[must_use]
    pub fn path(&self) -> String {
        match (&self.request_id, &self.purchase_id) {
            (Some(request), _) => format!("/me/requests/{request}"),
            (None, Some(purchase)) if self.undone_by.is_none() && self.undoes.is_none() => {
                format!("/purchases/{purchase}")
            }
            _ => "/me".to_owned(),
        }
    }
}
