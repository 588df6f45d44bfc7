//! New listings: each kept once, within what one seller may take up.

use cardano::ContentHash;
use sql::{Database, DatabaseError, Rows, Statement, exactly, statement};

use super::{LISTING_JSON, LISTINGS};
use crate::{
    account::DAY_MS,
    contents::{Contents, ContentsError},
    listing::{ListingId, NewListing},
};

/// What one seller may take up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Listings, hidden ones too.
    pub listings: u64,
    /// Bytes of their contents together.
    pub bytes: u64,
}

impl Default for Quota {
    fn default() -> Self {
        Self { listings: 1_000, bytes: 256 << 20 }
    }
}

/// Which quota a listing would exceed. The text says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// Too many listings.
    #[error(
        "this seller has {0} listings, the most that one may have: sell from another address, or ask the operator for more"
    )]
    Listings(u64),
    /// Too many bytes.
    #[error(
        "with this content the seller's listings would take more than {0} bytes, the most that one may: sell less content, \
         or ask the operator for more"
    )]
    Bytes(u64),
}

/// What became of an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The listing: new, or made by the same offer before.
    Listing {
        id: String,
        /// The listing as JSON.
        json: String,
    },
    /// The same signature came before with other words around it.
    OfferChanged,
    /// The seller takes up all that one may.
    NoRoom(NoRoom),
}

/// A listing cannot be kept now. Never the user's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be asked.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// What is sold cannot be kept.
    #[error(transparent)]
    Contents(#[from] ContentsError),
}

/// One offer on its way to becoming a listing.
struct Offer<'a> {
    id: &'a ListingId,
    listing: &'a NewListing,
    hash: ContentHash,
    proof: Option<&'a str>,
    quota: Quota,
    now_ms: u64,
}

/// Stores a listing. `proof` is the digest that the seller signed, if a signature made the offer: sent again, the same
/// offer finds the listing that it made and makes no other. In a session it is the same offer if it comes within a day,
/// word for word.
///
/// What is sold is kept before the listing: there is none whose content is missing.
///
/// # Errors
/// The database or the store of contents cannot be asked.
pub async fn store(
    db: &impl Database,
    contents: &impl Contents,
    id: &ListingId,
    listing: &NewListing,
    proof: Option<&str>,
    quota: Quota,
    now_ms: u64,
) -> Result<Stored, StoreError> {
    let offer = Offer { id, listing, hash: listing.content_hash(), proof, quota, now_ms };
    let [made, room] = exactly(db.batch(vec![offer.made(), offer.room()]).await?)?;
    if let Some(stored) = offer.outcome(&made, &room) {
        return Ok(stored);
    }
    contents.put(&offer.hash, &listing.content).await?;
    let [_, made, room] = exactly(db.batch(vec![offer.insert(), offer.made(), offer.room()]).await?)?;
    let missing = || DatabaseError("a listing with room for it was not kept".into());
    Ok(offer.outcome(&made, &room).ok_or_else(missing)?)
}

/// SQL: a listing says the same as this card, in every field that its seller chose.
fn same_card(card: &str) -> String {
    format!("json_remove(card, '$.id', '$.createdAt') = json_remove({card}, '$.id', '$.createdAt')")
}

impl Offer<'_> {
    fn bytes(&self) -> u64 {
        u64::try_from(self.listing.content.len()).unwrap_or(u64::MAX)
    }

    /// Since when an offer in a session counts as the same.
    const fn since(&self) -> u64 {
        self.now_ms.saturating_sub(DAY_MS)
    }

    /// The statement that makes the listing, unless it is there or there is no room for it: of two at once, the second
    /// sees the first.
    fn insert(&self) -> Statement {
        let Self { id, listing, .. } = self;
        let sql = format!(
            "INSERT INTO listings (id, card, title, description, price_lovelace, seller_address, instant, protected, \
               content_hash, content_bytes, category, created_at_ms, proof_digest) \
             SELECT ?1, ?2, ?3, ?4, CAST(?5 AS INTEGER), ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13 \
             WHERE coalesce((SELECT listed FROM sellers WHERE address = ?6), 0) < ?14 \
               AND coalesce((SELECT listed_bytes FROM sellers WHERE address = ?6), 0) + ?10 <= ?15 \
               AND (?13 IS NOT NULL OR NOT EXISTS (SELECT 1 FROM listings WHERE seller_address = ?6 AND content_hash = ?9 \
                 AND created_at_ms > ?16 AND {})) \
             ON CONFLICT (proof_digest) DO NOTHING",
            same_card("?2")
        );
        statement!(
            sql,
            id.as_str(),
            listing.card(id, self.now_ms),
            listing.title.as_str(),
            listing.description.as_str(),
            listing.price,
            listing.seller,
            listing.modes.instant,
            listing.modes.protected,
            self.hash,
            self.bytes(),
            listing.category,
            self.now_ms,
            self.proof,
            self.quota.listings,
            self.quota.bytes,
            self.since(),
        )
    }

    /// The statement that reads the listing that this offer made, now or before.
    fn made(&self) -> Statement {
        let Self { id, listing, .. } = self;
        let sql = format!(
            "SELECT id || ' ' || {LISTING_JSON} FROM {LISTINGS} WHERE (id = ?1 OR proof_digest = ?2 \
               OR (seller_address = ?3 AND content_hash = ?4 AND ?2 IS NULL AND created_at_ms > ?5)) \
             AND {} ORDER BY seq LIMIT 1",
            same_card("?6")
        );
        statement!(sql, id.as_str(), self.proof, listing.seller, self.hash, self.since(), listing.card(id, self.now_ms))
    }

    /// The statement that reads why the offer makes no listing: `changed`, `listings`, `bytes`; or that there is `room`.
    fn room(&self) -> Statement {
        statement!(
            "SELECT CASE WHEN EXISTS (SELECT 1 FROM listings WHERE proof_digest = ?1) THEN 'changed' \
               WHEN coalesce((SELECT listed FROM sellers WHERE address = ?2), 0) >= ?3 THEN 'listings' \
               WHEN coalesce((SELECT listed_bytes FROM sellers WHERE address = ?2), 0) + ?4 > ?5 THEN 'bytes' \
               ELSE 'room' END",
            self.proof,
            self.listing.seller,
            self.quota.listings,
            self.bytes(),
            self.quota.bytes,
        )
    }

    fn outcome(&self, made: &Rows, room: &Rows) -> Option<Stored> {
        if let Some((id, json)) = made.first().and_then(|row| row.split_once(' ')) {
            return Some(Stored::Listing { id: id.to_owned(), json: json.to_owned() });
        }
        match room.first()? {
            "changed" => Some(Stored::OfferChanged),
            "listings" => Some(Stored::NoRoom(NoRoom::Listings(self.quota.listings))),
            "bytes" => Some(Stored::NoRoom(NoRoom::Bytes(self.quota.bytes))),
            _ => None,
        }
    }
}
