//! Rule 7: the transaction is valid now, and for no longer than `maxTimeoutSeconds`.
//!
//! ```text
//!        start <= tip                  now                     TTL <= slot(now + maxTimeoutSeconds)
//! ─────────┼─────────┼──────────────────┼───────────────────────┼─────────> slots
//!        start      tip     valid in [start, TTL)              TTL
//! ```
//!
//! "Now" is the later of the wall clock and the newest block's time, so that a ledger that runs ahead of the clock
//! works. A node validates a submitted transaction as if it were in the slot after its newest block. That slot must
//! therefore be before the TTL, and the start must not be after the newest block.

use super::VerificationContext;
use crate::Refusal;

/// Number of slots (seconds) after the TTL for which a payment is still accepted if it is already public. A payer asks
/// for the content soon after paying, so an older transfer to the same seller was for something else.
const PUBLIC_SLOTS: u64 = 60 * 60;

const OUT_OF_RANGE: Refusal = Refusal::Requirements("the time is out of the range of the chain's slots");

refusals! {
    /// Reason why the transaction's validity interval is not acceptable.
    #[derive(Copy)]
    pub enum InvalidValidity {
        /// The transaction has no TTL.
        #[error("the transaction has no TTL: set one within maxTimeoutSeconds")]
        TtlMissing => "invalid_exact_cardano_payload_ttl_missing",
        /// The TTL has passed.
        #[error("the transaction's TTL, slot {ttl}, has passed (slot {now} now): build a new one")]
        TtlExpired {
            /// First slot in which the transaction is no longer valid.
            ttl: u64,
            /// Current slot.
            now: u64,
        } => "invalid_exact_cardano_payload_ttl_expired",
        /// The TTL is too far ahead.
        #[error("the transaction's TTL, slot {ttl}, is after slot {most}, the latest that maxTimeoutSeconds allows")]
        TtlTooFar {
            /// First slot in which the transaction is no longer valid.
            ttl: u64,
            /// Latest TTL that `maxTimeoutSeconds` allows.
            most: u64,
        } => "invalid_exact_cardano_payload_ttl_too_far",
        /// The transaction is not valid yet.
        #[error("the transaction is valid from slot {start} only (the chain is at {tip}): leave its start out or lower it")]
        NotYetValid {
            /// First slot in which the transaction is valid.
            start: u64,
            /// Slot of the newest block.
            tip: u64,
        } => "invalid_exact_cardano_payload_not_yet_valid",
    }
}

/// Checks that the transaction has a TTL.
pub fn has_an_end(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    end(context).map(|_| ())
}

/// Checks that the TTL has not passed. If the payment is already public, the TTL may have passed up to an hour ago.
pub fn has_not_ended(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    let ttl = end(context)?;
    let clock = context.moment.slots.slot_at(now_ms(context)).ok_or(OUT_OF_RANGE)?;
    let now = clock.max(context.facts.tip.slot.saturating_add(1));
    let grace = if context.facts.has_payment() { PUBLIC_SLOTS } else { 0 };
    if ttl.saturating_add(grace) > now { Ok(()) } else { Err(InvalidValidity::TtlExpired { ttl, now }.into()) }
}

/// Checks that the TTL is not later than `maxTimeoutSeconds` allows.
pub fn ends_soon_enough(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    let ttl = end(context)?;
    let timeout_ms = u64::from(context.case.offered.requirements.max_timeout_seconds).saturating_mul(1_000);
    let latest = now_ms(context).checked_add(timeout_ms).ok_or(OUT_OF_RANGE)?;
    let most = context.moment.slots.slot_at(latest).ok_or(OUT_OF_RANGE)?;
    if ttl <= most { Ok(()) } else { Err(InvalidValidity::TtlTooFar { ttl, most }.into()) }
}

/// Checks that the transaction's validity interval has begun.
pub fn has_begun(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    let tip = context.facts.tip.slot;
    match context.case.payment.tx.validity_start {
        Some(start) if start > tip => Err(InvalidValidity::NotYetValid { start, tip }.into()),
        _ => Ok(()),
    }
}

/// Returns the transaction's TTL.
///
/// # Errors
/// [`InvalidValidity::TtlMissing`] if the transaction has no TTL.
pub fn end(context: &VerificationContext<'_>) -> Result<u64, Refusal> {
    Ok(context.case.payment.tx.ttl.ok_or(InvalidValidity::TtlMissing)?)
}

fn now_ms(context: &VerificationContext<'_>) -> u64 {
    context.moment.now_ms.max(context.facts.tip.time_ms)
}
