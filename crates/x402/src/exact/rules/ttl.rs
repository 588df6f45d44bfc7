//! Rule 7: the transaction is valid now, and not for longer than `maxTimeoutSeconds`.
//!
//! ```text
//!        start <= tip                  now                     TTL <= slot(now + maxTimeoutSeconds)
//! ─────────┼─────────┼──────────────────┼───────────────────────┼─────────> slots
//!        start      tip     valid in [start, TTL)              TTL
//! ```
//!
//! "Now" is the later of the wall clock and the newest block's time: a ledger that runs ahead of the clock is followed.
//! A node judges a submitted transaction as if it were in the slot after its newest block, so that slot must be
//! before the TTL, and the start must not be after the newest block.

use super::Situation;
use crate::Refusal;

const OUT_OF_RANGE: Refusal = Refusal::Requirements("the time is out of the range of the chain's slots");

/// There is a TTL.
pub fn is_set(situation: &Situation<'_>) -> Result<(), Refusal> {
    ttl(situation).map(|_| ())
}

/// The TTL has not passed.
pub fn has_not_passed(situation: &Situation<'_>) -> Result<(), Refusal> {
    let ttl = ttl(situation)?;
    let clock = situation.moment.slots.slot_at(now_ms(situation)).ok_or(OUT_OF_RANGE)?;
    let now = clock.max(situation.facts.tip.slot.saturating_add(1));
    if ttl > now { Ok(()) } else { Err(Refusal::TtlExpired { ttl, now }) }
}

/// The TTL is not later than the timeout allows.
pub fn is_near_enough(situation: &Situation<'_>) -> Result<(), Refusal> {
    let ttl = ttl(situation)?;
    let timeout_ms = u64::from(situation.case.requirements.max_timeout_seconds).saturating_mul(1_000);
    let latest = now_ms(situation).checked_add(timeout_ms).ok_or(OUT_OF_RANGE)?;
    let most = situation.moment.slots.slot_at(latest).ok_or(OUT_OF_RANGE)?;
    if ttl <= most { Ok(()) } else { Err(Refusal::TtlTooFar { ttl, most }) }
}

/// The validity has begun.
pub fn has_begun(situation: &Situation<'_>) -> Result<(), Refusal> {
    let tip = situation.facts.tip.slot;
    match situation.case.offer.tx.validity_start {
        Some(start) if start > tip => Err(Refusal::NotYetValid { start, tip }),
        _ => Ok(()),
    }
}

fn ttl(situation: &Situation<'_>) -> Result<u64, Refusal> {
    situation.case.offer.tx.ttl.ok_or(Refusal::TtlMissing)
}

fn now_ms(situation: &Situation<'_>) -> u64 {
    situation.moment.now_ms.max(situation.facts.tip.time_ms)
}
