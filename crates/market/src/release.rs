//! Decides when content may be released, from what is stored about a payment and the time.
//!
//! ```text
//! instant     payment in a block ──────────────────────────────> now
//! protected   lock accepted ──> result posted ──> result in a block ──> now
//! ```
//!
//! Until the result is in a block, the buyer of a protected sale can take the money back, so nothing is released
//! before.

use api_types::PurchaseStatus as Status;
use cardano::slots::{Millis, SlotConfig};
use serde::Deserialize;

use crate::listing::DeliveryMode;

/// Stored facts about a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseFacts {
    pub mode: DeliveryMode,
    /// Status of the purchase, once the payment is in a block.
    pub status: Option<Status>,
    /// Height of the block with the result.
    pub result_height: Option<u64>,
    /// End of the validity interval of an unconfirmed result: the first slot in which it is no longer valid.
    pub posted_until: Option<u64>,
    /// Deadline for the first result, POSIX ms; known once the lock is in a block.
    pub submit_result: Option<Millis>,
}

/// SQL for [`ReleaseFacts`] as JSON, over the payment `p`.
pub(crate) const FACTS_JSON: &str = include_str!("release_facts.sql");

/// Whether content may be released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// Yes.
    Now,
    /// Not before the payment, or the result of a protected one, is in a block.
    NotYet,
    /// No: the money was returned to the buyer, or can be.
    Never,
}

/// Decides whether content may be released. `clock` is the clock for escrow deadlines, POSIX ms.
#[must_use]
pub fn release(facts: &ReleaseFacts, clock: Millis, slots: &SlotConfig) -> Release {
    match (facts.mode, facts.status) {
        (_, Some(Status::Refunded)) => return Release::Never,
        (DeliveryMode::Instant, None) => return Release::NotYet,
        (DeliveryMode::Protected, None) if facts.result_height.is_some() => return Release::NotYet,
        (DeliveryMode::Instant, Some(_)) => return Release::Now,
        // A rollback that removes the lock removes the result too.
        (DeliveryMode::Protected, Some(_)) if facts.result_height.is_some() => return Release::Now,
        (DeliveryMode::Protected, Some(Status::Withdrawn | Status::Closed)) => return Release::Now,
        (DeliveryMode::Protected, Some(Status::RefundAuthorized)) => return Release::Never,
        (DeliveryMode::Protected, _) => {}
    }
    let is_posted = facts.posted_until.and_then(|slot| slots.slot_begins_at(slot)).is_some_and(|end| end > clock);
    let is_late = facts.submit_result.is_some_and(|end| end <= clock);
    if is_late && !is_posted { Release::Never } else { Release::NotYet }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DeliveryMode::{Instant, Protected};
    use Release::{Never, NotYet, Now};
    use Status::{
        Closed, Disputed, FundsLocked, RefundAuthorized, RefundRequested, Refunded, ResultSubmitted, Settled, Withdrawn,
    };

    const NOW: Millis = 1_750_000_000_000;
    const LATER: Millis = NOW + 60_000;

    #[test]
    fn content_is_released_as_in_the_table() {
        let slots = api_types::SLOTS;
        let slot = |ms| slots.slot_at(ms);
        #[rustfmt::skip]
        let table = [
            // mode, status, result's block, posted until, last time for a result, expected
            (Instant,   None,                   None,    None,            None,        NotYet),
            (Instant,   Some(Settled),          None,    None,            None,        Now),
            (Protected, None,                   None,    None,            None,        NotYet),
            (Protected, None,                   None,    slot(LATER),     None,        NotYet),
            (Protected, None,                   None,    slot(NOW),       None,        NotYet),
            // The lock's inclusion is not stored yet.
            (Protected, None,                   Some(7), None,            None,        NotYet),
            (Protected, Some(FundsLocked),      None,    None,            Some(LATER), NotYet),
            (Protected, Some(FundsLocked),      None,    slot(LATER),     Some(LATER), NotYet),
            (Protected, Some(FundsLocked),      None,    slot(LATER),     Some(NOW),   NotYet),
            (Protected, Some(FundsLocked),      None,    None,            Some(NOW),   Never),
            (Protected, Some(FundsLocked),      Some(7), None,            Some(LATER), Now),
            (Protected, Some(RefundRequested),  None,    None,            Some(LATER), NotYet),
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
