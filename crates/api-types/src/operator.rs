//! The operator's status, `GET /operator/status`.

use cardano::{Address, Lovelace, TxHash};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Alarm, PurchaseStatus, text::Millis};

/// Status of the service, without any secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServiceStatus {
    /// Version, and the deployment's tag if there is one.
    pub version: String,
    /// Time of the answer.
    #[serde(with = "Millis")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub at: u64,
    /// The watcher's last tick; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_tick: Option<LastTick>,
    /// Newest known block; absent before the first tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_block: Option<KnownBlock>,
    /// Number of protected purchases with an open escrow.
    pub open_escrows: u64,
    /// Earliest deadline among them, passed or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_deadline: Option<OpenDeadline>,
    /// Wallets that pay fees.
    pub wallets: Vec<WalletBalance>,
    /// Today's calls to the chain provider (UTC).
    pub provider_calls: ProviderCalls,
    /// Progress of reading the chain after a restore; absent if there is nothing to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<Restoring>,
    /// Alarms, which an operator must act on.
    pub alarms: Vec<Alarm>,
}

/// Whether the service can sell now, as far as it knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Readiness {
    /// `true` if there is no problem.
    pub ok: bool,
    /// Names of what is wrong: `database`, or names of alarms, such as `no_tick` or `old_block`.
    pub problems: Vec<String>,
}

/// A tick of the watcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct LastTick {
    /// Time at which it began.
    #[serde(with = "Millis")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub at: u64,
    /// Notes of the tick, each about something that will be retried.
    pub notes: Vec<String>,
}

/// A block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct KnownBlock {
    /// Block height.
    pub height: u64,
    /// Time of the block.
    #[serde(with = "Millis")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub at: u64,
}

/// A deadline of an open escrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct OpenDeadline {
    /// Id of the purchase.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub purchase: TxHash,
    /// Status of the purchase, which tells what is due.
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
    /// Address of the wallet.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub address: Address,
    /// Balance; absent if the provider did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub balance_lovelace: Option<Lovelace>,
}

/// Calls to the chain provider today (UTC).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ProviderCalls {
    /// Calls by the API's project, as the provider counts them; absent if it did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<u64>,
    /// Calls by the watcher's ticks, as counted by themselves.
    pub watcher: u64,
}

/// Progress of reading the chain after a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Restoring {
    /// Number of wallets still to be read. None of them pays until it has been.
    pub wallets_left: u64,
}
