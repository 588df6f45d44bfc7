//! Slots and time. The one place that knows how preprod counts slots.

use serde::{Deserialize, Serialize};

/// POSIX time in milliseconds.
pub type Millis = u64;

/// How slots map to time in the current era: slot `zero_slot` began at `zero_time_ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotConfig {
    /// A slot whose beginning is known.
    pub zero_slot: u64,
    /// POSIX ms at which it began.
    pub zero_time_ms: Millis,
    /// The length of a slot in ms.
    pub slot_length_ms: u32,
}

impl SlotConfig {
    /// Preprod since its Shelley hard fork (Shelley genesis: slot 86,400 began at 2022-06-21T00:00:00Z; 1 s slots).
    pub const PREPROD: Self = Self { zero_slot: 86_400, zero_time_ms: 1_655_769_600_000, slot_length_ms: 1_000 };

    /// POSIX ms at which a slot begins; `None` before the known slot or out of range.
    #[must_use]
    pub fn slot_begins_at(&self, slot: u64) -> Option<Millis> {
        slot.checked_sub(self.zero_slot)?.checked_mul(self.slot_length_ms.into())?.checked_add(self.zero_time_ms)
    }

    /// The slot that contains this time; `None` before the known slot.
    #[must_use]
    pub fn slot_at(&self, time_ms: Millis) -> Option<u64> {
        time_ms.checked_sub(self.zero_time_ms)?.checked_div(self.slot_length_ms.into())?.checked_add(self.zero_slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn preprod_counts_from_its_shelley_fork() {
        assert_eq!(SlotConfig::PREPROD.slot_begins_at(86_400), Some(1_655_769_600_000));
        assert_eq!(SlotConfig::PREPROD.slot_at(1_655_769_601_999), Some(86_401));
        assert_eq!(SlotConfig::PREPROD.slot_at(1_655_769_599_999), None);
        assert_eq!(SlotConfig::PREPROD.slot_begins_at(u64::MAX), None);
    }

    proptest! {
        #[test]
        fn a_slot_contains_its_beginning(slot in 86_400u64..10_000_000_000) {
            let time = SlotConfig::PREPROD.slot_begins_at(slot).unwrap();
            prop_assert_eq!(SlotConfig::PREPROD.slot_at(time), Some(slot));
            prop_assert_eq!(SlotConfig::PREPROD.slot_at(time + 999), Some(slot));
        }
    }
}
