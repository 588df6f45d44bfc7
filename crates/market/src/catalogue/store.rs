//! Stores new listings, each offer only once, and within quotas.

use cardano::ContentHash;
use serde::Deserialize;
use serde_json::json;
use sql::{Database, DatabaseError, One, Param, Read, Write};

use super::{LISTING_JSON, terms};
use crate::{
    contents::Contents,
    limits::{DAY_MS, day},
    listing::{DeliveryMode, ListingId, NewListing},
    network,
    port_error::PortError,
};

/// Storage quotas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Maximum number of a seller's listings, including hidden ones.
    pub listings: u64,
    /// Maximum total size of a seller's contents in bytes.
    pub bytes: u64,
    /// Maximum number of bytes of contents and descriptions that all sellers together may add per UTC day.
    pub daily_bytes: u64,
}

/// Divisor of the daily quota that gives the share of one client network (an IPv4 address or an IPv6 prefix). The share
/// suffices for a few listings of maximum size.
const NETWORK_FRACTION: u64 = 64;
const NETWORK_MIN_BYTES: u64 = 4 << 20;

impl Quota {
    fn of_network(&self) -> u64 {
        (self.daily_bytes / NETWORK_FRACTION).max(NETWORK_MIN_BYTES).min(self.daily_bytes)
    }
}

/// Origin of an offer of a new listing, which determines the quotas that apply to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Source<'a> {
    /// Digest that the seller signed; `None` if the offer was made in a session.
    pub proof: Option<&'a str>,
    /// Network from which the client sent the request.
    pub network: &'a str,
}

impl Default for Quota {
    fn default() -> Self {
        Self { listings: 1_000, bytes: 256 << 20, daily_bytes: 1 << 30 }
    }
}

/// Exceeded quota, worded for the seller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuotaExceeded {
    #[error(
        "this seller has {0} listings, the most for one seller: sell from another address, or ask the operator for more"
    )]
    Listings(u64),
    #[error(
        "the contents of this seller's listings would be more than {0} bytes, the most for one seller: offer shorter content, or ask the operator for more"
    )]
    Bytes(u64),
    #[error(
        "no more new listings today: the service takes {bytes} bytes of them a day, and a 64th of that from one network; nothing was listed; try again after 00:00 UTC, or ask the operator for more"
    )]
    Today {
        /// Daily quota of all sellers together, in bytes.
        bytes: u64,
        /// Number of seconds until the daily quota is reset at 00:00 UTC.
        retry_after_s: u64,
    },
}

/// Result of an offer to list something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The new listing, or the listing of an identical earlier offer.
    Listing {
        id: String,
        /// The listing as JSON.
        json: String,
    },
    /// The same signature was used for a different offer.
    OfferChanged,
    /// A quota is used up.
    QuotaExceeded(QuotaExceeded),
}

/// An offer of a new listing, with the id for the listing and the quotas that apply.
struct Offer<'a> {
    id: &'a ListingId,
    listing: &'a NewListing,
    hash: ContentHash,
    source: Source<'a>,
    quota: Quota,
    now_ms: u64,
}

/// Stores a listing.
///
/// Repeating a signed offer returns the listing that it created. An offer in a session counts as repeated if an
/// identical one was made within the last day.
///
/// The content is stored before the listing, so no listing lacks its content. The daily quota is charged first and
/// never refunded, so concurrent offers cannot exceed it.
///
/// # Errors
/// Returns an error if the database or the content store failed.
pub async fn store(
    db: &impl Database,
    contents: &impl Contents,
    id: &ListingId,
    listing: &NewListing,
    source: Source<'_>,
    quota: Quota,
    now_ms: u64,
) -> Result<Stored, PortError> {
    let offer = Offer { id, listing, hash: listing.content_hash(), source, quota, now_ms };
    let (One(state), taken) = db.batch((offer.state(), offer.take_quota())).await?;
    if let Some(stored) = offer.outcome(state) {
        return Ok(stored);
    }
    if taken.is_empty() {
        return Ok(Stored::QuotaExceeded(offer.tomorrow()));
    }
    contents.put(&offer.hash, &listing.content).await?;
    let ((), One(state)) = db.batch((offer.insert(), offer.state())).await?;
    let missing = || DatabaseError("a listing within its quotas was not stored".into());
    Ok(offer.outcome(state).ok_or_else(missing)?)
}

/// SQL expression for the sequence number of the listing created by this offer or by an identical earlier one; NULL if
/// there is none.
const EXISTING: &str = "coalesce((SELECT seq FROM listings WHERE id = ?1), \
    (SELECT seq FROM listings WHERE proof_digest = ?2 AND offer_digest = ?6), \
    (SELECT seq FROM listings WHERE seller_address = ?3 AND content_hash = ?4 AND offer_digest = ?6 AND created_at_ms > ?5 \
      AND ?2 IS NULL ORDER BY created_at_ms LIMIT 1))";

/// Whether an offer can create a listing, and if not, why.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum QuotaState {
    /// The offer's signature was used for another offer.
    Changed,
    /// The seller has too many listings.
    Listings,
    /// The total size of the seller's contents is too large.
    Bytes,
    /// The offer can create a listing.
    Room,
}

