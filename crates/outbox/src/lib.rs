//! The outbox: every transaction that we hand to the network, for any client, from the moment it is written down
//! to its end.
//!
//! ```text
//!  write down            submit                      poll
//! ──────────> claimed ──────────> submitted ──> in a block ─────────> included
//!                │    no answer: claimed           │  ^                  │ rollback
//!                │                                 │  └── submitted <────┘
//!                │ refused at the only attempt     └─ validity ended ──> expired
//!                └──────────────────────────────────────────────────────> refused
//! ```
//!
//! - An entry is written, with the outputs that it spends reserved, before it is first submitted. Only its bytes are ever
//!   submitted for it, so a crash, a time-out or a second request sends the same transaction again.
//! - At most one live entry stands for a purpose. An input belongs to one entry.
//! - What to do next is one pure function, [`decide`], of the entry, of what the chain says and of the time. A request
//!   drives an entry with bounded waits ([`Outbox::wait_for_block`]), a tick by one poll ([`Outbox::observe`]).
//! - What follows from a change (a purchase, a timeline, money given back) is the caller's: its [`Hook`] names the statements that are
//!   written in one batch with it.
//!
//! An entry is given up only when none of its submissions can be in a block. The ledger refused the only attempt, a
//! block has another that spends the same, or the transaction's validity has ended. A payment that was not submitted
//! from here, as far as is known, is given up when a block has it: its payer must sign. A provider may be wrong about a
//! refusal, so the next entry for the purpose excludes those that were given up ([`Earlier`]). Attempts are counted in
//! the database: no two requests both take theirs for the only one.

#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod decide;
mod drive;
mod earlier;
mod entry;
mod statements;
mod wallet;

pub use decide::{
    ChainObservation, Decision, EXPIRY_GRACE_SLOTS, NOT_OUR_SUBMISSION, RESEND_UNANSWERED_MS, RESEND_UNCONFIRMED_MS,
    Trust, decide,
};
pub use drive::{Hook, Outbox, OutboxError, PollPolicy, Sleep, TxStatus, WaitOutcome, unless_chain_fails};
pub use earlier::Earlier;
pub use entry::{Draft, ENTRY_JSON, Entry, EntryState, Guard, Kind, Provenance};
pub use statements::{
    MAX_GIVEN_UP, by_id, change, give_up, given_up_for, live_for, mark_block_on_chain, mark_never_included, open,
    open_of_kinds, overdue, recheck, rechecked, to_recheck, write_down,
};
pub use wallet::{MAX_LAG_MS, MAX_LATE_MS, WalletSnapshot, snapshot};

/// The tables of an outbox and the triggers that derive its reservations: the first migration of each database that has one.
pub const SCHEMA: &str = include_str!("schema.sql");
