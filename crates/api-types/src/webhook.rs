//! Webhooks and private feeds of an account's events.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{Millis, OptionalMillis};

/// Whether the service sends events to a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WebhookStatus {
    /// Events are sent.
    Active,
    /// The last attempt failed. Sending is retried.
    Failing,
    /// Switched off after three days of failures, or because the address answered 410 Gone.
    Off,
}

/// The address to which an account's events are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// The address: https, on a public host name.
    pub url: String,
    /// Whether events are sent.
    pub status: WebhookStatus,
    /// Time at which the webhook was added, POSIX ms.
    #[serde(with = "Millis")]
    pub created_at: u64,
    /// Time of the last delivery, POSIX ms; absent if nothing was delivered yet.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "OptionalMillis")]
    pub delivered_at: Option<u64>,
    /// Time of the first failure since the last delivery, POSIX ms.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "OptionalMillis")]
    pub failing_since: Option<u64>,
    /// Time at which the webhook was switched off, POSIX ms.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "OptionalMillis")]
    pub off_since: Option<u64>,
    /// Reason of the last failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Secret that signs the messages: `whsec_` and base64. Only present in the answer to the request that adds the
    /// webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// An address for an account's events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct NewWebhook {
    /// The address: https, on a public host name and the default port, without user name and fragment.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 512)))]
    pub url: String,
}

/// The private address of an account's feed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct FeedAddress {
    /// Address of the feed. The address contains a secret token and is shown only once.
    pub url: String,
}
