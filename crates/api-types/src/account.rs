//! Sign-in, sessions, accounts and their limits.

use cardano::{Address, ContentHash, Lovelace, TxHash};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{DeliveryMode, Listing, Purchase, Scope, SellerReputation, text::Millis};

/// The most that an account may allow per purchase, in ADA.
pub const MAX_PER_PAYMENT_ADA: u32 = 100;
/// The most that an account may allow per day, in ADA.
pub const MAX_DAILY_BUDGET_ADA: u32 = 500;

/// Who wants to sign in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ChallengeRequest {
    /// Bech32, or hexadecimal as CIP-30 gives it.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub address: String,
    /// More addresses of the same wallet, in any order. Where `address` has no account and one of them has, the challenge is
    /// for the oldest of those: `owner` tells which.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 20)))]
    pub others: Vec<String>,
}

/// What the wallet is to sign (CIP-30 `signData`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Challenge {
    /// The address, in bech32.
    pub owner: Address,
    /// What it signs.
    pub digest: ContentHash,
    /// What the digest is of: SHA-256 of `service:signin:v1` LF owner LF nonce.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[0-9a-f]{64}$")))]
    pub nonce: String,
    /// POSIX ms.
    pub expires_at: u64,
}

/// A signed challenge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SignIn {
    /// Whose challenge it is.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub owner: String,
    /// COSE_Key, hexadecimal.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub key: String,
    /// COSE_Sign1, hexadecimal.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub signature: String,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// For `Authorization: Bearer`.
    pub token: String,
    /// POSIX ms.
    pub expires_at: u64,
    /// Whose it is.
    pub account: SessionAccount,
}

/// Whose session it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionAccount {
    /// The address signed in with.
    pub owner: String,
    /// The service wallet's.
    pub wallet_address: Address,
}

/// The wallet that the service holds for an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Wallet {
    /// To be funded.
    pub address: Address,
    /// What it holds.
    pub balance_lovelace: Lovelace,
}

/// What may be spent from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Per purchase.
    pub max_per_payment_lovelace: Lovelace,
    /// Per UTC day.
    pub daily_budget_lovelace: Lovelace,
    /// Since midnight UTC.
    pub spent_today_lovelace: Lovelace,
    /// What costs more waits for the owner's approval, if an agent buys it. Absent: nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_above_lovelace: Option<Lovelace>,
}

/// An account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Me {
    /// The address signed in with.
    pub owner: String,
    /// The service wallet.
    pub wallet: Wallet,
    /// What may be spent from it.
    pub limits: Limits,
    /// Bought from the owner's wallet or the service wallet.
    pub purchases: Vec<Purchase>,
    /// What the account sells.
    pub listings: Vec<Listing>,
    /// Purchases of it that were not refunded.
    pub sales: u64,
    /// Absent until the seller has a closed escrow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seller_reputation: Option<SellerReputation>,
}

/// How a seller's sales went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SellerFigures {
    /// Purchases that were not refunded.
    #[serde(default)]
    pub sales: u64,
    /// Absent until the seller has a closed escrow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seller_reputation: Option<SellerReputation>,
}

/// What to buy, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Buy {
    /// The listing.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub listing_id: String,
    /// The delivery mode: instant or protected.
    pub mode: DeliveryMode,
}

/// What was bought.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Bought {
    /// The purchase.
    pub purchase: Purchase,
    /// The content.
    pub content: String,
    /// Whether nothing was paid now.
    pub already_owned: bool,
}

/// New limits, in whole tADA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewLimits {
    /// Per purchase.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = MAX_PER_PAYMENT_ADA)))]
    pub max_per_payment_ada: u32,
    /// At least `maxPerPaymentAda`.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = MAX_DAILY_BUDGET_ADA)))]
    pub daily_budget_ada: u32,
    /// What costs more waits for the owner's approval, if an agent buys it; 100 asks for none. Absent: it stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = MAX_PER_PAYMENT_ADA)))]
    pub ask_above_ada: Option<u32>,
}

/// Limits as they hold now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LimitsSet {
    /// Per purchase.
    pub max_per_payment_lovelace: Lovelace,
    /// Per UTC day.
    pub daily_budget_lovelace: Lovelace,
    /// What costs more waits for the owner's approval, if an agent buys it. Absent: nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_above_lovelace: Option<Lovelace>,
}

/// What was sent to the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Withdrawal {
    /// The transaction.
    pub tx: TxHash,
    /// What the owner gets.
    pub lovelace: Lovelace,
}

/// An agent that an owner let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// The grant's.
    pub id: String,
    /// The client's.
    pub client_id: String,
    /// What it calls itself.
    pub client_name: String,
    /// Where the code went.
    pub redirect_uri: String,
    /// What its owner allowed it.
    pub scope: Scope,
    /// POSIX ms.
    #[serde(with = "Millis")]
    pub created_at: u64,
    /// POSIX ms.
    #[serde(with = "Millis")]
    pub last_used_at: u64,
    /// Since midnight UTC.
    pub spent_today_lovelace: Lovelace,
}

/// How a purchase request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RequestStatus {
    /// For its owner's answer.
    Waiting,
    /// The agent may buy it, once.
    Approved,
    /// The agent may not.
    Declined,
    /// The agent bought it, or is paying.
    Used,
}

/// A purchase that an agent asks its owner to approve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PurchaseRequest {
    /// Hexadecimal.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[0-9a-f]{32}$")))]
    pub id: String,
    /// What the agent wants to buy.
    pub listing_id: String,
    /// What that is called.
    pub title: String,
    /// How it would pay.
    pub mode: DeliveryMode,
    /// The most that it may pay.
    pub price_lovelace: Lovelace,
    /// What the agent calls itself.
    pub client_name: String,
    /// How it stands.
    pub status: RequestStatus,
    /// Until when the request, or its approval, is good: POSIX ms.
    #[serde(with = "Millis")]
    pub expires_at: u64,
    /// The purchase for which the approval was used, once a block has its payment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx: Option<TxHash>,
}

/// An owner's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Once, within an hour.
    Approve,
    /// Also what was approved and is not used yet.
    Decline,
}

/// An owner's answer to a purchase request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RequestAnswer {
    /// Which.
    pub answer: Answer,
}
