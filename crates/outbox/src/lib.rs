//! The outbox: submits every transaction of the service, and tracks it until it is confirmed or can no longer be
//! included.
//!
//! ```text
//!  store                 submit                      poll
//! ──────────> claimed ──────────> submitted ──> in a block ─────────> included
//!                │    no answer: claimed           │  ^                  │ rollback
//!                │                                 │  └── submitted <────┘
//!                │ rejected at the only attempt    └─ validity ended ──> expired
//!                └──────────────────────────────────────────────────────> refused
//! ```
//!
//! - An entry is stored, and its inputs are reserved, before it is submitted. Only the stored bytes are ever submitted,
//!   so a crash, a time-out or a second request submits the same transaction again.
//! - A purpose has at most one open or included entry, and an input belongs to one entry.
//! - A pure function, [`decide`], chooses the next step from the entry, the chain and the time. Requests poll several
//!   times with waits ([`Outbox::wait_for_block`]), the watcher once per run ([`Outbox::observe`]).
//! - Callers add the effects of a change, such as a purchase, by a [`Hook`]: statements in the batch that makes the
//!   change.
//!
//! An entry is given up only when its transaction can no longer be included: the ledger rejected the only attempt, a
//! block has a conflicting transaction, or the validity interval has ended. A plain payment that others submitted is
//! given up when a block has it, because its payer must sign for it. A provider's rejection may be wrong, so the next
//! entry for the same purpose must conflict with the ones that were given up ([`Replacement`]). Attempts are counted in
//! the database, so that two concurrent requests cannot both regard their attempt as the only one.

#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod decide;
mod drive;
mod entry;
mod news;
mod replacement;
mod send;
mod statements;
mod wallet;

pub use decide::{
    ChainObservation, Decision, EXPIRY_GRACE_SLOTS, NOT_OUR_SUBMISSION, RESEND_UNANSWERED_MS, RESEND_UNCONFIRMED_MS,
    Trust, decide,
};
pub use drive::{Hook, Outbox, OutboxError, PollPolicy, Sleep, TxStatus, WaitOutcome, unless_chain_fails};
pub use entry::{ENTRY, Entry, EntryState, Guard, Kind, NewEntry, Provenance};
pub use news::NewBlocks;
pub use replacement::Replacement;
pub use send::{Attempt, Next, NoPause, RetryPolicy, Sent};
pub use statements::{
    MAX_GIVEN_UP, by_id, change, clear_recheck, clear_recheck_of_block, give_up_expired, given_up_for, live_for,
    mark_never_included, open, open_of_kinds, overdue, recheck, to_recheck, write_down,
};
pub use wallet::{MAX_LAG_MS, MAX_LATE_MS, MAX_VALID_MS, SnapshotQuery, VALID_SLOTS, WalletSnapshot, snapshot};

/// Tables and triggers of an outbox, which are the first migration of each database with an outbox.
pub const SCHEMA: &str = include_str!("schema.sql");
