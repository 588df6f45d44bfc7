//! `SettlementResponse`: how a payment stands.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Network;

/// How a settlement went, carried by the `PAYMENT-RESPONSE` header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SettlementResponse {
    /// Whether the payment reached the evidence that its requirements ask for.
    pub success: bool,
    /// The transaction's id; empty where there is none.
    pub transaction: String,
    /// The network that the transaction is on.
    pub network: Network,
    /// Who paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payer: Option<String>,
    /// The code of what went wrong; absent on success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_reason: Option<String>,
    /// The evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<SettlementExtra>,
    /// Optional functionality beyond payment: a signed receipt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Map<String, Value>>,
}

/// The strongest evidence that was verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SettlementExtra {
    /// Its kind.
    pub status: SettlementStatus,
    /// -1 in the mempool, 0 in a block, n with n newer blocks; absent while pending and in no block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmations: Option<i64>,
    /// The transaction's id again, while pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction_id: Option<String>,
}

/// Kinds of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SettlementStatus {
    /// In a block.
    Confirmed,
    /// Taken by a node.
    Mempool,
    /// Less than what the requirements ask for.
    Pending,
}
