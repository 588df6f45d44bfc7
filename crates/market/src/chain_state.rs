//! What was last read of the chain, for readers that must not ask it: the clock of escrow matters.

use cardano::{chain::Tip, slots::Millis};
use sql::{DatabaseError, Rows, Statement, statement};

/// The statement that notes a newer block. An older one, of a provider that lags, changes nothing; after a rollback the
/// next block is newer again.
#[must_use]
pub fn note(tip: &Tip) -> Statement {
    statement!(
        "INSERT INTO chain_state (only, tip_hash, tip_height, tip_slot, tip_time_ms) VALUES (1, ?1, ?2, ?3, ?4) \
         ON CONFLICT (only) DO UPDATE SET tip_hash = excluded.tip_hash, tip_height = excluded.tip_height, \
           tip_slot = excluded.tip_slot, tip_time_ms = excluded.tip_time_ms WHERE excluded.tip_slot > chain_state.tip_slot",
        tip.hash.to_string(),
        tip.height,
        tip.slot,
        tip.time_ms,
    )
}

/// The statement that reads the newest known block's time.
#[must_use]
pub fn read_time() -> Statement {
    statement!("SELECT CAST(tip_time_ms AS TEXT) FROM chain_state")
}

/// The clock of escrow matters: the later of the wall clock and the newest block's time. On preprod that is the wall
/// clock; on a local ledger, time can be moved forward and the service follows.
///
/// # Errors
/// What is stored is not a time.
pub fn clock(time: &Rows, now: Millis) -> Result<Millis, DatabaseError> {
    Ok(time.first_json::<Millis>()?.unwrap_or(0).max(now))
}
