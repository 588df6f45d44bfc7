//! The four deadlines of an escrow, in POSIX milliseconds.
//!
//! ```text
//!  issued     pay_by    submit_result     unlock     external_dispute_unlock
//!    ├── 4 min ──┤─ >= 5 min ─┤── >= 15 min ──┤── >= 15 min ──┤
//!    │ lock      │ result     │ refund if     │ seller        │ arbiters
//!    │           │            │ there is none │ collects      │ settle
//! ```

use cardano::slots::Millis;
use serde::{Deserialize, Serialize};

const MINUTE_MS: Millis = 60_000;

/// Minimum time from `pay_by` to `submit_result` (scheme document, "Lock invariants").
pub const PAY_TO_SUBMIT_MS: Millis = 5 * MINUTE_MS;
/// Minimum time from `submit_result` to `unlock` (scheme document, "Lock invariants").
pub const SUBMIT_TO_UNLOCK_MS: Millis = 15 * MINUTE_MS;
/// Minimum time from `unlock` to `external_dispute_unlock` (scheme document, "Lock invariants").
pub const UNLOCK_TO_DISPUTE_MS: Millis = 15 * MINUTE_MS;
/// Minimum time from the issue of a quote to `submit_result` (scheme document, "Lock invariants").
pub const ISSUE_TO_SUBMIT_MS: Millis = 15 * MINUTE_MS;

/// Time in milliseconds from the issue of a quote to `pay_by`: one minute less than `maxTimeoutSeconds`, which is 300.
///
/// Clients reject a quote whose `pay_by` is later than their own clock plus `maxTimeoutSeconds`. With the full five
/// minutes, a client whose clock is one second slow would reject every quote.
const PAY_BY_MS: Millis = 4 * MINUTE_MS;
/// Time in milliseconds from the issue of a quote to `submit_result`, the deadline for the result; see
/// [`Deadlines::issue`].
pub const SUBMIT_RESULT_MS: Millis = 16 * MINUTE_MS;
const UNLOCK_MS: Millis = 31 * MINUTE_MS;
const EXTERNAL_DISPUTE_MS: Millis = 46 * MINUTE_MS;

/// Times in milliseconds from the issue of a quote to `submit_result`, `unlock` and `external_dispute_unlock`.
pub const AFTER_ISSUE_MS: [Millis; 3] = [SUBMIT_RESULT_MS, UNLOCK_MS, EXTERNAL_DISPUTE_MS];

/// The deadlines of an escrow, in POSIX milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Deadlines {
    /// Time by which the lock must be included in a block.
    pub pay_by: Millis,
    /// Time by which the seller must submit the first result. Without a result, the buyer may take a refund from this
    /// time on.
    pub submit_result: Millis,
    /// Time from which the seller may collect the money, unless the buyer has requested a refund by then.
    pub unlock: Millis,
    /// Time from which arbiters may settle a dispute.
    pub external_dispute_unlock: Millis,
}

impl Deadlines {
    /// Returns the deadlines of a quote that is issued at `now` (POSIX milliseconds), or `None` if a time overflows.
    #[must_use]
    pub fn issue(now: Millis) -> Option<Self> {
        Some(Self {
            pay_by: now.checked_add(PAY_BY_MS)?,
            submit_result: now.checked_add(SUBMIT_RESULT_MS)?,
            unlock: now.checked_add(UNLOCK_MS)?,
            external_dispute_unlock: now.checked_add(EXTERNAL_DISPUTE_MS)?,
        })
    }

    /// Returns the time at which a quote with these deadlines was issued, or `None` if the deadlines do not come from
    /// [`Deadlines::issue`].
    #[must_use]
    pub fn issued_at(&self) -> Option<Millis> {
        let issued = self.pay_by.checked_sub(PAY_BY_MS)?;
        (Self::issue(issued)? == *self).then_some(issued)
    }

    /// Returns `true` if the deadlines are in order and at least as far apart as the scheme requires.
    #[must_use]
    pub fn gaps_hold(&self) -> bool {
        let at_least = |from: Millis, gap: Millis, to: Millis| from.checked_add(gap).is_some_and(|least| least <= to);
        at_least(self.pay_by, PAY_TO_SUBMIT_MS, self.submit_result)
            && at_least(self.submit_result, SUBMIT_TO_UNLOCK_MS, self.unlock)
            && at_least(self.unlock, UNLOCK_TO_DISPUTE_MS, self.external_dispute_unlock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn issued_deadlines_keep_every_gap(now in 0..4_000_000_000_000u64) {
            let issued = Deadlines::issue(now).unwrap();
            prop_assert!(issued.gaps_hold());
            prop_assert_eq!(issued.issued_at(), Some(now));
            prop_assert_eq!(issued.pay_by, now + 240_000, "a slow clock's buyer takes it within maxTimeoutSeconds");
            prop_assert!(issued.submit_result >= now + ISSUE_TO_SUBMIT_MS);
            prop_assert!(issued.submit_result >= now + 16 * MINUTE_MS, "refund at least about 16 min");
            prop_assert!(issued.unlock >= now + 31 * MINUTE_MS, "seller paid at least about 31 min");
            prop_assert!(issued.external_dispute_unlock >= now + 46 * MINUTE_MS, "arbiter at least about 46 min");
        }
    }

    #[test]
    fn each_gap_one_millisecond_too_small_is_refused() {
        let least = Deadlines {
            pay_by: 1,
            submit_result: 1 + PAY_TO_SUBMIT_MS,
            unlock: 1 + PAY_TO_SUBMIT_MS + SUBMIT_TO_UNLOCK_MS,
            external_dispute_unlock: 1 + PAY_TO_SUBMIT_MS + SUBMIT_TO_UNLOCK_MS + UNLOCK_TO_DISPUTE_MS,
        };
        assert!(least.gaps_hold());
        assert!(!Deadlines { pay_by: least.pay_by + 1, ..least }.gaps_hold());
        assert!(!Deadlines { submit_result: least.submit_result + 1, ..least }.gaps_hold());
        assert!(!Deadlines { unlock: least.unlock + 1, ..least }.gaps_hold());
        assert!(!Deadlines { external_dispute_unlock: least.external_dispute_unlock - 1, ..least }.gaps_hold());
        assert!(!Deadlines { pay_by: u64::MAX, ..least }.gaps_hold());
    }

    #[test]
    fn deadlines_with_other_gaps_are_not_recognised_as_ours() {
        let issued = Deadlines::issue(1_785_756_000_000).unwrap();
        assert_eq!(Deadlines { unlock: issued.unlock + 1, ..issued }.issued_at(), None);
        assert_eq!(Deadlines { pay_by: 0, ..issued }.issued_at(), None);
    }
}
