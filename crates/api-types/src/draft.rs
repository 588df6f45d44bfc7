//! Drafts: transactions that the service builds and a wallet signs.

use std::collections::BTreeMap;

use cardano::{Address, Lovelace, TxHash};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{DeliveryMode, EscrowDeadlines, PurchaseStatus, text::Millis, text::OptionalMillis};

/// A request to draft a payment, with the delivery mode and the wallet's state as CIP-30 methods return it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewPaymentDraft {
    /// Whether to check first that an output that the payment spends exists on the chain and is unspent, so that a
    /// wallet on another network gets an error before it signs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_inputs: Option<bool>,
    /// Delivery mode: instant or protected.
    pub mode: DeliveryMode,
    /// Result of the wallet's `getChangeAddress()`, in hexadecimal or bech32.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub change_address: String,
    /// Results of the wallet's `getUtxos()`, each CBOR in hexadecimal.
    pub utxos: Vec<String>,
    /// Results of the wallet's `getCollateral()`, each CBOR in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collateral: Option<Vec<String>>,
    /// Results of the wallet's `getUsedAddresses()`, in hexadecimal or bech32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<String>>,
    /// The value `h` of the x402 extension `cardano-request-commitment`, which binds the payment to the request `GET
    /// /listings/{id}/unlock`. The transaction's metadata will contain this value. The client must keep the
    /// commitment's salt and send it along with the payment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[0-9a-f]{64}$")))]
    pub commitment: Option<String>,
}

/// A payment for a wallet to sign. The service does not store it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PaymentDraft {
    /// CBOR of the unsigned transaction, hexadecimal.
    pub transaction: String,
    /// Id of the transaction.
    pub tx_hash: TxHash,
    /// Hashes of the keys that must sign, hexadecimal.
    pub signers: Vec<String>,
    /// An x402 PaymentPayload in which `payload.transaction` is missing. The client sets it to the base64 of the signed
    /// transaction.
    pub payment: Map<String, Value>,
    /// Amounts and addresses of the payment.
    pub summary: PaymentSummary,
    /// The summary in words, for the person who signs.
    pub words: Vec<String>,
}

/// The amounts and addresses of a drafted payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PaymentSummary {
    /// Delivery mode.
    pub mode: DeliveryMode,
    /// Price of the listing.
    pub price_lovelace: Lovelace,
    /// Recipient of the payment: the seller, or the escrow contract.
    pub pay_to: String,
    /// Amount that the recipient gets, including a protected purchase's collateral.
    pub locked_lovelace: Lovelace,
    /// Part of the locked amount that the buyer gets back in every case.
    pub collateral_lovelace: Lovelace,
    /// Network fee.
    pub fee_lovelace: Lovelace,
    /// Change that the transaction returns to the wallet.
    pub change_lovelace: Lovelace,
    /// Address that receives the change.
    pub change_address: Address,
    /// Native tokens that the transaction returns to the wallet. A key is the policy id followed by the asset name, in
    /// hexadecimal; a value is the quantity as a decimal string.
    pub change_assets: BTreeMap<String, String>,
    /// Address of the buyer.
    pub buyer_address: Address,
    /// Time until which the transaction is valid, POSIX ms.
    #[serde(with = "Millis")]
    pub valid_until: u64,
    /// Deadlines of a protected purchase; absent for an instant one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadlines: Option<EscrowDeadlines>,
}

/// A request to draft an action on a protected purchase, with the wallet's state as CIP-30 methods return it. If the
/// request names no action, the answer lists the possible actions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewActionDraft {
    /// Name of the action to draft, from the list of possible actions. Absent: the answer is the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Result of the wallet's `getChangeAddress()`, in hexadecimal or bech32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_address: Option<String>,
    /// Results of the wallet's `getUtxos()`, each CBOR in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utxos: Option<Vec<String>>,
    /// Results of the wallet's `getCollateral()`, each CBOR in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collateral: Option<Vec<String>>,
    /// Results of the wallet's `getUsedAddresses()`, in hexadecimal or bech32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<String>>,
}

/// The possible actions of both parties on a protected purchase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PossibleActions {
    /// Id of the purchase.
    pub purchase: TxHash,
    /// Current time, with which deadlines are compared, POSIX ms.
    #[serde(with = "Millis")]
    pub now: u64,
    /// State of the escrow, or the way in which it ended.
    pub state: PurchaseStatus,
    /// Address of the buyer, while the escrow is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buyer: Option<String>,
    /// Address of the seller, while the escrow is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seller: Option<String>,
    /// Amount in the escrow, while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked_lovelace: Option<Lovelace>,
    /// Actions of both parties that are possible now, were possible before, or will be later.
    pub actions: Vec<PossibleAction>,
}

