//! Purchases, their escrows and verdicts.

use cardano::{Address, ContentHash, TxHash};
use escrow::{State, spend::Ending};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{DeliveryMode, text::Millis, text::OptionalMillis};

/// How a purchase stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[expect(missing_docs, reason = "the six of an escrow are the contract's states; described, it were no plain list")]
pub enum PurchaseStatus {
    FundsLocked,
    ResultSubmitted,
    RefundRequested,
    Disputed,
    WithdrawAuthorized,
    RefundAuthorized,
    // Protected: our collecting transaction is submitted.
    #[serde(rename = "withdrawing")]
    Withdrawing,
    // Instant: paid.
    #[serde(rename = "settled")]
    Settled,
    // Protected: over, the seller got most.
    #[serde(rename = "withdrawn")]
    Withdrawn,
    // Protected: over, the buyer got most.
    #[serde(rename = "refunded")]
    Refunded,
    // Protected: over, neither was paid.
    #[serde(rename = "closed")]
    Closed,
}

impl PurchaseStatus {
    /// The API's word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FundsLocked => "FundsLocked",
            Self::ResultSubmitted => "ResultSubmitted",
            Self::RefundRequested => "RefundRequested",
            Self::Disputed => "Disputed",
            Self::WithdrawAuthorized => "WithdrawAuthorized",
            Self::RefundAuthorized => "RefundAuthorized",
            Self::Withdrawing => "withdrawing",
            Self::Settled => "settled",
            Self::Withdrawn => "withdrawn",
            Self::Refunded => "refunded",
            Self::Closed => "closed",
        }
    }

    /// In a word or two, as people are told.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::FundsLocked => "Paid, held",
            Self::ResultSubmitted => "Delivered",
            Self::RefundRequested => "Refund asked for",
            Self::Disputed => "Disputed",
            Self::WithdrawAuthorized => "Released",
            Self::RefundAuthorized => "Refund agreed",
            Self::Withdrawing => "Paying the seller",
            Self::Settled => "Paid",
            Self::Withdrawn => "Complete",
            Self::Refunded => "Refunded",
            Self::Closed => "Closed",
        }
    }
}

impl From<State> for PurchaseStatus {
    fn from(state: State) -> Self {
        match state {
            State::FundsLocked => Self::FundsLocked,
            State::ResultSubmitted => Self::ResultSubmitted,
            State::RefundRequested => Self::RefundRequested,
            State::Disputed => Self::Disputed,
            State::WithdrawAuthorized => Self::WithdrawAuthorized,
            State::RefundAuthorized => Self::RefundAuthorized,
        }
    }
}

impl From<Ending> for PurchaseStatus {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Withdrawn => Self::Withdrawn,
            Ending::Refunded => Self::Refunded,
            Ending::Closed => Self::Closed,
        }
    }
}

/// What a buyer found when comparing what was delivered with what was listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "what the words say")]
pub enum Verification {
    Ok,
    Mismatch,
    NoResultYet,
}

impl Verification {
    /// The API's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Mismatch => "mismatch",
            Self::NoResultYet => "no_result_yet",
        }
    }
}

/// What the chain shows of a purchase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PurchaseEvent {
    /// A status, or `creator_paid`.
    pub status: String,
    /// The transaction that did it.
    pub tx_hash: TxHash,
    /// The block's time, POSIX ms.
    #[serde(with = "Millis")]
    pub at: u64,
}

impl PurchaseEvent {
    /// What the transaction did, as people are told; of a purchase made in this mode.
    #[must_use]
    pub fn words(&self, mode: DeliveryMode) -> &str {
        match self.status.as_str() {
            "settled" => "The seller was paid",
            "FundsLocked" => "The price was locked in the contract",
            "ResultSubmitted" => "The proof of delivery was posted",
            "RefundRequested" => "The buyer asked for a refund",
            "Disputed" => "The buyer disputed the delivery",
            "WithdrawAuthorized" => "The buyer released the money",
            "RefundAuthorized" => "The seller agreed to a refund",
            "withdrawn" => "The contract paid out the sale",
            "refunded" => "The contract paid the buyer back",
            "closed" => "The contract was closed",
            "creator_paid" if matches!(mode, DeliveryMode::Protected) => "The seller got the price less the fee",
            other => other,
        }
    }
}

/// When an escrow's parties may act, POSIX ms each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EscrowDeadlines {
    /// Until when it is locked.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "OptionalMillis")]
    pub pay_by: Option<u64>,
    /// Until when the seller posts a result; after it, the buyer takes the money back.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "OptionalMillis")]
    pub submit_result: Option<u64>,
    /// From when the seller collects; until then, the buyer disputes.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "OptionalMillis")]
    pub unlock: Option<u64>,
    /// From when the arbiter decides a dispute.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "OptionalMillis")]
    pub external_dispute_unlock: Option<u64>,
}

impl From<escrow::Deadlines> for EscrowDeadlines {
    fn from(deadlines: escrow::Deadlines) -> Self {
        let escrow::Deadlines { pay_by, submit_result, unlock, external_dispute_unlock } = deadlines;
        Self {
            pay_by: Some(pay_by),
            submit_result: Some(submit_result),
            unlock: Some(unlock),
            external_dispute_unlock: Some(external_dispute_unlock),
        }
    }
}

/// The escrow of a protected purchase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Escrow {
    /// The contract's, bech32.
    pub address: String,
    /// What commits it to the listing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_hash: Option<ContentHash>,
    /// SHA-256 over the lock's id and what was delivered, once the seller posted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_hash: Option<ContentHash>,
    /// The lock's transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identifier_from_purchaser: Option<TxHash>,
    /// When its parties may act.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadlines: Option<EscrowDeadlines>,
}

/// A purchase. It exists once its transaction is in a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Purchase {
    /// The payment's transaction (instant), or the lock's (protected).
    pub id: TxHash,
    /// What was bought.
    pub listing_id: String,
    /// The delivery mode: instant or protected.
    pub mode: DeliveryMode,
    /// Who paid.
    pub buyer_address: Address,
    /// As `id`.
    pub tx_hash: TxHash,
    /// How it stands.
    pub status: PurchaseStatus,
    /// Its timeline, as the chain has it.
    pub events: Vec<PurchaseEvent>,
    /// Of protected purchases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escrow: Option<Escrow>,
    /// The buyer's verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
}

/// A buyer's verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Verdict {
    /// What was found.
    pub verification: Verification,
}
