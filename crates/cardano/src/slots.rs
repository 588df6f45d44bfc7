//! Slots and time. The one place that knows how networks count slots.

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
    /// Mainnet since its Shelley hard fork: slot 4,492,800 began at 2020-07-29T21:44:51Z.
    pub const MAINNET: Self = Self { zero_slot: 4_492_800, zero_time_ms: 1_596_059_091_000, slot_length_ms: 1_000 };
    /// Preview since its genesis, 2022-10-25T00:00:00Z: it has had no other era.
    pub const PREVIEW: Self = Self { zero_slot: 0, zero_time_ms: 1_666_656_000_000, slot_length_ms: 1_000 };
    /// Preprod since its Shelley hard fork: slot 86,400 began at 2022-06-21T00:00:00Z.
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
    fn no_slot_begins_beyond_what_time_can_count() {
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
