//! Decides when purchased content may be released to its buyer. No other module compares depths, statuses or deadlines.
//!
//! ```text
//! instant     payment included ──> confirmed ──────────────────────────────────> released
//! protected   lock included ──> result included ──> both confirmed ──> released
//! ```
//!
//! *Confirmed* means that at least `L1_CONFIRMATIONS` newer blocks stand on the block. The payment's block and the
//! result's block are counted separately, because a rollback can remove the result alone. Until the result is confirmed
//! the buyer of a protected sale could still take the money back, so releasing the content earlier would give it away.
//!
//! The database knows how deep a block is without asking the provider: the watcher stores the newest block, and marks
//! the transactions that a rollback may have removed. Near the tip that is not enough, because a provider with several
//! nodes may have shown the request and the watcher different forks. So a block near the tip counts as 0 deep until the
//! request itself has seen it on the chain ([`ReleaseFacts::observe`]).

use api_types::PurchaseStatus as Status;
use cardano::{
    TxHash,
    slots::{Millis, SlotConfig},
};
use serde::Deserialize;

use crate::listing::DeliveryMode;

/// Stored facts about a payment that decide whether its content may be released, read by `payment_records.sql`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct ReleaseFacts {
    pub mode: DeliveryMode,
    /// The purchase's status; `None` until the inclusion of the payment is recorded.
    pub status: Option<Status>,
    /// Number of known blocks on top of the block that includes the payment; `None` while no block includes it.
    pub payment_depth: Option<u64>,
    /// The transaction that posted the first result of a protected purchase, or the transaction that paid the escrow
    /// out without a result. `None` while no block includes such a transaction.
    pub result_tx: Option<TxHash>,
    /// Number of known blocks on top of the block that includes that transaction. Meaningless without `result_tx`.
    pub result_depth: u64,
    /// First slot in which the pending transaction that posts a result is no longer valid; `None` if there is no such
    /// transaction.
    pub posted_until: Option<u64>,
    /// Deadline in POSIX ms for posting a first result; `None` until the inclusion of the lock is recorded.
    pub submit_result: Option<Millis>,
}

impl ReleaseFacts {
    /// Returns the latest transaction that the release depends on: the result, or `payment` if there is no result.
    #[must_use]
    pub fn latest_tx(&self, payment: &TxHash) -> TxHash {
        self.result_tx.unwrap_or(*payment)
    }

    /// Records that the provider still shows the block of [`Self::latest_tx`], with this number of newer blocks.
    pub fn observe(&mut self, newer: u64) {
        // A result spends what the payment made, so the payment's block is the same one, or older.
        self.payment_depth = self.payment_depth.map(|depth| depth.max(newer));
        self.result_depth = self.result_depth.max(newer);
    }

    /// Returns the smallest number of newer blocks among the blocks that the release depends on; `None` while one of
    /// these blocks is missing.
    #[must_use]
    pub fn depth(&self) -> Option<u64> {
        let payment = self.payment_depth.filter(|_| self.status.is_some())?;
        match self.mode {
            DeliveryMode::Instant => Some(payment),
            DeliveryMode::Protected => self.result_tx.map(|_| self.result_depth.min(payment)),
        }
    }
}

/// Permission to hand out the content of one payment. Only [`release`] creates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released(());

/// Reason why content may not be released now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreleased {
    /// No block includes the payment.
    NotIncluded,
    /// No block includes the result of a protected purchase.
    NoResult,
    /// Blocks include the payment and, for a protected purchase, its result, but too few newer blocks follow.
    Unconfirmed,
    /// The seller posted no result in time, or authorised a refund, so the buyer can take the money back.
    Refundable,
    /// The money went back to the buyer.
    Refunded,
}

/// Decides whether the content of a payment may be released. `confirmations` is the required number of newer blocks.
/// `clock` is the time in POSIX ms that escrow deadlines are compared with.
///
/// # Errors
/// Returns the reason why the content may not be handed out now.
pub fn release(
    facts: &ReleaseFacts,
    confirmations: u64,
    clock: Millis,
    slots: &SlotConfig,
) -> Result<Released, Unreleased> {
    let status = facts.status.filter(|_| facts.payment_depth.is_some()).ok_or(Unreleased::NotIncluded)?;
    if status == Status::Refunded {
        return Err(Unreleased::Refunded);
    }
    if let Some(depth) = facts.depth() {
        return if depth >= confirmations { Ok(Released(())) } else { Err(Unreleased::Unconfirmed) };
    }
    let is_posted = facts.posted_until.and_then(|slot| slots.slot_begins_at(slot)).is_some_and(|end| end > clock);
    let is_late = facts.submit_result.is_some_and(|end| end <= clock);
    let can_be_taken_back = status == Status::RefundAuthorized || is_late && !is_posted;
    Err(if can_be_taken_back { Unreleased::Refundable } else { Unreleased::NoResult })
}

#[cfg(test)]
mod tests {
    use super::*;
    use DeliveryMode::{Instant, Protected};
    use Status::{
        Closed, Disputed, FundsLocked, RefundAuthorized, RefundRequested, Refunded, ResultSubmitted, Settled, Withdrawn,
    };