/// State of an offer: the listing that it created, or whether it can create one.
#[derive(Deserialize)]
struct OfferState {
    /// Id of the listing that the offer created; `None` if it created none.
    id: Option<String>,
    json: Option<String>,
    quota: QuotaState,
}

/// SQL expression for a [`QuotaState`].
const QUOTA_STATE: &str = "CASE WHEN EXISTS (SELECT 1 FROM listings WHERE proof_digest = ?2) THEN 'changed' \
    WHEN coalesce((SELECT listed FROM sellers WHERE address = ?3), 0) >= ?7 THEN 'listings' \
    WHEN coalesce((SELECT listed_bytes FROM sellers WHERE address = ?3), 0) + ?8 > ?9 THEN 'bytes' \
    ELSE 'room' END";

impl Offer<'_> {
    fn bytes(&self) -> u64 {
        u64::try_from(self.listing.content.len()).unwrap_or(u64::MAX)
    }

    /// Returns the parameters `?1` to `?9` of the SQL conditions on an offer, followed by additional ones.
    fn params<const N: usize>(&self, others: [Param; N]) -> Vec<Param> {
        let conditions: [Param; 9] = [
            self.id.as_str().into(),
            self.source.proof.into(),
            self.listing.seller.into(),
            self.hash.into(),
            // Identical offers that were made in a session after this time count as the same offer.
            self.now_ms.saturating_sub(DAY_MS).into(),
            self.listing.offer_digest().into(),
            self.quota.listings.into(),
            self.bytes().into(),
            self.quota.bytes.into(),
        ];
        conditions.into_iter().chain(others).collect()
    }

    fn state(&self) -> Read<One<OfferState>> {
        let sql = format!(
            "SELECT id, {LISTING_JSON} AS json, {QUOTA_STATE} AS quota \
             FROM (SELECT {EXISTING} AS existing) LEFT JOIN listings ON listings.seq = existing \
             LEFT JOIN sellers ON sellers.address = listings.seller_address"
        );
        Read::new(sql, self.params([]))
    }

    /// Builds the statement that inserts the listing, unless the listing exists or would exceed a quota. If two such
    /// statements run concurrently, the second sees the first one's listing.
    fn insert(&self) -> Write {
        let Self { id, listing, now_ms, .. } = *self;
        let sql = format!(include_str!("insert_listing.sql"), quota_state = QUOTA_STATE, existing = EXISTING);
        let others = [
            listing.card(id, now_ms).into(),
            listing.title.as_str().into(),
            listing.description.as_str().into(),
            listing.price.into(),
            listing.modes.contains(&DeliveryMode::Instant).into(),
            listing.modes.contains(&DeliveryMode::Protected).into(),
            listing.category.into(),
            now_ms.into(),
            terms::of_listing(&listing.title, &listing.description, listing.category).into(),
        ];
        Write::new(sql, self.params(others))
    }

    /// Builds the statement that charges an offer's size to two daily quotas, the quota of all sellers and the quota of
    /// the client's network, if the offer would create a listing.
    ///
    /// Returns one row per quota if both suffice, and no rows otherwise. If two concurrent offers compete for the rest
    /// of a quota, only one succeeds.
    fn take_quota(&self) -> Write<Vec<String>> {
        let sql = format!(
            "INSERT INTO daily_listing_usage (day, network, bytes) SELECT ?10, share.value ->> 0, ?11 FROM json_each(?12) share \
             WHERE {QUOTA_STATE} = 'room' AND {EXISTING} IS NULL \
               AND NOT EXISTS (SELECT 1 FROM json_each(?12) known LEFT JOIN daily_listing_usage \
                 ON day = ?10 AND network = known.value ->> 0 WHERE coalesce(bytes, 0) + ?11 > known.value ->> 1) \
             ON CONFLICT (day, network) DO UPDATE SET bytes = bytes + excluded.bytes RETURNING 'taken'"
        );
        let texts = u64::try_from(self.listing.card(self.id, self.now_ms).len()).unwrap_or(u64::MAX);
        let taken = self.bytes().saturating_add(texts);
        let network = network::daily_digest(self.source.network, self.now_ms);
        let shares = json!([["", self.quota.daily_bytes], [network, self.quota.of_network()]]);
        let params = self.params([day(self.now_ms).into(), taken.into(), shares.to_string().into()]);
        Write::new(sql, params)
    }

    const fn tomorrow(&self) -> QuotaExceeded {
        let retry_after_s = DAY_MS.saturating_sub(self.now_ms % DAY_MS).div_ceil(1_000);
        QuotaExceeded::Today { bytes: self.quota.daily_bytes, retry_after_s }
    }

    fn outcome(&self, OfferState { id, json, quota }: OfferState) -> Option<Stored> {
        if let Some((id, json)) = id.zip(json) {
            return Some(Stored::Listing { id, json });
        }
        match quota {
            QuotaState::Changed => Some(Stored::OfferChanged),
            QuotaState::Listings => Some(Stored::QuotaExceeded(QuotaExceeded::Listings(self.quota.listings))),
            QuotaState::Bytes => Some(Stored::QuotaExceeded(QuotaExceeded::Bytes(self.quota.bytes))),
            QuotaState::Room => None,
        }
    }
}
