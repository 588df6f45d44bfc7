//! `GET /operator/status`: what an operator asks first.

use cardano::{Address, Lovelace, TxHash};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{PurchaseStatus, text::Millis};

/// How the service stands. Nothing in it is secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServiceStatus {
    /// The version, and the deployment's tag where there is one.
    pub version: String,
    /// When this was read.
    #[serde(with = "Millis")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub at: u64,
    /// The watcher's last tick; missing where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_tick: Option<LastTick>,
    /// The newest known block; missing before the first tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_block: Option<KnownBlock>,
    /// Protected purchases whose escrow is open.
    pub open_escrows: u64,
    /// The deadline that comes first among them, or passed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_deadline: Option<OpenDeadline>,
    /// The wallets that pay fees.
    pub wallets: Vec<WalletBalance>,
    /// Calls of the chain's provider today (UTC).
    pub provider_calls: ProviderCalls,
    /// What is still read from the chain after a restore; missing where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<Restoring>,
    /// What an operator must act on; none where all is well.
    pub alarms: Vec<String>,
}

/// A tick of the watcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct LastTick {
    /// When it began.
    #[serde(with = "Millis")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub at: u64,
    /// What it noted: each is tried again.
    pub notes: Vec<String>,
}

/// A block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct KnownBlock {
    /// Its number.
    pub height: u64,
    /// Its time.
    #[serde(with = "Millis")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub at: u64,
}

/// A deadline of an open escrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct OpenDeadline {
    /// The purchase.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub purchase: TxHash,
    /// How it stands: this says what is due.
    pub status: PurchaseStatus,
    /// The deadline.
    #[serde(with = "Millis")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub at: u64,
}

/// A wallet of the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WalletBalance {
    /// `platform` or `arbiter`.
    pub name: String,
    /// Its address.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub address: Address,
    /// What it holds; missing where the provider does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub balance_lovelace: Option<Lovelace>,
}

/// Calls of the chain's provider on this day (UTC).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ProviderCalls {
    /// By the API's project, as the provider counts them; missing where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<u64>,
    /// By the watcher's ticks, as they count themselves.
    pub watcher: u64,
}

/// What is read from the chain after a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Restoring {
    /// Wallets that are still to be read: none of them pays until then.
    pub wallets_left: u64,
}
