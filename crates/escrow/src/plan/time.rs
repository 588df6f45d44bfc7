//! Computes validity intervals in slots.

use cardano::{
    slots::{Millis, SlotConfig},
    tx::build::Validity,
};

use super::PlanError;
use crate::rules::{ContractRefusal, Window};

/// Maximum length of a validity interval from now, in milliseconds. On preprod, a block appears every 20 seconds on
/// average. The interval is kept short, because an acting party's cooldown counts from its end.
const WINDOW_MS: Millis = 180_000;
/// Minimum time that must remain before a deadline, in milliseconds. With less time, most transactions would miss the
/// deadline, so none is planned.
pub const LEAST_WINDOW_MS: Millis = 20_000;

/// The current time, as the chain and the wall clock show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainTime {
    /// Slot of the newest block. Nodes reject a transaction that becomes valid only after this slot.
    pub tip_slot: u64,
    /// The later of the wall clock and the newest block's time, in POSIX milliseconds.
    pub now: Millis,
}

impl ChainTime {
    /// Returns the validity interval for an action that must happen within `window`, in slots.
    pub(super) fn validity(self, window: Window, slots: &SlotConfig) -> Result<Validity, PlanError> {
        let Window { opens, closes } = window;
        let from = first_slot_from(opens, slots).ok_or(PlanError::OutOfRange)?;
        if from > self.tip_slot {
            return Err(PlanError::NotYet(opens));
        }
        let wished = self.now.checked_add(WINDOW_MS).ok_or(PlanError::OutOfRange)?;
        let until = match closes {
            Some(closes) => wished.min(closes.checked_sub(1).ok_or(PlanError::OutOfRange)?),
            None => wished,
        };
        let late = || PlanError::Refused(ContractRefusal::TooLate(closes.unwrap_or(wished)));
        if until < self.now.saturating_add(LEAST_WINDOW_MS) {
            return Err(late());
        }
        // The slot that contains this time begins at or before it, so the interval cannot end too late.
        let until = slots.slot_at(until).ok_or(PlanError::OutOfRange)?;
        if until <= from.max(self.tip_slot) {
            return Err(late());
        }
        Ok(Validity { from: Some(from), until })
    }
}

/// Returns the first slot that begins at or after this time. A time before the current era yields the era's first slot.
fn first_slot_from(time: Millis, slots: &SlotConfig) -> Option<u64> {
    let Some(slot) = slots.slot_at(time) else { return Some(slots.zero_slot) };
    if slots.slot_begins_at(slot)? == time { Some(slot) } else { slot.checked_add(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SLOTS: SlotConfig = SlotConfig::PREPROD;
    const NOW: Millis = 1_785_756_000_000;
    const ALWAYS: Window = Window { opens: 0, closes: None };

    fn time(now: Millis) -> ChainTime {
        ChainTime { tip_slot: SLOTS.slot_at(now).unwrap(), now }
    }

    #[test]
    fn without_deadlines_a_transaction_has_three_minutes() {
        let validity = time(NOW).validity(ALWAYS, &SLOTS).unwrap();
        assert_eq!(validity.from, Some(SLOTS.zero_slot));
        assert_eq!(SLOTS.slot_begins_at(validity.until), Some(NOW + 180_000));
    }

    #[test]
    fn an_action_waits_for_a_block_after_its_opening() {
        let opens = NOW + 5_000;
        let lagging = ChainTime { tip_slot: SLOTS.slot_at(NOW + 4_999).unwrap(), now: NOW + 60_000 };
        assert_eq!(lagging.validity(Window { opens, closes: None }, &SLOTS), Err(PlanError::NotYet(opens)));
        assert!(time(opens).validity(Window { opens, closes: None }, &SLOTS).is_ok());
    }

    #[test]
    fn too_little_time_before_a_deadline_is_too_late() {
        let closes = NOW + 20_001;
        let window = Window { closes: Some(closes), ..ALWAYS };
        assert!(time(NOW).validity(window, &SLOTS).is_ok());
        let late = Err(PlanError::Refused(ContractRefusal::TooLate(closes)));
        assert_eq!(time(NOW + 1).validity(window, &SLOTS), late);
        assert_eq!(time(closes).validity(window, &SLOTS), late);
    }

    proptest! {
        #[test]
        fn the_interval_is_inside_every_deadline(
            opens in prop_oneof![Just(0), NOW - 1_000_000..NOW + 1_000_000],
            closes in proptest::option::of(NOW - 1_000_000..NOW + 1_000_000),
            lag in 0..100_000u64,
        ) {
            let time = ChainTime { tip_slot: SLOTS.slot_at(NOW - lag).unwrap(), now: NOW };
            if let Ok(validity) = time.validity(Window { opens, closes }, &SLOTS) {
                let from = SLOTS.slot_begins_at(validity.from.unwrap()).unwrap();
                let until = SLOTS.slot_begins_at(validity.until).unwrap();
                prop_assert!(from >= opens, "the contract: from >= opens");
                prop_assert!(closes.is_none_or(|closes| until < closes), "the contract: until < closes");
                prop_assert!(validity.from.unwrap() <= time.tip_slot, "a node takes it at once");
                prop_assert!(until > NOW, "it can still be taken");
            }
        }
    }
}
