//! The object `SettlementResponse`, which tells the outcome of a payment.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Network;

/// Outcome of a settlement, carried by the `PAYMENT-RESPONSE` header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SettlementResponse {
    /// `true` if the payment has the confirmations that its requirements ask for.
    pub success: bool,
    /// Id of the payment's transaction; empty if there is none.
    pub transaction: String,
    /// Network of the transaction.
    pub network: Network,
    /// Address of the payer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payer: Option<String>,
    /// Error code; absent on success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_reason: Option<String>,
    /// Evidence that the payment is on the chain, such as its block and the number of newer blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<SettlementExtra>,
    /// Extensions of the protocol, such as a signed receipt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Map<String, Value>>,
}

/// The strongest evidence that a payment is on the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SettlementExtra {
    /// Whether the payment is in a mempool or a block, or has too few confirmations.
    pub status: SettlementStatus,
    /// Number of newer blocks: 0 if the newest block includes the payment, and -1 if the status is `mempool`. Absent
    /// while the payment is pending and no block includes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmations: Option<i64>,
    /// Transaction id, while pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction_id: Option<String>,
}

/// Status of a settled payment on the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SettlementStatus {
    /// A block includes the payment.
    Confirmed,
    /// A node has accepted the payment into its mempool.
    Mempool,
    /// The payment has fewer confirmations than its requirements ask for.
    Pending,
}
