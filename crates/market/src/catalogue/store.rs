//! New listings: each kept once, within what one seller may take up.

use cardano::ContentHash;
use serde_json::json;
use sql::{Database, DatabaseError, Param, Rows, Statement, exactly};

use super::{LISTING_JSON, LISTINGS};
use crate::{
    contents::Contents,
    limits::{DAY_MS, day},
    listing::{DeliveryMode, ListingId, NewListing},
    network,
    port_error::PortError,
};

/// What may be taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Listings of one seller, hidden ones too.
    pub listings: u64,
    /// Bytes of their contents together.
    pub bytes: u64,
    /// Bytes that all sellers together may add on one day (UTC): contents and descriptions.
    pub daily_bytes: u64,
}

/// Part of a day's room that one network may take up; never less than a few listings of the greatest length.
const NETWORK_FRACTION: u64 = 64;
const NETWORK_MIN_BYTES: u64 = 4 << 20;

impl Quota {
    fn of_network(&self) -> u64 {
        (self.daily_bytes / NETWORK_FRACTION).max(NETWORK_MIN_BYTES).min(self.daily_bytes)
    }
}

/// Where an offer comes from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Source<'a> {
    /// The digest that the seller signed, if a signature made the offer.
    pub proof: Option<&'a str>,
    /// The network that it was sent from.
    pub network: &'a str,
}

impl Default for Quota {
    fn default() -> Self {
        Self { listings: 1_000, bytes: 256 << 20, daily_bytes: 1 << 30 }
    }
}

/// Which quota a listing would exceed. The text says what to do.
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
        /// The most.
        bytes: u64,
        /// Seconds until the next day.
        wait_s: u64,
    },
}

/// The outcome of an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The listing: new, or made by the same offer before.
    Listing {
        id: String,
        /// The listing as JSON.
        json: String,
    },
    /// This signature came before with other words around it.
    OfferChanged,
    /// All that may be taken up is.
    QuotaExceeded(QuotaExceeded),
}

/// One offer that becomes a listing.
struct Offer<'a> {
    id: &'a ListingId,
    listing: &'a NewListing,
    hash: ContentHash,
    source: Source<'a>,
    quota: Quota,
    now_ms: u64,
}

/// Stores a listing. Sent again, the same signed offer finds the listing that it made and makes no other. In a session it
/// is the same offer if it comes within a day, word for word.
///
/// What is sold is kept before the listing: there is none whose content is missing. Room of the day is taken before that, and
/// never given back: however many offers come at once, no more is written.
///
/// # Errors
/// The database or the store of contents cannot be asked.
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
    let [state, taken] = exactly(db.batch(vec![offer.state(), offer.take_quota()]).await?)?;
    if let Some(stored) = offer.outcome(&state) {
        return Ok(stored);
    }
    if taken.first().is_none() {
        return Ok(Stored::QuotaExceeded(offer.tomorrow()));
    }
    contents.put(&offer.hash, &listing.content).await?;
    let [_, state] = exactly(db.batch(vec![offer.insert(), offer.state()]).await?)?;
    let missing = || DatabaseError("a listing with room for it was not kept".into());
    Ok(offer.outcome(&state).ok_or_else(missing)?)
}

/// SQL: the number of the listing that an offer made, now or before.
const EXISTING: &str = "coalesce((SELECT seq FROM listings WHERE id = ?1), \
    (SELECT seq FROM listings WHERE proof_digest = ?2 AND offer_digest = ?6), \
    (SELECT seq FROM listings WHERE seller_address = ?3 AND content_hash = ?4 AND offer_digest = ?6 AND created_at_ms > ?5 \
      AND ?2 IS NULL ORDER BY created_at_ms LIMIT 1))";

/// SQL: why an offer makes no listing: `changed`, `listings`, `bytes`; or that there is `room`.
const QUOTA_STATE: &str = "CASE WHEN EXISTS (SELECT 1 FROM listings WHERE proof_digest = ?2) THEN 'changed' \
    WHEN coalesce((SELECT listed FROM sellers WHERE address = ?3), 0) >= ?7 THEN 'listings' \
    WHEN coalesce((SELECT listed_bytes FROM sellers WHERE address = ?3), 0) + ?8 > ?9 THEN 'bytes' \
    ELSE 'room' END";

impl Offer<'_> {
    fn bytes(&self) -> u64 {
        u64::try_from(self.listing.content.len()).unwrap_or(u64::MAX)
    }

    /// The values that the conditions are over, `?1` to `?9`, and these others.
    fn params<const N: usize>(&self, others: [Param; N]) -> Vec<Param> {
        let conditions: [Param; 9] = [
            self.id.as_str().into(),
            self.source.proof.into(),
            self.listing.seller.into(),
            self.hash.into(),
            // Since when an offer in a session counts as the same.
            self.now_ms.saturating_sub(DAY_MS).into(),
            self.listing.offer_digest().into(),
            self.quota.listings.into(),
            self.bytes().into(),
            self.quota.bytes.into(),
        ];
        conditions.into_iter().chain(others).collect()
    }

    /// The statement that reads the listing that this offer made, now or before, as `id json`; or else whether it may make one.
    fn state(&self) -> Statement {
        let made = format!("SELECT id || ' ' || {LISTING_JSON} FROM {LISTINGS} WHERE seq = {EXISTING}");
        Statement { sql: format!("SELECT coalesce(({made}), {QUOTA_STATE})").into(), params: self.params([]) }
    }

    /// The statement that makes the listing, unless it is there or there is no room for it: of two at once, the second
    /// sees the first.
    fn insert(&self) -> Statement {
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
        ];
        Statement { sql: sql.into(), params: self.params(others) }
    }

    /// The statement that counts an offer against the daily quotas of all sellers and of its network, if it is to make
    /// a listing. Of two concurrent offers for the last of a quota, one succeeds. It returns rows if there was room.
    fn take_quota(&self) -> Statement {
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
        Statement { sql: sql.into(), params }
    }

    const fn tomorrow(&self) -> QuotaExceeded {
        let wait_s = DAY_MS.saturating_sub(self.now_ms % DAY_MS).div_ceil(1_000);
        QuotaExceeded::Today { bytes: self.quota.daily_bytes, wait_s }
    }

    fn outcome(&self, state: &Rows) -> Option<Stored> {
        let state = state.first()?;
        if let Some((id, json)) = state.split_once(' ') {
            return Some(Stored::Listing { id: id.to_owned(), json: json.to_owned() });
        }
        match state {
            "changed" => Some(Stored::OfferChanged),
            "listings" => Some(Stored::QuotaExceeded(QuotaExceeded::Listings(self.quota.listings))),
            "bytes" => Some(Stored::QuotaExceeded(QuotaExceeded::Bytes(self.quota.bytes))),
            _ => None,
        }
    }
}
