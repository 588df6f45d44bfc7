//! Listings and their sellers.

use std::str::FromStr;

use cardano::{Address, ContentHash, Lovelace};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::OptionalMillis;

/// Characters of a title.
pub const MAX_TITLE: usize = 120;
/// Characters of a description.
pub const MAX_DESCRIPTION: usize = 2_000;
/// Bytes of UTF-8 of what is sold: 1 MiB.
pub const MAX_CONTENT_BYTES: usize = 1 << 20;
/// Characters of a preview's URL: what browsers and proxies handle without trouble.
pub const MAX_PREVIEW_URL: usize = 2_048;
/// The categories of the catalogue.
pub const CATEGORIES: [&str; 9] =
    ["Landing Page", "Hero", "Portfolio", "SaaS", "Fintech", "3D", "AI", "Editorial", "Wellness"];

/// How what was bought is paid for and delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DeliveryMode {
    /// Paid straight to the seller, delivered at once, no way back.
    Instant,
    /// Locked in escrow; refunded if what was delivered is not what was listed.
    Protected,
}

impl DeliveryMode {
    /// The mode as the API names it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Instant => "instant",
            Self::Protected => "protected",
        }
    }
}

impl FromStr for DeliveryMode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "instant" => Ok(Self::Instant),
            "protected" => Ok(Self::Protected),
            _ => Err(()),
        }
    }
}

/// The order of listings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// Newest first.
    #[default]
    Newest,
    /// Most sales first.
    Popular,
    /// Cheapest first.
    PriceAsc,
    /// Dearest first.
    PriceDesc,
    /// Best sellers' reputation first, sellers without one last; of equal ones who listed last first.
    Reputation,
}

impl FromStr for Sort {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "newest" => Ok(Self::Newest),
            "popular" => Ok(Self::Popular),
            "price_asc" => Ok(Self::PriceAsc),
            "price_desc" => Ok(Self::PriceDesc),
            "reputation" => Ok(Self::Reputation),
            _ => Err(()),
        }
    }
}

/// What kind of thing it is: one of [`CATEGORIES`].
#[cfg(feature = "schema")]
#[derive(Debug)]
pub struct Category;

#[cfg(feature = "schema")]
impl JsonSchema for Category {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Category".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "What kind of thing it is.", "enum": CATEGORIES })
    }
}

/// 100 x withdrawn / (withdrawn + refunded), over the seller's closed escrows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SellerReputation {
    /// Of a hundred, how many were paid out to the seller; rounded half up.
    #[cfg_attr(feature = "schema", schemars(range(max = 100)))]
    pub score: u8,
    /// How many escrows it is made of.
    pub basis: u64,
}

/// What is for sale. It never changes, but for the figures of its sales.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    /// `lst_` and a ULID.
    pub id: String,
    /// One line of text.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = MAX_TITLE)))]
    pub title: String,
    /// What a buyer gets, in the seller's words.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = MAX_DESCRIPTION)))]
    pub description: String,
    /// What it costs; 1 ADA is 1,000,000 lovelace.
    pub price_lovelace: Lovelace,
    /// Who sells; for instant sales also who is paid.
    pub seller_address: Address,
    /// How it may be bought.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub modes: Vec<DeliveryMode>,
    /// SHA-256 of what the buyer receives.
    pub content_hash: ContentHash,
    /// A recording of what the prompt builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(url))]
    pub preview_media: Option<String>,
    /// What kind of thing it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Category>"))]
    pub category: Option<String>,
    /// POSIX ms.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "OptionalMillis")]
    pub created_at: Option<u64>,
    /// Purchases that were not refunded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sales: Option<u64>,
    /// Absent until the seller has a closed escrow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seller_reputation: Option<SellerReputation>,
}

impl Listing {
    /// Whether it may be bought so.
    #[must_use]
    pub fn offers(&self, mode: DeliveryMode) -> bool {
        self.modes.contains(&mode)
    }
}

/// What a seller offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewListing {
    /// One line of text.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = MAX_TITLE)))]
    pub title: String,
    /// What a buyer gets, in the seller's words.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = MAX_DESCRIPTION)))]
    pub description: String,
    /// At least 1,000,000; where `protected` is offered, 5,000,000.
    pub price_lovelace: Lovelace,
    /// With a session, the session's owner sells instead.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^addr_test1")))]
    pub seller_address: String,
    /// How it may be bought, each once.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub modes: Vec<DeliveryMode>,
    /// What is sold: at most 1 MiB of UTF-8. The catalogue never shows it.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = MAX_CONTENT_BYTES)))]
    pub content: String,
    /// An https address that ends in .mp4, .webm, .webp or .gif.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_PREVIEW_URL)))]
    pub preview_media: Option<String>,
    /// What kind of thing it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Category>"))]
    pub category: Option<String>,
}

/// What a seller sells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Creator {
    /// The seller.
    pub address: Address,
    /// The newest; the `Link` header leads to the next page.
    pub listings: Vec<Listing>,
    /// Purchases that were not refunded.
    pub sales: u64,
    /// Absent until the seller has a closed escrow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seller_reputation: Option<SellerReputation>,
}
