//! What pages show, read from the API's own JSON: a page and a program are never told different things.

use cardano::{Address, ContentHash, Lovelace, TxHash};
use market::{
    DeliveryMode,
    purchase::{Status, Verification},
};
use serde::{Deserialize, Deserializer, de};

/// A seller's closed escrows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Reputation {
    /// Of a hundred, how many were paid out to the seller.
    pub score: u8,
    /// How many there are.
    pub basis: u64,
}

/// A listing of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields of the public API")]
pub struct Listing {
    pub id: String,
    pub title: String,
    pub description: String,
    pub price_lovelace: Lovelace,
    pub seller_address: Address,
    pub modes: Vec<DeliveryMode>,
    pub content_hash: ContentHash,
    pub preview_media: Option<String>,
    pub category: Option<String>,
    #[serde(default, deserialize_with = "millis_or_none")]
    pub created_at: Option<u64>,
    #[serde(default)]
    pub sales: u64,
    pub seller_reputation: Option<Reputation>,
}

impl Listing {
    /// Whether it may be bought so.
    #[must_use]
    pub fn offers(&self, mode: DeliveryMode) -> bool {
        self.modes.contains(&mode)
    }
}

/// Who sells.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields of the public API")]
pub struct Seller {
    #[serde(default)]
    pub sales: u64,
    pub seller_reputation: Option<Reputation>,
}

/// A purchase with its timeline.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields of the public API")]
pub struct Purchase {
    pub id: TxHash,
    pub listing_id: String,
    pub mode: DeliveryMode,
    pub buyer_address: Address,
    pub status: Status,
    pub events: Vec<Event>,
    pub escrow: Option<Escrow>,
    pub verification: Option<Verification>,
}

/// One transaction of a purchase.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields of the public API")]
pub struct Event {
    /// A status, or `creator_paid`.
    pub status: String,
    pub tx_hash: TxHash,
    /// POSIX ms.
    #[serde(deserialize_with = "millis")]
    pub at: u64,
}

/// The escrow of a protected purchase.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields of the public API")]
pub struct Escrow {
    pub address: String,
    pub input_hash: String,
    pub result_hash: Option<String>,
    pub deadlines: Deadlines,
}

/// When what may happen, POSIX ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields of the public API")]
pub struct Deadlines {
    #[serde(deserialize_with = "millis")]
    pub submit_result: u64,
    #[serde(deserialize_with = "millis")]
    pub unlock: u64,
    #[serde(deserialize_with = "millis")]
    pub external_dispute_unlock: u64,
}

pub(crate) fn millis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(|_| de::Error::custom("not POSIX ms"))
}

fn millis_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    millis(deserializer).map(Some)
}
