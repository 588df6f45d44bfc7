//! Transactions drafted for wallets to sign.

use std::collections::BTreeMap;

use cardano::{Address, Lovelace, TxHash};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{DeliveryMode, EscrowDeadlines, PurchaseStatus, text::Millis, text::OptionalMillis};

/// A wallet, as CIP-30 describes it, and how its owner wants to pay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewPaymentDraft {
    /// Look the output that pays up first, so that a wallet on another network is told before it signs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_inputs: Option<bool>,
    /// The delivery mode: instant or protected.
    pub mode: DeliveryMode,
    /// `getChangeAddress()`: hexadecimal, or bech32.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub change_address: String,
    /// `getUtxos()`: hexadecimal of CBOR.
    pub utxos: Vec<String>,
    /// `getCollateral()`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collateral: Option<Vec<String>>,
    /// `getUsedAddresses()`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<String>>,
    /// `h` of the extension `cardano-request-commitment`, for `GET /listings/{id}/unlock`: the transaction's metadata
    /// carry it. The salt stays with the client until it pays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[0-9a-f]{64}$")))]
    pub commitment: Option<String>,
}

/// A payment for a wallet to sign: nothing of it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PaymentDraft {
    /// Hexadecimal of the CBOR, without signatures.
    pub transaction: String,
    /// The transaction's id.
    pub tx_hash: TxHash,
    /// Hashes of the keys that have to sign, hexadecimal.
    pub signers: Vec<String>,
    /// An x402 PaymentPayload that lacks `payload.transaction`: base64 of the signed transaction.
    pub payment: Map<String, Value>,
    /// What is paid, locked, spent on fees and given back.
    pub summary: PaymentSummary,
    /// The summary in words, for the person who signs.
    pub words: Vec<String>,
}

/// What a drafted payment does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PaymentSummary {
    /// How it is paid.
    pub mode: DeliveryMode,
    /// The listing's price.
    pub price_lovelace: Lovelace,
    /// Who gets it: the seller, or the contract.
    pub pay_to: String,
    /// What goes there.
    pub locked_lovelace: Lovelace,
    /// Of it, what comes back whatever happens.
    pub collateral_lovelace: Lovelace,
    /// The network's.
    pub fee_lovelace: Lovelace,
    /// What comes back at once.
    pub change_lovelace: Lovelace,
    /// The address that gets the change.
    pub change_address: Address,
    /// Tokens that come back, by unit; quantities are decimal texts.
    pub change_assets: BTreeMap<String, String>,
    /// Who is the buyer.
    pub buyer_address: Address,
    /// POSIX ms.
    #[serde(with = "Millis")]
    pub valid_until: u64,
    /// Of a protected purchase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadlines: Option<EscrowDeadlines>,
}

/// What to do with a protected purchase; with it, the wallet as for a payment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewActionDraft {
    /// One of those that the answer without it lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// As for a payment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_address: Option<String>,
    /// As for a payment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utxos: Option<Vec<String>>,
    /// As for a payment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collateral: Option<Vec<String>>,
    /// As for a payment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<String>>,
}

/// What may be done with a protected purchase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PossibleActions {
    /// The purchase.
    pub purchase: TxHash,
    /// The clock of escrow matters, POSIX ms.
    #[serde(with = "Millis")]
    pub now: u64,
    /// The escrow's, or how it ended.
    pub state: PurchaseStatus,
    /// Who gets the money back, while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buyer: Option<String>,
    /// Who collects, while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seller: Option<String>,
    /// What it holds, while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked_lovelace: Option<Lovelace>,
    /// What its parties may do, now, before or later.
    pub actions: Vec<PossibleAction>,
}

/// One thing that a party of an escrow may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PossibleAction {
    /// The contract's name for it.
    pub action: String,
    /// `buyer` or `seller`.
    pub by: String,
    /// Whether now.
    pub timing: ActionTiming,
    /// From when, POSIX ms.
    #[serde(with = "Millis")]
    pub opens: u64,
    /// Until when, POSIX ms, if it ends.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "OptionalMillis")]
    pub closes: Option<u64>,
    /// What the network takes, about; absent where that is not known yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fee_lovelace: Option<Lovelace>,
    /// What it means.
    pub words: String,
}

/// Whether an action may be taken now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ActionTiming {
    /// Later.
    Early,
    /// Possible now.
    Open,
    /// No longer possible.
    Over,
}

/// An action for a wallet to sign and submit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ActionDraft {
    /// Hexadecimal of the CBOR, without signatures.
    pub transaction: String,
    /// The transaction's id.
    pub tx_hash: TxHash,
    /// Hashes of the keys that have to sign, hexadecimal.
    pub signers: Vec<String>,
    /// What it does.
    pub summary: ActionSummary,
    /// The summary in words, for the person who signs.
    pub words: Vec<String>,
}

/// What a drafted action does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ActionSummary {
    /// The contract's name for it.
    pub action: String,
    /// `buyer` or `seller`.
    pub by: String,
    /// How the purchase stands before.
    pub state: PurchaseStatus,
    /// How the purchase stands then.
    pub becomes: PurchaseStatus,
    /// The network's.
    pub fee_lovelace: Lovelace,
    /// What is pledged for a script that fails.
    pub collateral_lovelace: Lovelace,
    /// What the wallet gets of the escrow.
    pub receives_lovelace: Lovelace,
    /// What comes back.
    pub change_lovelace: Lovelace,
    /// The address that gets the change.
    pub change_address: Address,
    /// Tokens that come back, by unit; quantities are decimal texts.
    pub change_assets: BTreeMap<String, String>,
    /// POSIX ms.
    #[serde(with = "Millis")]
    pub valid_until: u64,
    /// Until when it may be done at all, POSIX ms, if that ends.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "OptionalMillis")]
    pub closes: Option<u64>,
}

/// What may be done, or the draft of what is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged)]
pub enum Actions {
    /// Asked without an action.
    Possible(PossibleActions),
    /// Asked for one.
    Draft(ActionDraft),
}
