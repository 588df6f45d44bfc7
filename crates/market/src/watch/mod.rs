//! The watcher: brings every escrow to its end.
//!
//! ```text
//! sync ──────> reconcile ────────> plan ─────> act ───────────> backfill
//! newest       open entries:       judge what  send, ask the    the address's history;
//! block,       in a block, sent    is due      arbiter, follow  what it shows is acted
//! rollbacks    again, or expired               what waits       on at once
//! ```
//!
//! Every change of a purchase follows from what the chain shows; every action goes through the outbox. A tick may be killed
//! at any point, and two may run at once: what one leaves undone the next one does. The address's history is read last and
//! within bounds, since anyone can put transactions there. Our escrows are followed by their own outputs.

mod act;
mod alarms;
mod backfill;
mod context;
pub mod decide;
mod due;
mod follow;
mod foreign_steps;
mod housekeeping;
mod plan;
mod reconcile;
mod restore;
mod stored;
mod sync;
mod tick;

use api_types::arbiter::ResolveRequest;
use cardano::{chain::Chain, evaluation::Evaluate, history::History, keys::SigningKey, slots::Millis};
use escrow::Deployment;
use serde::Serialize;

use crate::{chain_state::Lead, escrow_steps::Recorded};
pub use due::ServiceWallet;

/// Alarms, and notes, that a report has at most.
const MAX_LINES: usize = 50;

/// What one tick did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Transactions of the escrow address that were read.
    pub read: u32,
    /// Transactions of others that could not be read, or not now: reading went on after them.
    pub skipped: u32,
    /// Steps of escrows that were found.
    pub steps: u32,
    pub rolled_back: bool,
    /// Own entries that were found in a block.
    pub confirmed: u32,
    /// Actions that were sent: what, and for which purchase.
    pub acted: Vec<String>,
    /// What an operator must act on: money or a seller's score is at risk, or was lost.
    pub alarms: Vec<String>,
    /// What else is worth knowing, in words, for the log.
    pub notes: Vec<String>,
}

impl Report {
    /// The first of what it says, and how much more there was: a line of the log has an end.
    fn shorten(&mut self) {
        for texts in [&mut self.alarms, &mut self.notes] {
            let more = texts.len().saturating_sub(MAX_LINES);
            if more > 0 {
                texts.truncate(MAX_LINES);
                texts.push(format!("and {more} more"));
            }
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

/// The port to the arbiter.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait ArbiterClient {
    /// Whether there is time to ask: each answer may take a minute, and what comes after must be done in the same tick.
    fn has_time(&self) -> bool {
        true
    }

    /// Asks for an award. The arbiter's answer in words for the log; the chain shows the award itself.
    ///
    /// # Errors
    /// In words for the log.
    async fn resolve(&self, dispute: &ResolveRequest) -> Result<String, String>;
}

/// Whose keys the watcher holds.
pub trait Keys {
    /// The seller of record, where we act as such.
    fn seller(&self) -> Option<&SigningKey>;
    /// The key of a service wallet.
    fn buyer(&self, wallet: &ServiceWallet) -> Option<SigningKey>;
    /// Names the keys of service wallets that there are, and gives nothing of them away: when it changes, every open
    /// escrow is looked at again.
    fn versions(&self) -> String {
        String::new()
    }
}

/// The chain as the watcher needs it.
pub trait Ledger: Chain + History + Evaluate {}

impl<C: Chain + History + Evaluate> Ledger for C {}

/// What a tick works with.
pub struct Watch<'a, D, C, K, S, A> {
    pub database: &'a D,
    pub chain: &'a C,
    pub contents: &'a K,
    pub keys: &'a S,
    pub arbiter: &'a A,
    /// The escrow of protected sales, where one is deployed.
    pub deployment: Option<&'a Deployment>,
    /// Whether to act as the seller of record: to post results and to collect.
    pub sells: bool,
    /// How far the newest block's time may be ahead of the wall clock: a provider that tells more is not believed.
    pub lead: Lead,
    /// The wall clock, POSIX ms.
    pub now: Millis,
    pub calls_left: &'a dyn Fn() -> u32,
}
