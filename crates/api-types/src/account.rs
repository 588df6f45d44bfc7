//! Sign-in, sessions, accounts and their limits.

use cardano::{Address, ContentHash, Lovelace, TxHash};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use crate::MAX_SELLER_NAME;
use crate::{DeliveryMode, Disputes, Listing, Purchase, Scope, SellerReputation, text::Millis, text::OptionalMillis};

/// Maximum amount that an account may allow per purchase, in ADA.
pub const MAX_PER_PAYMENT_ADA: u32 = 100;
/// Maximum amount that an account may allow per day, in ADA.
pub const MAX_DAILY_BUDGET_ADA: u32 = 500;

/// Maximum value of a seller's reputation.
pub const MAX_REPUTATION: u32 = 100;

/// A request for a sign-in challenge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ChallengeRequest {
    /// Address in bech32, or in hexadecimal as CIP-30 wallets return it.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub address: String,
    /// Further addresses of the same wallet, in any order. If `address` has no account, the challenge is for the oldest
    /// account among these addresses. The answer's `owner` names the account's address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 20)))]
    pub others: Vec<String>,
}

/// A digest that the owner's wallet must sign to sign in (CIP-30 `signData`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Challenge {
    /// Address of the account, in bech32.
    pub owner: Address,
    /// Digest to sign: SHA-256 of the text `service:signin:v1`, a line feed, the owner's address, a line feed, and the
    /// nonce.
    pub digest: ContentHash,
    /// Random nonce, which is part of the signed digest.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[0-9a-f]{64}$")))]
    pub nonce: String,
    /// Time at which the challenge expires, POSIX ms.
    pub expires_at: u64,
}

/// A sign-in challenge with the wallet's signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SignIn {
    /// Address for which the challenge was issued.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub owner: String,
    /// The signature's public key: a COSE_Key in hexadecimal, as `signData` returns it.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub key: String,
    /// The signature: a COSE_Sign1 in hexadecimal, as `signData` returns it.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub signature: String,
}

/// A signed-in session of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Bearer token of the session, for the header `Authorization`.
    pub token: String,
    /// Time at which the session expires, POSIX ms.
    pub expires_at: u64,
    /// Account of the session.
    pub account: SessionAccount,
}

/// The account of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionAccount {
    /// Address that signed in.
    pub owner: String,
    /// Address of the account's service wallet.
    pub wallet_address: Address,
}

/// The wallet that the service holds for an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Wallet {
    /// Address of the service wallet. The owner sends tADA to it to add funds.
    pub address: Address,
    /// Balance of the service wallet.
    pub balance_lovelace: Lovelace,
}

/// Spending limits of a service wallet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Maximum amount per purchase.
    pub max_per_payment_lovelace: Lovelace,
    /// Maximum amount per UTC day.
    pub daily_budget_lovelace: Lovelace,
    /// Amount spent since midnight UTC.
    pub spent_today_lovelace: Lovelace,
    /// Price above which agents' purchases need the owner's approval; absent if none need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_above_lovelace: Option<Lovelace>,
    /// Rules that the account's agents must follow.
    #[serde(flatten)]
    pub rules: AgentRules,
}

/// Rules of an owner for all agents of the account. A rule that is not set is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentRules {
    /// `true` if agents may buy only with buyer protection.
    #[serde(default, skip_serializing_if = "is_default")]
    pub protected_only: bool,
    /// Minimum reputation of sellers from whom agents may buy.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = MAX_REPUTATION)))]
    pub min_reputation: u8,
    /// `true` if the owner has paused all agents, so that none of them can move money.
    #[serde(default, skip_serializing_if = "is_default")]
    pub agents_paused: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// An account, as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Me {
    /// Address of the owner, who signed in with it.
    pub owner: String,
    /// Display name of the owner as a seller; absent if none is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = MAX_SELLER_NAME)))]
    pub seller_name: Option<String>,
    /// The service wallet.
    pub wallet: Wallet,
    /// Spending limits of the service wallet.
    pub limits: Limits,
    /// Purchases made from the owner's wallet or the service wallet.
    pub purchases: Vec<Purchase>,
    /// Listings that the account sells.
    pub listings: Vec<Listing>,
    /// Number of sales that were not refunded.
    pub sales: u64,
    /// The account's reputation as a seller; absent until it has a closed escrow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seller_reputation: Option<SellerReputation>,
    /// Counts of the seller's disputes that an arbiter has decided; absent until one is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disputes: Option<Disputes>,
}

/// Display name to set for the account's owner as a seller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewSellerName {
    /// New name, one line of visible characters. Absent: the name is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_SELLER_NAME)))]
    pub seller_name: Option<String>,
}

/// Display name of the account's owner as a seller, after it was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SellerNameSet {
    /// The name; absent if it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seller_name: Option<String>,
}

/// A seller's display name and sales figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SellerFigures {
    /// Display name that the seller chose; absent if none is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seller_name: Option<String>,
    /// Number of sales that were not refunded.
    #[serde(default)]
    pub sales: u64,
    /// The seller's reputation; absent until the seller has a closed escrow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seller_reputation: Option<SellerReputation>,
    /// Counts of the seller's disputes that an arbiter has decided; absent until one is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disputes: Option<Disputes>,
}

