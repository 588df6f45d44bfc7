//! When content may be released: one pure function of what is stored about a purchase, and of the time.
//!
//! ```text
//! instant     payment in a block ──────────────────────────────> now
//! protected   lock accepted ──> result posted ──> result in a block ──> now
//!                  └── needs a result   └── until its validity ends
//! ```
//!
//! Before its result is in a block the buyer of a protected sale could take the money back: so no content is out before
//! the seller is safe.

use api_types::PurchaseStatus as Status;
use cardano::slots::{Millis, SlotConfig};
use serde::Deserialize;

use crate::listing::DeliveryMode;

/// How long a block takes on preprod on average.
const BLOCK_MS: Millis = 20_000;

/// What is stored about a payment that its release depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseFacts {
    /// How it is paid.
    pub mode: DeliveryMode,
    /// The purchase's status, once a block has the payment.
    pub status: Option<Status>,
    /// The height of the block that has its result, if one does.
    pub result_height: Option<u64>,
    /// The first slot in which a posted result that no block has is no longer valid.
    pub posted_until: Option<u64>,
    /// The last time for a first result, POSIX ms; known once a block has the lock.
    pub submit_result: Option<Millis>,
}

/// SQL for [`ReleaseFacts`] as JSON, over SQL for a purchase's id and for its mode.
pub(crate) fn facts_json(purchase: &str, mode: &str) -> String {
    let results = format!(
        "FROM outbox_purchases op JOIN outbox o ON o.tx_id = op.tx_id WHERE op.purchase_id = {purchase} AND o.kind = 'result'"
    );
    format!(
        "json_object('mode', {mode}, 'status', (SELECT status FROM purchases WHERE id = {purchase}), \
           'resultHeight', coalesce( \
             (SELECT min(height) FROM escrow_steps WHERE purchase_id = {purchase} AND result_hash IS NOT NULL), \
             (SELECT min(o.block_height) {results} AND o.state = 'included' AND o.recheck = 0)), \
           'postedUntil', (SELECT max(o.valid_until_slot) {results} AND o.state IN ('claimed', 'submitted')), \
           'submitResult', (SELECT submit_result_ms FROM escrows WHERE purchase_id = {purchase}))"
    )
}

/// Whether content may be released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// Now.
    Now,
    /// After a result was posted: nothing is under way.
    NeedsResult,
    /// Not before this time, POSIX ms: a block is waited for.
    Until(Millis),
    /// Never: the money went back, or can.
    Never,
}

/// Decides. `clock` is the escrow clock, POSIX ms.
#[must_use]
pub fn release(facts: &ReleaseFacts, clock: Millis, slots: &SlotConfig) -> Release {
    let next_block = Release::Until(clock.saturating_add(BLOCK_MS));
    match (facts.mode, facts.status) {
        (_, Some(Status::Refunded)) => return Release::Never,
        (DeliveryMode::Instant, None) => return next_block,
        (DeliveryMode::Protected, None) if facts.result_height.is_some() => return next_block,
        (DeliveryMode::Instant, Some(_)) => return Release::Now,
        // A block has the result, and rolls back with the lock.
        (DeliveryMode::Protected, Some(_)) if facts.result_height.is_some() => return Release::Now,
        (DeliveryMode::Protected, Some(Status::Withdrawn | Status::Closed)) => return Release::Now,
        (DeliveryMode::Protected, Some(Status::RefundAuthorized)) => return Release::Never,
        (DeliveryMode::Protected, _) => {}
    }
    let posted_until = facts.posted_until.and_then(|slot| slots.slot_begins_at(slot)).filter(|end| *end > clock);
    match posted_until {
        Some(end) => Release::Until(end),
        None if facts.submit_result.is_some_and(|end| end <= clock) => Release::Never,
        None => Release::NeedsResult,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DeliveryMode::{Instant, Protected};
    use Release::{NeedsResult, Never, Now, Until};
    use Status::{
        Closed, Disputed, FundsLocked, RefundAuthorized, RefundRequested, Refunded, ResultSubmitted, Settled, Withdrawn,
    };

    const NOW: Millis = 1_750_000_000_000;
    const LATER: Millis = NOW + 60_000;

    #[test]
    fn content_is_released_as_in_the_table() {
        let slots = api_types::SLOTS;
        let slot = |ms| slots.slot_at(ms);
        let next_block = Until(NOW + BLOCK_MS);
        #[rustfmt::skip]
        let table = [
            // mode, status, result's block, posted until, last time for a result, expected
            (Instant,   None,                   None,    None,            None,        next_block),
            (Instant,   Some(Settled),          None,    None,            None,        Now),
            (Protected, None,                   None,    None,            None,        NeedsResult),
            (Protected, None,                   None,    slot(LATER),     None,        Until(LATER)),
            (Protected, None,                   None,    slot(NOW),       None,        NeedsResult),
            // The lock's inclusion is not written down yet.
            (Protected, None,                   Some(7), None,            None,        next_block),
            (Protected, Some(FundsLocked),      None,    None,            Some(LATER), NeedsResult),
            (Protected, Some(FundsLocked),      None,    slot(LATER),     Some(LATER), Until(LATER)),
            (Protected, Some(FundsLocked),      None,    slot(LATER),     Some(NOW),   Until(LATER)),
            (Protected, Some(FundsLocked),      None,    None,            Some(NOW),   Never),
            (Protected, Some(FundsLocked),      Some(7), None,            Some(LATER), Now),
            (Protected, Some(RefundRequested),  None,    None,            Some(LATER), NeedsResult),
            (Protected, Some(RefundRequested),  None,    None,            Some(NOW),   Never),
            (Protected, Some(ResultSubmitted),  Some(7), None,            Some(NOW),   Now),
            (Protected, Some(Disputed),         Some(7), None,            Some(NOW),   Now),
            (Protected, Some(RefundAuthorized), None,    None,            Some(LATER), Never),
            (Protected, Some(Refunded),         Some(7), None,            Some(LATER), Never),
            (Protected, Some(Withdrawn),        None,    None,            Some(NOW),   Now),
            (Protected, Some(Closed),           None,    None,            Some(NOW),   Now),
        ];
        for (mode, status, result_height, posted_until, submit_result, expected) in table {
            let facts = ReleaseFacts { mode, status, result_height, posted_until, submit_result };
            assert_eq!(release(&facts, NOW, &slots), expected, "{facts:?}");
        }
    }
}
