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
    /// Version of the program, with the deployment's tag if there is one.
    pub version: String,
    /// Time at which this status was determined, POSIX ms.
    #[serde(with = "Millis")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub at: u64,
    /// Last run of the watcher (tick); absent before the first run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_tick: Option<LastTick>,
    /// Newest known block; absent before the watcher's first run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_block: Option<KnownBlock>,
    /// Number of protected purchases with an open escrow.
    pub open_escrows: u64,
    /// Earliest deadline of all open escrows. This deadline may have passed already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_deadline: Option<OpenDeadline>,
    /// Wallets from which the service pays network fees.
    pub wallets: Vec<WalletBalance>,
    /// Calls to the chain provider today (UTC).
    pub provider_calls: ProviderCalls,
    /// Progress of checking wallets against the chain after the database was restored; absent if no wallet remains to
    /// be checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<Restoring>,
    /// Current alarms, on which the operator must act.
    pub alarms: Vec<Alarm>,
}

/// Whether the service can sell now, as far as it knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Readiness {
    /// `true` if there is no problem.
    pub ok: bool,
    /// Names of the problems: `database`, or names of alarms, such as `no_tick` or `old_block`.
    pub problems: Vec<String>,
}

/// A run of the watcher (tick).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct LastTick {
    /// Time at which the run began, POSIX ms.
    #[serde(with = "Millis")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub at: u64,
    /// Notes of the run. Each note describes a step that failed and will be retried.
    pub notes: Vec<String>,
}

/// A block of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct KnownBlock {
    /// Block height.
    pub height: u64,
    /// Time of the block, POSIX ms.
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
    /// Status of the purchase, which tells what must happen before the deadline.
    pub status: PurchaseStatus,
    /// Time of the deadline, POSIX ms.
    #[serde(with = "Millis")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub at: u64,
}

/// Balance of a wallet of the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WalletBalance {
    /// Name of the wallet: `platform` or `arbiter`.
    pub name: String,
    /// Address of the wallet.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub address: Address,
    /// Balance of the wallet; absent if the chain provider did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub balance_lovelace: Option<Lovelace>,
}

/// Calls to the chain provider today (UTC).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ProviderCalls {
    /// Number of calls made with the API's project id, as counted by the provider; absent if the provider did not
    /// answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<u64>,
    /// Number of calls made by the watcher, as counted by the watcher itself.
    pub watcher: u64,
}

/// Progress of checking wallets against the chain after the database was restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Restoring {
    /// Number of wallets whose transactions have yet to be read. A wallet makes no payments until its transactions have
    /// been read.
    pub wallets_left: u64,
}