/// An order for a listing, to be paid from the service wallet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Buy {
    /// Id of the listing.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub listing_id: String,
    /// Delivery mode: instant or protected.
    pub mode: DeliveryMode,
    /// Price that the buyer agreed to. If the listing has another price, nothing is paid. Absent: the present price is
    /// paid, within the account's limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_lovelace: Option<Lovelace>,
}

/// A completed purchase with its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Bought {
    /// The purchase.
    pub purchase: Purchase,
    /// Purchased content.
    pub content: String,
    /// `true` if the account already owned the listing, so that nothing was paid.
    pub already_owned: bool,
}

/// New spending limits for a service wallet, in whole tADA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewLimits {
    /// Maximum amount per purchase.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = MAX_PER_PAYMENT_ADA)))]
    pub max_per_payment_ada: u32,
    /// Maximum amount per UTC day; at least `maxPerPaymentAda`.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = MAX_DAILY_BUDGET_ADA)))]
    pub daily_budget_ada: u32,
    /// Price above which agents' purchases need the owner's approval. With 0, every purchase needs it. With 100, none
    /// does, because no purchase may cost more. Absent: the setting stays unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = MAX_PER_PAYMENT_ADA)))]
    pub ask_above_ada: Option<u32>,
    /// `true` to let agents buy only with buyer protection. Absent: the setting stays unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected_only: Option<bool>,
    /// Minimum reputation of sellers from whom agents may buy. 0 allows every seller. A higher minimum also excludes
    /// sellers without a reputation. Absent: the setting stays unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = MAX_REPUTATION)))]
    pub min_reputation: Option<u32>,
}

/// Whether the owner's agents are paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct AgentPause {
    /// `true` if no agent of the account can move money.
    pub paused: bool,
}

/// Spending limits that are now in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LimitsSet {
    /// Maximum amount per purchase.
    pub max_per_payment_lovelace: Lovelace,
    /// Maximum amount per UTC day.
    pub daily_budget_lovelace: Lovelace,
    /// Price above which agents' purchases need the owner's approval; absent if none need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_above_lovelace: Option<Lovelace>,
    /// Rules that the account's agents must follow.
    #[serde(flatten)]
    pub rules: AgentRules,
}

/// A transfer of a service wallet's balance to the account's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Withdrawal {
    /// Id of the withdrawal's transaction.
    pub tx: TxHash,
    /// Amount that the owner receives.
    pub lovelace: Lovelace,
}

/// An agent to which an owner granted access.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// Id of the grant that gives the agent access.
    pub id: String,
    /// OAuth client id of the agent.
    pub client_id: String,
    /// Name that the client gave itself.
    pub client_name: String,
    /// Redirect URI that received the authorization code.
    pub redirect_uri: String,
    /// Scope that the owner granted.
    pub scope: Scope,
    /// Time of the grant, POSIX ms.
    #[serde(with = "Millis")]
    pub created_at: u64,
    /// Time at which the agent last used its access, POSIX ms.
    #[serde(with = "Millis")]
    pub last_used_at: u64,
    /// Amount that the agent has spent since midnight UTC.
    pub spent_today_lovelace: Lovelace,
    /// Time at which a refresh token that had already been replaced was last presented and rejected, POSIX ms; absent
    /// if that never happened. The sender may be another session of the agent, or someone who copied the token.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "OptionalMillis")]
    pub old_token_at: Option<u64>,
    /// Network address from which the replaced refresh token was presented.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_token_from: Option<String>,
}

/// Status of a purchase request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RequestStatus {
    /// Waiting for the owner's answer.
    Waiting,
    /// Approved: the agent may buy the listing once.
    Approved,
    /// Declined by the owner.
    Declined,
    /// Used: the agent has bought the listing, or its payment is in progress.
    Used,
}

/// A purchase that an agent asks its owner to approve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PurchaseRequest {
    /// Id of the request, hexadecimal.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[0-9a-f]{32}$")))]
    pub id: String,
    /// Id of the listing.
    pub listing_id: String,
    /// Title of the listing.
    pub title: String,
    /// Delivery mode: instant or protected.
    pub mode: DeliveryMode,
    /// Maximum price that the approval allows.
    pub price_lovelace: Lovelace,
    /// Name of the agent's client.
    pub client_name: String,
    /// Status of the request.
    pub status: RequestStatus,
    /// Time at which the request or its approval expires, POSIX ms.
    #[serde(with = "Millis")]
    pub expires_at: u64,
    /// Transaction of the purchase that used the approval; absent until a block includes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx: Option<TxHash>,
}

/// An owner's decision about a purchase request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Approves one purchase, which the agent must make within an hour.
    Approve,
    /// Declines the request, or revokes an approval that is not used yet.
    Decline,
}

/// An owner's answer to a purchase request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RequestAnswer {
    /// The owner's decision.
    pub answer: Answer,
}
