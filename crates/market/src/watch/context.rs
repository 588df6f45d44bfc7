//! State that the parts of one run of the watcher (a *tick*) share.

use std::collections::BTreeMap;

use cardano::{Address, TxHash, chain::Tip, slots::Millis};
use outbox::Outbox;
use sql::{Database, DatabaseError, Write};

use super::{ArbiterClient, Keys, Ledger, Report, Watch};
use crate::{contents::Contents, escrow_steps::write_each, platform::PlatformWallet, transitions};

/// Number of provider calls that each run of the watcher reserves for due escrows. Looking up open transactions cannot
/// use them.
pub(super) const RESERVED_CALLS: u32 = 16;
/// Number of failed provider calls after which a part of the watcher's run leaves the rest of its work to the next run.
pub(super) const MAX_PROVIDER_FAILURES: u32 = 3;

/// State of the chain, and stored progress of earlier runs, as read at the start of a run of the watcher.
#[derive(Clone, Copy)]
pub(super) struct View {
    pub tip: Tip,
    /// Clock for escrow deadlines: the later of the wall clock and the newest block's time.
    pub clock: Millis,
    /// Number of rollbacks recorded before this run of the watcher. If a concurrent run records another one, this run's
    /// writes have no effect.
    pub rollbacks: u64,
    /// Block height up to which the history of the contract's address is read.
    pub read_to: u64,
    /// The platform's address, if this watcher acts as seller.
    pub seller: Option<Address>,
    /// Whether to check if the platform's wallet has too few outputs.
    pub checks_wallet: bool,
}

pub(super) struct Tick<'a, D, C, K, S, A> {
    pub ports: &'a Watch<'a, D, C, K, S, A>,
    pub view: View,
    /// Hashes of the blocks below the newest one, by height, as far as this run of the watcher has read them.
    pub chain: BTreeMap<u64, TxHash>,
    /// The platform's wallet; `None` until this run of the watcher has read it.
    pub wallet: Option<PlatformWallet>,
    /// Purchases whose result is missing although its deadline is near, each with the reason why no result was posted.
    pub late_results: BTreeMap<TxHash, String>,
    pub report: Report,
}

impl<'a, D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Tick<'a, D, C, K, S, A> {
    pub fn calls_left(&self) -> u32 {
        (self.ports.calls_left)()
    }

    pub const fn outbox(&self) -> Outbox<'a, D, C> {
        Outbox { database: self.ports.database, chain: self.ports.chain, hook: &transitions::statements }
    }

    /// Writes statements in one batch, if there are any.
    pub async fn write(&self, statements: Vec<Write>) -> Result<(), DatabaseError> {
        if !statements.is_empty() {
            self.ports.database.batch(statements).await?;
        }
        Ok(())
    }

    /// Writes independent groups of statements, and adds those that fail to the report's notes.
    pub async fn write_each(&mut self, changes: Vec<Vec<Write>>) {
        let refused = write_each(self.ports.database, changes).await;
        self.report.notes.extend(refused);
    }
}
