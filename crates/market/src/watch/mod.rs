//! The watcher: brings every escrow to its end.
//!
//! ```text
//! sync ──────> reconcile ────────> plan ─────> act ───────────> backfill
//! newest       open entries:       select      submit, ask the  read the address's
//! block,       included, submitted due         arbiter, follow  history, and act
//! rollbacks    again, or expired   escrows     idle escrows     on new steps
//! ```
//!
//! Purchases change only by what the chain shows, and actions are submitted only through the outbox. A run can be
//! killed at any point, and two runs may overlap; the next run resumes. The address's history is read last and within
//! bounds, because anyone can add to it.

mod act;
mod alarms;
mod backfill;
mod context;
pub mod decide;
mod due;
mod follow;
mod foreign_steps;
mod housekeeping;
pub mod number;
mod plan;
mod reconcile;
mod restore;
mod stored;
mod sync;
mod tick;

use api_types::{
    Alarm,
    arbiter::{ResolveRequest, ResolveResult},
};
use cardano::{chain::Chain, evaluation::Evaluate, history::History, keys::SigningKey, slots::Millis};
use escrow::Deployment;
use serde::Serialize;

use crate::{chain_state::ClockLead, escrow_steps::Recorded};
pub use due::ServiceWallet;

/// Maximum number of alarms, and of notes, per report.
const MAX_LINES: usize = 50;

/// Report of one run of the watcher.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Number of transactions read from the history of the escrow contract's address.
    pub read: u32,
    /// Number of other parties' transactions that were skipped because they could not be read.
    pub skipped: u32,
    /// Number of newly recorded escrow steps, which are transactions that changed an escrow.
    pub steps: u32,
    pub rolled_back: bool,
    /// Number of the service's own transactions that were found in a block.
    pub confirmed: u32,
    /// Actions that were submitted, each described by a text that names its purchases.
    pub acted: Vec<String>,
    /// Conditions that the operator must act on, because money or a seller's score is at risk or was lost.
    pub alarms: Vec<Alarm>,
    /// Other remarks for the log.
    pub notes: Vec<String>,
}

impl Report {
    /// Truncates the alarms and notes so that the report fits into a log line, and adds the number of dropped notes.
    fn shorten(&mut self) {
        self.alarms.truncate(MAX_LINES);
        let more = self.notes.len().saturating_sub(MAX_LINES);
        if more > 0 {
            self.notes.truncate(MAX_LINES);
            self.notes.push(format!("and {more} more"));
        }
    }

    fn absorb(&mut self, recorded: Recorded) {
        self.steps = self.steps.saturating_add(recorded.steps);
        self.skipped = self.skipped.saturating_add(recorded.unreadable);
        self.alarms.extend(recorded.alarms);
        self.notes.extend(recorded.notes);
    }

    fn note(&mut self, what: &dyn std::fmt::Display, why: &dyn std::fmt::Display) {
        self.notes.push(format!("{what}: {why}"));
    }
}

/// Access to the arbiter.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait ArbiterClient {
    /// Returns whether this run of the watcher has enough time left to ask the arbiter, whose answer can take a minute.
    fn has_time(&self) -> bool {
        true
    }

    /// Asks the arbiter to decide a dispute. The decision takes effect on the chain; the response contains its reason.
    ///
    /// # Errors
    /// Returns the failure, worded for the log.
    async fn resolve(&self, dispute: &ResolveRequest) -> Result<ResolveResult, String>;
}

/// The keys of the watcher.
pub trait Keys {
    /// Returns the platform's key; `None` if this watcher does not act as seller.
    fn seller(&self) -> Option<&SigningKey>;
    /// Returns the key of a service wallet; `None` if this watcher does not have it.
    fn buyer(&self, wallet: &ServiceWallet) -> Option<SigningKey>;
    /// Returns a fingerprint of the keys that this watcher has. When it changes, all open escrows are checked again.
    fn versions(&self) -> String {
        String::new()
    }
}

/// The chain traits that the watcher needs.
pub trait Ledger: Chain + History + Evaluate {}

impl<C: Chain + History + Evaluate> Ledger for C {}

/// A run of the watcher (a *tick*), with the ports, keys and settings that it uses.
pub struct Watch<'a, D, C, K, S, A> {
    pub database: &'a D,
    pub chain: &'a C,
    pub contents: &'a K,
    pub keys: &'a S,
    pub arbiter: &'a A,
    /// The escrow contract's deployment, if there is one.
    pub deployment: Option<&'a Deployment>,
    /// Whether to act as seller: to post results and to collect.
    pub sells: bool,
    /// Allowed difference by which the newest block's time may be ahead of the wall clock.
    pub lead: ClockLead,
    /// Number of this run of the watcher ([`TickNumber`]). Runs with even and odd numbers delete different old rows.
    pub number: u64,
    /// The wall clock, POSIX ms.
    pub now: Millis,
    pub calls_left: &'a dyn Fn() -> u32,
}