/// An action on an escrow by its buyer or seller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PossibleAction {
    /// Name of the action in the contract.
    pub action: String,
    /// Name of the action for `POST /me/purchases/{id}/actions`; absent for the seller's actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<BuyerAction>,
    /// Party that may perform the action: `buyer` or `seller`.
    pub by: String,
    /// Whether the action is possible now.
    pub timing: ActionTiming,
    /// Time from which the action is possible, POSIX ms.
    #[serde(with = "Millis")]
    pub opens: u64,
    /// Time before which the action's transaction must be included in a block, POSIX ms; absent if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "OptionalMillis")]
    pub closes: Option<u64>,
    /// Approximate network fee of the action; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fee_lovelace: Option<Lovelace>,
    /// Description of the action for people.
    pub words: String,
    /// Party that would win the dispute that this action starts, according to the hashes that the arbiter compares:
    /// `buyer` or `seller`; absent for other actions, and if the hashes do not decide the dispute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_winner: Option<String>,
}

/// An action of a buyer on a protected purchase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BuyerAction {
    /// Asks for the money back, before the seller has posted a proof of delivery.
    RequestRefund,
    /// Disputes the delivery, after the seller has posted a proof, so that the arbiter decides.
    Dispute,
    /// Withdraws the money, if no proof of delivery was posted in time or if the seller agreed to a refund.
    TakeRefund,
    /// Ends a dispute: releases the money to the seller.
    Release,
}

impl BuyerAction {
    /// Returns the action's name in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RequestRefund => "request_refund",
            Self::Dispute => "dispute",
            Self::TakeRefund => "take_refund",
            Self::Release => "release",
        }
    }
}

/// An action on a purchase that the account's service wallet paid for. The service signs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct NewBuyerAction {
    /// Action that the buyer wants to perform.
    pub action: BuyerAction,
}

/// A buyer's action whose transaction was submitted. The purchase shows the action once a block includes the
/// transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SubmittedAction {
    /// The purchase.
    pub purchase: TxHash,
    /// Action that was submitted.
    pub action: BuyerAction,
    /// Id of the action's transaction. A repeated request returns the same id.
    pub tx: TxHash,
}

/// Whether an action is possible now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ActionTiming {
    /// The action will be possible later.
    Early,
    /// The action is possible now.
    Open,
    /// The action is no longer possible.
    Over,
}

/// An action's transaction, for a wallet to sign and submit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ActionDraft {
    /// CBOR of the unsigned transaction, hexadecimal.
    pub transaction: String,
    /// Id of the transaction.
    pub tx_hash: TxHash,
    /// Hashes of the keys that must sign, hexadecimal.
    pub signers: Vec<String>,
    /// Effects of the action.
    pub summary: ActionSummary,
    /// The summary in words, for the person who signs.
    pub words: Vec<String>,
}

/// The effects of a drafted action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ActionSummary {
    /// Name of the action in the contract.
    pub action: String,
    /// Party that performs the action: `buyer` or `seller`.
    pub by: String,
    /// Status of the purchase before the action.
    pub state: PurchaseStatus,
    /// Status of the purchase after the action.
    pub becomes: PurchaseStatus,
    /// Network fee.
    pub fee_lovelace: Lovelace,
    /// Collateral of the transaction, which the wallet loses if the contract's script fails.
    pub collateral_lovelace: Lovelace,
    /// Amount that the wallet receives from the escrow.
    pub receives_lovelace: Lovelace,
    /// Change that the transaction returns to the wallet.
    pub change_lovelace: Lovelace,
    /// Address that receives the change.
    pub change_address: Address,
    /// Native tokens that the transaction returns to the wallet. A key is the policy id followed by the asset name, in
    /// hexadecimal; a value is the quantity as a decimal string.
    pub change_assets: BTreeMap<String, String>,
    /// Time until which the drafted transaction is valid, POSIX ms.
    #[serde(with = "Millis")]
    pub valid_until: u64,
    /// Time until which the contract allows the action, POSIX ms; absent if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "OptionalMillis")]
    pub closes: Option<u64>,
}

/// The answer to a request for an action: the possible actions, or the draft of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged)]
pub enum Actions {
    /// The possible actions, if the request names none.
    Possible(PossibleActions),
    /// The draft of the requested action.
    Draft(ActionDraft),
}
