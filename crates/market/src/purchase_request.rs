//! Asks owners to approve purchases by their agents.
//!
//! ```text
//! buy ──> unapproved (claim.sql) ──> request, valid for a day ──> the owner's answer: an approval, valid for an hour
//! buy ──> claim ──> the batch of the claim uses up the approval; if the payment fails, it is valid again
//! ```

use std::fmt;

use api_types::{Answer, PurchaseRequest};
use cardano::{Lovelace, TxHash, slots::Millis};
use sql::{Database, DatabaseError, Read, Write};

use crate::{
    account::{SESSION_OWNER, Token},
    limits::DAY_MS,
    listing::{DeliveryMode, ListingId},
};

/// Lifetime of an unanswered request for approval, in ms.
pub const REQUEST_MS: Millis = DAY_MS;
/// Time in ms for which the owner's approval can be used.
pub const APPROVAL_MS: Millis = 60 * 60 * 1_000;
/// Maximum number of unanswered requests for approval per account.
pub const MAX_WAITING: u32 = 20;
/// Maximum number of unanswered requests for approval per agent, so that one agent cannot keep the others from asking.
pub const MAX_WAITING_PER_AGENT: u32 = 5;

/// Id of a request for approval: 128 random bits, hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId([u8; 16]);

impl RequestId {
    /// Creates an id from random bits.
    #[must_use]
    pub const fn new(random: [u8; 16]) -> Self {
        Self(random)
    }

    /// Parses a request's id; `None` if the text has another form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut id = [0; 16];
        hex::decode_to_slice(text, &mut id).ok().map(|()| Self(id))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// SQL condition that holds if no payment has used the approval of the request `r`, apart from payments that failed.
pub(crate) const UNUSED: &str =
    "(r.tx_id IS NULL OR EXISTS (SELECT 1 FROM outbox u WHERE u.tx_id = r.tx_id AND u.phase = 'given_up'))";

/// Returns the SQL for [`PurchaseRequest`]s. Requests of removed agents are left out.
fn requests(which: &str) -> String {
    format!(include_str!("purchase_requests.sql"), unused = UNUSED, which = which)
}

/// A purchase for which an agent needs approval.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub owner: &'a str,
    pub grant: &'a str,
    pub listing: &'a ListingId,
    pub mode: DeliveryMode,
    pub price: Lovelace,
}

impl Asked<'_> {
    /// Creates a request for approval, or returns the open request for the same purchase. Returns `None` if too many
    /// requests are pending or the agent was removed.
    ///
    /// # Errors
    /// Returns an error if the database query failed.
    pub async fn ask(
        &self,
        db: &impl Database,
        id: RequestId,
        now: Millis,
    ) -> Result<Option<PurchaseRequest>, DatabaseError> {
        let Self { owner, grant, listing, mode, price } = *self;
        let over: Write = sql::write!(
            "DELETE FROM purchase_requests AS r WHERE grant_id = ?1 AND listing_id = ?2 AND mode = ?3 \
               AND (expires_at_ms <= ?4 OR price < CAST(?5 AS INTEGER) OR NOT {UNUSED})",
            grant,
            listing,
            mode.as_str(),
            now,
            price,
        );
        let new: Write = sql::write!(
            format!(include_str!("insert_request.sql"), most = MAX_WAITING, most_of_agent = MAX_WAITING_PER_AGENT),
            id.to_string(),
            owner,
            grant,
            listing,
            mode.as_str(),
            price,
            now.saturating_add(REQUEST_MS),
            now,
        );
        let request = sql::read!(
            requests("r.grant_id = ?1 AND r.listing_id = ?2 AND r.mode = ?3"),
            grant,
            listing,
            mode.as_str()
        );
        let ((), (), request) = db.batch((over, new, request)).await?;
        Ok(request)
    }
}

/// Builds the statement that marks an agent's approval as used by the payment `tx`. The statement must follow the one
/// that inserts this payment, and writes nothing if no payment was inserted.
pub(crate) fn use_up(tx: &TxHash, grant: &str, listing: &ListingId, mode: DeliveryMode) -> Write {
    sql::write!(
        "UPDATE purchase_requests AS r SET tx_id = ?1 WHERE grant_id = ?2 AND listing_id = ?3 AND mode = ?4 \
           AND approved = 1 AND {UNUSED} AND changes() > 0",
        tx,
        grant,
        listing,
        mode.as_str(),
    )
}

/// Builds the statement that reads the pending [`PurchaseRequest`]s of an owner, oldest first.
pub fn waiting(owner: &str, now: Millis) -> Read<Vec<PurchaseRequest>> {
    let which = "r.owner = ?1 AND r.expires_at_ms > ?2 AND r.approved IS NULL ORDER BY r.expires_at_ms";
    sql::read!(format!("{} LIMIT {MAX_WAITING}", requests(which)), owner, now)
}

fn own(session: &Token, id: RequestId, now: Millis) -> Read<Option<PurchaseRequest>> {
    let which = format!("r.id = ?3 AND r.owner = {SESSION_OWNER} AND r.expires_at_ms > ?2");
    sql::read!(requests(&which), session.hash(), now, id.to_string())
}

/// Reads a request for approval that was made by an agent of the session's owner. Returns `None` if the request does
/// not exist or has expired.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn read(
    db: &impl Database,
    session: &Token,
    id: RequestId,
    now: Millis,
) -> Result<Option<PurchaseRequest>, DatabaseError> {
    db.fetch(own(session, id, now)).await
}

/// Records the answer of the session's owner to a request for approval, unless a payment has already used the approval.
/// Returns the request's state, or `None` if the request does not exist or has expired.
///
/// # Errors
/// Returns an error if the database query failed.
pub async fn answer(
    db: &impl Database,
    session: &Token,
    id: RequestId,
    answer: Answer,
    now: Millis,
) -> Result<Option<PurchaseRequest>, DatabaseError> {
    let set: Write = sql::write!(
        "UPDATE purchase_requests AS r SET approved = ?4, expires_at_ms = iif(?4, ?5, expires_at_ms) \
         WHERE id = ?3 AND owner = {SESSION_OWNER} AND expires_at_ms > ?2 AND {UNUSED}",
        session.hash(),
        now,
        id.to_string(),
        answer == Answer::Approve,
        now.saturating_add(APPROVAL_MS),
    );
    let ((), request) = db.batch((set, own(session, id, now))).await?;
    Ok(request)
}
