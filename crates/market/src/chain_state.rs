//! What was last read of the chain, for readers that must not ask it: the clock of escrow matters.

use cardano::{chain::Tip, slots::Millis};
use sql::{Statement, statement};

/// The statement that notes a newer block. An older one, of a provider that lags, changes nothing; after a rollback the
/// next block is newer again.
pub fn note(tip: &Tip) -> Statement {
    statement!(
        "INSERT INTO chain_state (id, tip_hash, tip_height, tip_slot, tip_time_ms) VALUES (1, ?1, ?2, ?3, ?4) \
         ON CONFLICT (id) DO UPDATE SET tip_hash = excluded.tip_hash, tip_height = excluded.tip_height, \
           tip_slot = excluded.tip_slot, tip_time_ms = excluded.tip_time_ms WHERE excluded.tip_slot > chain_state.tip_slot",
        tip.hash.to_string(),
        tip.height,
        tip.slot,
        tip.time_ms,
    )
}

/// The statement that reads the newest known block's time.
pub fn read_time() -> Statement {
    statement!("SELECT CAST(tip_time_ms AS TEXT) FROM chain_state")
}

/// How far the newest block's time may be ahead of the wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lead {
    /// By what clocks differ: [`MAX_LEAD_MS`]. A provider that tells more is wrong or lies, and moves no deadline with it.
    #[default]
    Bounded,
    /// By anything: a local ledger, on which time can be moved forward.
    LocalLedger,
}

/// Two minutes: the ledger refuses blocks from the future, clocks of producers and ours differ by seconds.
pub const MAX_LEAD_MS: Millis = 2 * 60 * 1_000;

/// How old the newest known block may be for a protected sale to be quoted: its deadlines are kept by ticks that see blocks.
pub const MAX_AGE_MS: Millis = 3 * 60 * 1_000;

impl Lead {
    /// Whether the newest known block is too old for a protected sale to be quoted. A local ledger makes blocks as it likes,
    /// and 0, before the first tick, is no block.
    #[must_use]
    pub fn is_behind(self, block: Millis, now: Millis) -> bool {
        self == Self::Bounded && block > 0 && block.saturating_add(MAX_AGE_MS) < now
    }

    /// The clock of escrow matters: the later of the wall clock and a block's time, as far as that may be ahead. On preprod
    /// that is the wall clock; on a local ledger, time can be moved forward and the service follows.
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

    fn at(block: Option<Millis>, lead: Lead) -> Millis {
        lead.clock(block.unwrap_or(0), NOW)
    }

    #[test]
    fn the_chains_clock_leads_by_two_minutes_at_most() {
        for lead in [Lead::Bounded, Lead::LocalLedger] {
            assert_eq!(at(None, lead), NOW);
            assert_eq!(at(Some(NOW - 1), lead), NOW);
            assert_eq!(at(Some(NOW + MAX_LEAD_MS), lead), NOW + MAX_LEAD_MS);
        }
        assert_eq!(at(Some(NOW + MAX_LEAD_MS + 1), Lead::Bounded), NOW + MAX_LEAD_MS);
        assert_eq!(at(Some(NOW + 3_600_000), Lead::LocalLedger), NOW + 3_600_000);
    }

    #[test]
    fn a_chain_is_behind_three_minutes_after_its_newest_known_block() {
        assert!(!Lead::Bounded.is_behind(NOW - MAX_AGE_MS, NOW));
        assert!(Lead::Bounded.is_behind(NOW - MAX_AGE_MS - 1, NOW));
        assert!(!Lead::Bounded.is_behind(0, NOW), "before the first tick");
        assert!(!Lead::LocalLedger.is_behind(0, NOW));
    }
}
