//! Purchases, their escrows and verdicts.

use cardano::{Address, ContentHash, Lovelace, TxHash};
use escrow::{State, spend::Ending};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{DeliveryMode, text::Millis, text::OptionalMillis};

/// Status of a purchase.
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
    // Protected: the collecting transaction has been submitted.
    #[serde(rename = "withdrawing")]
    Withdrawing,
    // Instant: paid.
    #[serde(rename = "settled")]
    Settled,
    // Protected: ended, the seller got the money, or the larger share of an award.
    #[serde(rename = "withdrawn")]
    Withdrawn,
    // Protected: ended, the buyer got the money, or the larger share of an award.
    #[serde(rename = "refunded")]
    Refunded,
    // Protected: ended without a winner (see `escrow::spend::Ending`).
    #[serde(rename = "closed")]
    Closed,
}

impl PurchaseStatus {
    /// Returns the status's name in the API.
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

    /// Returns the status in a few words for people.
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
            Self::Settled => "Delivered",
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

/// The buyer's comparison of the delivered content with the listed content.
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
    /// Returns the verification's name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Mismatch => "mismatch",
            Self::NoResultYet => "no_result_yet",
        }
    }
}

/// An event of a purchase on the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PurchaseEvent {
    /// Status of the purchase after the event; `creator_paid` for the payout of the seller's share, which does not
    /// change the status.
    pub status: String,
    /// Id of the event's transaction.
    pub tx_hash: TxHash,
    /// Time of the block that includes the transaction, POSIX ms.
    #[serde(with = "Millis")]
    pub at: u64,
}

impl PurchaseEvent {
    /// Describes the event for people. `mode` is the purchase's delivery mode.
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

/// Deadlines of an escrow, each in POSIX ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EscrowDeadlines {
    /// Time by which the payment must be locked in the escrow.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "OptionalMillis")]
    pub pay_by: Option<u64>,
    /// Time by which the seller must submit a result (proof of delivery). Afterwards the buyer may withdraw the money.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "OptionalMillis")]
    pub submit_result: Option<u64>,
    /// Time from which the seller may collect the money, and until which the buyer may dispute.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "OptionalMillis")]
    pub unlock: Option<u64>,
    /// Time from which the arbiter may decide a dispute.
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
    /// Address of the contract, bech32.
    pub address: String,
    /// Hash in the escrow's datum that commits the escrow to the listing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_hash: Option<ContentHash>,
    /// Result hash: SHA-256 of the lock transaction's id, a semicolon, and the delivered content; absent until the
    /// seller has submitted the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_hash: Option<ContentHash>,
    /// Id of the lock transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identifier_from_purchaser: Option<TxHash>,
    /// Deadlines of the escrow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadlines: Option<EscrowDeadlines>,
}

/// A purchase. It exists once a block includes its transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Purchase {
    /// Id of the purchase: the id of its payment transaction (instant) or of its lock transaction (protected).
    pub id: TxHash,
    /// Id of the listing.
    pub listing_id: String,
    /// Delivery mode: instant or protected.
    pub mode: DeliveryMode,
    /// Address that paid.
    pub buyer_address: Address,
    /// `true` if the purchase was paid from a Surety balance. A session of the account then suffices for the buyer's
    /// actions, because the service signs their transactions. Absent if the buyer's own wallet paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paid_from_balance: Option<bool>,
    /// Same as `id`.
    pub tx_hash: TxHash,
    /// Status of the purchase.
    pub status: PurchaseStatus,
    /// Events of the purchase on the chain, in order.
    pub events: Vec<PurchaseEvent>,
    /// Escrow of a protected purchase; absent for an instant purchase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escrow: Option<Escrow>,
    /// The buyer's verdict; absent until the buyer has sent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// The arbiter's decision of a dispute; absent until the arbiter has decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
}

/// An arbiter's decision of a dispute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// Party that won the dispute: `buyer` or `seller`.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^(buyer|seller)$")))]
    pub winner: String,
    /// The arbiter's reason for the decision, in words.
    pub reason: String,
    /// Id of the transaction that paid out the decision; absent until a block includes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_hash: Option<TxHash>,
}

/// A buyer's verdict on a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Verdict {
    /// Result of the buyer's comparison.
    pub verification: Verification,
}

/// Facts about a listing that a signed statement about its purchase contains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListingFacts {
    /// Id of the listing: `lst_` and a ULID.
    pub id: String,
    /// SHA-256 of the listing's content.
    pub content_hash: ContentHash,
    /// Price of the listing.
    pub price_lovelace: Lovelace,
    /// Address of the seller, to which instant purchases are paid.
    pub seller_address: Address,
}

/// The service's statement about a purchase: the payload of the JWS that `GET /purchases/{id}/statement` returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PurchaseStatement {
    /// Version of the statement's format: 1.
    pub version: u8,
    /// The service's origin.
    pub service: String,
    /// Time at which the statement was signed, POSIX ms.
    #[serde(with = "Millis")]
    pub issued_at: u64,
    /// The listing that was bought.
    pub listing: ListingFacts,
    /// The purchase, with its events as known when the statement was signed.
    pub purchase: Purchase,
}