    const NOW: Millis = 1_750_000_000_000;
    const LATER: Millis = NOW + 60_000;
    const RESULT: TxHash = TxHash::new([7; 32]);
    const RELEASED: Result<Released, Unreleased> = Ok(Released(()));
    const NOT_INCLUDED: Result<Released, Unreleased> = Err(Unreleased::NotIncluded);
    const NO_RESULT: Result<Released, Unreleased> = Err(Unreleased::NoResult);
    const REFUNDABLE: Result<Released, Unreleased> = Err(Unreleased::Refundable);
    const REFUNDED: Result<Released, Unreleased> = Err(Unreleased::Refunded);
    const UNCONFIRMED: Result<Released, Unreleased> = Err(Unreleased::Unconfirmed);

    #[test]
    fn content_is_released_as_in_the_table() {
        let slots = api_types::SLOTS;
        let slot = |ms| slots.slot_at(ms);
        #[rustfmt::skip]
        let table = [
            // mode, status, the payment's depth, the result's, posted until, last time for a result; at 0 confirmations
            (Instant,   None,                   None,     None,     None,            None,        NOT_INCLUDED),
            (Instant,   None,                   Some(30), None,     None,            None,        NOT_INCLUDED),
            (Instant,   Some(Settled),          None,     None,     None,            None,        NOT_INCLUDED),
            (Instant,   Some(Settled),          Some(0),  None,     None,            None,        RELEASED),
            (Protected, None,                   None,     None,     None,            None,        NOT_INCLUDED),
            (Protected, None,                   None,     None,     slot(LATER),     None,        NOT_INCLUDED),
            (Protected, None,                   None,     None,     slot(NOW),       None,        NOT_INCLUDED),
            // The lock's inclusion is not recorded yet.
            (Protected, None,                   None,     Some(7),  None,            None,        NOT_INCLUDED),
            (Protected, Some(FundsLocked),      Some(30), None,     None,            Some(LATER), NO_RESULT),
            (Protected, Some(FundsLocked),      Some(30), None,     slot(LATER),     Some(LATER), NO_RESULT),
            (Protected, Some(FundsLocked),      Some(30), None,     slot(LATER),     Some(NOW),   NO_RESULT),
            (Protected, Some(FundsLocked),      Some(30), None,     None,            Some(NOW),   REFUNDABLE),
            (Protected, Some(FundsLocked),      Some(0),  Some(0),  None,            Some(LATER), RELEASED),
            (Protected, Some(RefundRequested),  Some(30), None,     None,            Some(LATER), NO_RESULT),
            (Protected, Some(RefundRequested),  Some(30), None,     None,            Some(NOW),   REFUNDABLE),
            (Protected, Some(ResultSubmitted),  Some(0),  Some(0),  None,            Some(NOW),   RELEASED),
            (Protected, Some(Disputed),         Some(0),  Some(0),  None,            Some(NOW),   RELEASED),
            (Protected, Some(RefundAuthorized), Some(30), None,     None,            Some(LATER), REFUNDABLE),
            (Protected, Some(Refunded),         Some(30), Some(30), None,            Some(LATER), REFUNDED),
            (Protected, Some(Withdrawn),        Some(0),  Some(0),  None,            Some(NOW),   RELEASED),
            (Protected, Some(Closed),           Some(0),  Some(0),  None,            Some(NOW),   RELEASED),
            // A status without the step that led to it opens nothing.
            (Protected, Some(Withdrawn),        Some(30), None,     None,            Some(NOW),   REFUNDABLE),
        ];
        for (mode, status, payment_depth, result, posted_until, submit_result, expected) in table {
            let (result_tx, result_depth) = (result.map(|_| RESULT), result.unwrap_or(0));
            let facts =
                ReleaseFacts { mode, status, payment_depth, result_tx, result_depth, posted_until, submit_result };
            assert_eq!(release(&facts, 0, NOW, &slots), expected, "{facts:?}");
        }
    }

    #[test]
    fn both_blocks_are_as_deep_as_the_setting_asks() {
        for wanted in [0, 2, 20] {
            for payment in [0, 1, 2, 3, 19, 20, 21] {
                let paid = ReleaseFacts {
                    mode: Instant,
                    status: Some(Settled),
                    payment_depth: Some(payment),
                    result_tx: None,
                    result_depth: 0,
                    posted_until: None,
                    submit_result: None,
                };
                let expected = |depth| if depth >= wanted { RELEASED } else { UNCONFIRMED };
                assert_eq!(release(&paid, wanted, NOW, &api_types::SLOTS), expected(payment), "{paid:?}, {wanted}");
                for depth in [0, 1, 2, 19, 20] {
                    let (status, result_tx) = (Some(ResultSubmitted), Some(RESULT));
                    let sold = ReleaseFacts { mode: Protected, status, result_tx, result_depth: depth, ..paid };
                    let known = release(&sold, wanted, NOW, &api_types::SLOTS);
                    assert_eq!(known, expected(payment.min(depth)), "{sold:?}, {wanted}");
                }
            }
        }
    }

    #[test]
    fn newer_blocks_on_the_result_stand_on_the_payment_too() {
        let mut facts = ReleaseFacts {
            mode: Protected,
            status: Some(ResultSubmitted),
            payment_depth: Some(0),
            result_tx: Some(RESULT),
            result_depth: 0,
            posted_until: None,
            submit_result: None,
        };
        facts.observe(2);
        assert_eq!(facts.depth(), Some(2));
        facts.observe(1);
        assert_eq!(facts.depth(), Some(2), "what was seen stays seen");
        let mut gone = ReleaseFacts { payment_depth: None, ..facts };
        gone.observe(20);
        assert_eq!(release(&gone, 0, NOW, &api_types::SLOTS), NOT_INCLUDED);
    }
}
