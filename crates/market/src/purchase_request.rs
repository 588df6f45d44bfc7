//! Purchases that wait for an owner's approval: what an agent may not buy before its owner says so.
//!
//! ```text
//! buy ──> unapproved (claim.sql) ──> ask: a request, good for a day ──> the owner's answer: an approval, good for an hour
//! buy ──> claim ──> the approval is used up, in the claim's own batch. A payment that fails gives it back.
//! ```

use std::fmt;

use api_types::{Answer, PurchaseRequest};
use cardano::{Lovelace, TxHash, slots::Millis};
use sql::{Database, DatabaseError, Statement, exactly, statement};

use crate::{
    account::{SESSION_OWNER, Token},
    limits::DAY_MS,
    listing::{DeliveryMode, ListingId},
};

/// How long an owner can answer, in ms.
pub const REQUEST_MS: Millis = DAY_MS;
/// How long an approval is good, in ms.
pub const APPROVAL_MS: Millis = 60 * 60 * 1_000;
/// Requests of an account that wait for an answer at one time.
pub const MAX_WAITING: u32 = 20;

/// The name of a request: 128 random bits, in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId([u8; 16]);

impl RequestId {
    /// A new one of random bits.
    #[must_use]
    pub const fn new(random: [u8; 16]) -> Self {
        Self(random)
    }

    /// One as a path has it, if it has the shape of one.
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

/// SQL: no payment used the approval of the request `r` up; one that failed gave it back.
pub(crate) const UNUSED: &str = "(r.tx_id IS NULL OR EXISTS (SELECT 1 FROM outbox u WHERE u.tx_id = r.tx_id AND u.state IN ('refused', 'expired')))";

/// SQL for requests as [`PurchaseRequest`], of agents that were not removed.
fn requests(which: &str) -> String {
    format!(include_str!("purchase_requests.sql"), unused = UNUSED, which = which)
}

/// What an agent asks its owner.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub owner: &'a str,
    pub grant: &'a str,
    pub listing: &'a ListingId,
    pub mode: DeliveryMode,
    pub price: Lovelace,
}

impl Asked<'_> {
    /// Asks the owner under a new name, unless the same was asked before and is not over: then that request. `None` where too
    /// many wait for an answer already, or the agent was removed.
    ///
    /// # Errors
    /// The database query failed.
    pub async fn ask(
        &self,
        db: &impl Database,
        id: RequestId,
        now: Millis,
    ) -> Result<Option<PurchaseRequest>, DatabaseError> {
        let Self { owner, grant, listing, mode, price } = *self;
        let over = statement!(
            "DELETE FROM purchase_requests AS r WHERE grant_id = ?1 AND listing_id = ?2 AND mode = ?3 \
               AND (expires_at_ms <= ?4 OR price < CAST(?5 AS INTEGER) OR NOT {UNUSED})",
            grant,
            listing,
            mode.as_str(),
            now,
            price,
        );
        let new = statement!(
            format!(include_str!("insert_request.sql"), most = MAX_WAITING),
            id.to_string(),
            owner,
            grant,
            listing,
            mode.as_str(),
            price,
            now.saturating_add(REQUEST_MS),
            now,
        );
        let request = statement!(
            requests("r.grant_id = ?1 AND r.listing_id = ?2 AND r.mode = ?3"),
            grant,
            listing,
            mode.as_str()
        );
        let [_, _, request] = exactly(db.batch(vec![over, new, request]).await?)?;
        request.first_json()
    }
}

/// The statement by which the payment that the statement before wrote uses its approval up, if it has one. One that an
/// earlier payment used up stays that one's.
pub(crate) fn use_up(tx: &TxHash, grant: &str, listing: &ListingId, mode: DeliveryMode) -> Statement {
    statement!(
        "UPDATE purchase_requests AS r SET tx_id = ?1 WHERE grant_id = ?2 AND listing_id = ?3 AND mode = ?4 \
           AND approved = 1 AND {UNUSED} AND changes() > 0",
        tx,
        grant,
        listing,
        mode.as_str(),
    )
}

/// The statement that reads what waits for an owner's answer, [`PurchaseRequest`] each, the oldest first.
pub fn waiting(owner: &str, now: Millis) -> Statement {
    let which = "r.owner = ?1 AND r.expires_at_ms > ?2 AND r.approved IS NULL ORDER BY r.expires_at_ms";
    statement!(format!("{} LIMIT {MAX_WAITING}", requests(which)), owner, now)
}

fn own(session: &Token, id: RequestId, now: Millis) -> Statement {
    let which = format!("r.id = ?3 AND r.owner = {SESSION_OWNER} AND r.expires_at_ms > ?2");
    statement!(requests(&which), session.hash(), now, id.to_string())
}

/// A request to a live session's owner; `None` where there is none, or it is over.
///
/// # Errors
/// The database query failed.
pub async fn read(
    db: &impl Database,
    session: &Token,
    id: RequestId,
    now: Millis,
) -> Result<Option<PurchaseRequest>, DatabaseError> {
    db.run(own(session, id, now)).await?.first_json()
}

/// Answers a request to a live session's owner, unless a payment used its approval up; how it stands then. `None` where
/// there is none, or it is over.
///
/// # Errors
/// The database query failed.
pub async fn answer(
    db: &impl Database,
    session: &Token,
    id: RequestId,
    answer: Answer,
    now: Millis,
) -> Result<Option<PurchaseRequest>, DatabaseError> {
    let set = statement!(
        "UPDATE purchase_requests AS r SET approved = ?4, expires_at_ms = iif(?4, ?5, expires_at_ms) \
         WHERE id = ?3 AND owner = {SESSION_OWNER} AND expires_at_ms > ?2 AND {UNUSED}",
        session.hash(),
        now,
        id.to_string(),
        answer == Answer::Approve,
        now.saturating_add(APPROVAL_MS),
    );
    let [_, request] = exactly(db.batch(vec![set, own(session, id, now)]).await?)?;
    request.first_json()
}
