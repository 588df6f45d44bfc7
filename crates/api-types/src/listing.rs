//! Listings and their sellers.

use std::str::FromStr;

use cardano::{Address, ContentHash, Lovelace};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::OptionalMillis;

/// Maximum length of a listing's title in characters.
pub const MAX_TITLE: usize = 120;
/// Maximum length of a listing's description in characters.
pub const MAX_DESCRIPTION: usize = 2_000;
/// Maximum length of an excerpt from a listing's content in characters.
pub const MAX_EXCERPT: usize = 500;
/// Maximum length of a seller's display name in characters.
pub const MAX_SELLER_NAME: usize = 40;
/// Maximum size of a listing's content, in bytes of UTF-8: 1 MiB.
pub const MAX_CONTENT_BYTES: usize = 1 << 20;
/// Maximum length of a preview's URL in characters. Browsers and proxies handle URLs up to this length.
pub const MAX_PREVIEW_URL: usize = 2_048;
/// The categories of the catalogue.
pub const CATEGORIES: [&str; 9] =
    ["Landing Page", "Hero", "Portfolio", "SaaS", "Fintech", "3D", "AI", "Editorial", "Wellness"];

/// The way in which a listing is paid for and delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DeliveryMode {
    /// Paid directly to the seller and delivered at once, without a refund.
    Instant,
    /// Locked in an escrow, and refunded if the delivered content is not the listed content.
    Protected,
}

impl DeliveryMode {
    /// Returns the mode's name in the API.
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

/// Sort order of listings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// Newest first.
    #[default]
    Newest,
    /// Largest number of sales first.
    Popular,
    /// Lowest price first.
    PriceAsc,
    /// Highest price first.
    PriceDesc,
    /// Highest seller reputation first, sellers without a reputation last. Listings with equal reputation are sorted
    /// newest first.
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

/// Category of a listing: one of [`CATEGORIES`].
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

/// A seller's reputation: 100 × `withdrawn` / (`withdrawn` + `refunded`), where `withdrawn` and `refunded` are the
/// numbers of escrows that ended with this status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SellerReputation {
    /// Percentage of escrows that were paid out to the seller, rounded half up.
    #[cfg_attr(feature = "schema", schemars(range(max = 100)))]
    pub score: u8,
    /// Number of closed escrows on which the score is based.
    pub basis: u64,
}

/// Counts of a seller's disputes that an arbiter has decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Disputes {
    /// Number of decided disputes.
    pub decided: u64,
    /// Number of disputes that were decided for the buyer.
    pub lost: u64,
}

/// Length of a listing's content, counted by the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ContentStats {
    /// Number of words, separated by white space.
    pub words: u64,
    /// Number of characters.
    pub characters: u64,
}

impl ContentStats {
    /// Counts the words and characters of a listing's content.
    #[must_use]
    pub fn of(content: &str) -> Self {
        let count = |number| u64::try_from(number).unwrap_or(u64::MAX);
        Self { words: count(content.split_whitespace().count()), characters: count(content.chars().count()) }
    }
}

/// A listing. Its seller may edit title, description, price, preview, category and excerpt; the content never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    /// Id of the listing: `lst_` and a ULID.
    pub id: String,
    /// Title of the listing, one line of text.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = MAX_TITLE)))]
    pub title: String,
    /// Description by the seller.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = MAX_DESCRIPTION)))]
    pub description: String,
    /// Price; 1 ADA is 1,000,000 lovelace.
    pub price_lovelace: Lovelace,
    /// Address of the seller. Instant sales are paid to it.
    pub seller_address: Address,
    /// Display name that the seller chose. Names are not unique and prove nothing: always show the address beside the
    /// name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = MAX_SELLER_NAME)))]
    pub seller_name: Option<String>,
    /// Available delivery modes.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub modes: Vec<DeliveryMode>,
    /// SHA-256 of the listing's content.
    pub content_hash: ContentHash,
    /// URL of a recording that shows the result of using the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(url))]
    pub preview_media: Option<String>,
    /// Category of the listing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Category>"))]
    pub category: Option<String>,
    /// Part of the content that the seller chose to show. The service has checked that the content contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = MAX_EXCERPT)))]
    pub excerpt: Option<String>,
    /// Length of the whole content, for a listing with an excerpt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_stats: Option<ContentStats>,
    /// Time at which the listing was created, POSIX ms.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "OptionalMillis")]
    pub created_at: Option<u64>,
    /// Number of sales that were not refunded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sales: Option<u64>,
    /// The seller's reputation; absent until the seller has a closed escrow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seller_reputation: Option<SellerReputation>,
}

impl Listing {
    /// Returns whether the listing is available in this mode.
    #[must_use]
    pub fn offers(&self, mode: DeliveryMode) -> bool {
        self.modes.contains(&mode)
    }
}

/// A new listing to offer for sale.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewListing {
    /// Title of the listing, one line of text.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = MAX_TITLE)))]
    pub title: String,
    /// Description by the seller.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = MAX_DESCRIPTION)))]
    pub description: String,
    /// Price in lovelace: at least 1,000,000, or 5,000,000 if `protected` is among the modes.
    pub price_lovelace: Lovelace,
    /// Address of the seller. In a session, the session's owner is the seller instead.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^addr_test1")))]
    pub seller_address: String,
    /// Available delivery modes, without duplicates.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub modes: Vec<DeliveryMode>,
    /// Content for sale: at most 1 MiB of UTF-8. The catalogue never shows it.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = MAX_CONTENT_BYTES)))]
    pub content: String,
    /// URL of a preview: an https address that ends in .mp4, .webm, .webp or .gif.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_PREVIEW_URL)))]
    pub preview_media: Option<String>,
    /// Category of the listing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Category>"))]
    pub category: Option<String>,
    /// Part of the content to show to everyone. The text must occur in the content, character for character.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_EXCERPT)))]
    pub excerpt: Option<String>,
}

/// Changes to a listing by its seller. Absent fields stay as they are, and the content never changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ListingChanges {
    /// New title, one line of text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = MAX_TITLE)))]
    pub title: Option<String>,
    /// New description by the seller.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = MAX_DESCRIPTION)))]
    pub description: Option<String>,
    /// New price in lovelace: at least 1,000,000, or 5,000,000 if `protected` is among the modes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_lovelace: Option<Lovelace>,
    /// New URL of a preview: an https address that ends in .mp4, .webm, .webp or .gif. An empty text removes the
    /// preview.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_PREVIEW_URL)))]
    pub preview_media: Option<String>,
    /// New category. An empty text removes the category.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// New excerpt, which must occur in the content, character for character. An empty text removes the excerpt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_EXCERPT)))]
    pub excerpt: Option<String>,
}

/// A seller with their listings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Creator {
    /// Address of the seller.
    pub address: Address,
    /// Display name that the seller chose. Names are not unique and prove nothing: always show the address beside the
    /// name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = MAX_SELLER_NAME)))]
    pub seller_name: Option<String>,
    /// A page of the seller's listings, newest first. The `Link` header has the address of the next page.
    pub listings: Vec<Listing>,
    /// Number of sales that were not refunded.
    pub sales: u64,
    /// Reputation; absent until the seller has a closed escrow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seller_reputation: Option<SellerReputation>,
    /// Counts of the seller's disputes that an arbiter has decided; absent until one is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disputes: Option<Disputes>,
}
