//! Conversion between slots and time.

use serde::{Deserialize, Serialize};

/// A POSIX time in milliseconds.
pub type Millis = u64;

/// Conversion between slots and time in the current era, in which slots have a fixed length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotConfig {
    /// Number of a slot whose start time is known.
    pub zero_slot: u64,
    /// Start of the slot `zero_slot`, in POSIX milliseconds.
    pub zero_time_ms: Millis,
    /// Length of a slot, in milliseconds.
    pub slot_length_ms: u32,
}

impl SlotConfig {
    /// Slots of mainnet since its Shelley hard fork: slot 4,492,800 began at 2020-07-29T21:44:51Z.
    pub const MAINNET: Self = Self { zero_slot: 4_492_800, zero_time_ms: 1_596_059_091_000, slot_length_ms: 1_000 };
    /// Slots of preview since its genesis at 2022-10-25T00:00:00Z. Preview has had no other era.
    pub const PREVIEW: Self = Self { zero_slot: 0, zero_time_ms: 1_666_656_000_000, slot_length_ms: 1_000 };
    /// Slots of preprod since its Shelley hard fork: slot 86,400 began at 2022-06-21T00:00:00Z.
    pub const PREPROD: Self = Self { zero_slot: 86_400, zero_time_ms: 1_655_769_600_000, slot_length_ms: 1_000 };

    /// Returns the time at which a slot begins, in POSIX milliseconds, or `None` if the slot is before `zero_slot` or
    /// the time is out of range.
    #[must_use]
    pub fn slot_begins_at(&self, slot: u64) -> Option<Millis> {
        slot.checked_sub(self.zero_slot)?.checked_mul(self.slot_length_ms.into())?.checked_add(self.zero_time_ms)
    }

    /// Returns the slot that contains this time, or `None` if the time is before the start of `zero_slot`.
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
