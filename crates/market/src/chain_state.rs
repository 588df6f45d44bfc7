//! The newest known block, and the clock for escrow deadlines.

use cardano::{chain::Tip, slots::Millis};
use sql::{Read, Write};

/// Builds the statement that stores the newest block, unless the stored block is newer because the provider lags. After
/// a rollback, the stored block is kept until a newer block appears.
pub fn note(tip: &Tip) -> Write {
    sql::write!(
        "INSERT INTO chain_state (id, tip_hash, tip_height, tip_slot, tip_time_ms) VALUES (1, ?1, ?2, ?3, ?4) \
         ON CONFLICT (id) DO UPDATE SET tip_hash = excluded.tip_hash, tip_height = excluded.tip_height, \
           tip_slot = excluded.tip_slot, tip_time_ms = excluded.tip_time_ms WHERE excluded.tip_slot > chain_state.tip_slot",
        tip.hash.to_string(),
        tip.height,
        tip.slot,
        tip.time_ms,
    )
}

/// Builds the query that reads the time of the newest known block.
pub fn read_time() -> Read<Option<Millis>> {
    sql::read!("SELECT tip_time_ms FROM chain_state")
}

/// Limit on how far the newest block's time may be ahead of the wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockLead {
    /// At most [`MAX_LEAD_MS`]. A block that is further ahead means that the provider is faulty, and must not move
    /// deadlines.
    #[default]
    Bounded,
    /// Unlimited. Used for a local ledger, on which tests move the time forward.
    LocalLedger,
}

/// Number of newer blocks after which all nodes of a provider are assumed to agree on a block. Six blocks take about
/// two minutes.
pub(crate) const SETTLED_DEPTH: u64 = 6;

/// Maximum time in ms by which the newest block may be ahead of the wall clock: two minutes. The ledger rejects blocks
/// from the future, and clocks differ by seconds.
pub const MAX_LEAD_MS: Millis = 2 * 60 * 1_000;

/// Maximum age in ms of the newest known block at which protected sales are still offered. Without new blocks, the
/// watcher cannot meet the deadlines of these sales.
pub const MAX_AGE_MS: Millis = 3 * 60 * 1_000;

impl ClockLead {
    /// Returns whether the newest known block is too old to offer protected sales. Always `false` on a local ledger,
    /// and as long as `block` is 0 because the watcher has not run yet.
    #[must_use]
    pub fn is_behind(self, block: Millis, now: Millis) -> bool {
        self == Self::Bounded && block > 0 && block.saturating_add(MAX_AGE_MS) < now
    }

    /// Returns the clock for escrow deadlines. It is the later of the wall clock and the newest block's time, but at
    /// most the allowed lead ahead of the wall clock.
    #[must_use]
    pub fn clock(self, block: Millis, now: Millis) -> Millis {
        let most = match self {
            Self::Bounded => now.saturating_add(MAX_LEAD_MS),
            Self::LocalLedger => Millis::MAX,
        };
        block.min(most).max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = 1_750_000_000_000;

    fn at(block: Option<Millis>, lead: ClockLead) -> Millis {
        lead.clock(block.unwrap_or(0), NOW)
    }

    #[test]
    fn the_chains_clock_leads_by_two_minutes_at_most() {
        for lead in [ClockLead::Bounded, ClockLead::LocalLedger] {
            assert_eq!(at(None, lead), NOW);
            assert_eq!(at(Some(NOW - 1), lead), NOW);
            assert_eq!(at(Some(NOW + MAX_LEAD_MS), lead), NOW + MAX_LEAD_MS);
        }
        assert_eq!(at(Some(NOW + MAX_LEAD_MS + 1), ClockLead::Bounded), NOW + MAX_LEAD_MS);
        assert_eq!(at(Some(NOW + 3_600_000), ClockLead::LocalLedger), NOW + 3_600_000);
    }

    #[test]
    fn a_chain_is_behind_three_minutes_after_its_newest_known_block() {
        assert!(!ClockLead::Bounded.is_behind(NOW - MAX_AGE_MS, NOW));
        assert!(ClockLead::Bounded.is_behind(NOW - MAX_AGE_MS - 1, NOW));
        assert!(!ClockLead::Bounded.is_behind(0, NOW), "before the first tick");
        assert!(!ClockLead::LocalLedger.is_behind(0, NOW));
    }
}
