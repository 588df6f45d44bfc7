//! One tick, read from the top: its parts in their order, and what it carries from part to part.

use std::collections::BTreeMap;

use cardano::{Address, TxHash, chain::Tip, keys::SigningKey, slots::Millis};
use outbox::Outbox;
use sql::{Database, DatabaseError, Statement};

use super::{ArbiterClient, Keys, Ledger, Report, Watch, plan::Plan, stored::Stored, sync::Synced};
use crate::{
    contents::Contents, escrow_steps::write_each, platform::PlatformWallet, port_error::PortError, transitions,
};

/// Outside calls that looking after entries leaves for what is due.
pub(super) const CALLS_KEPT: u32 = 16;
/// After so many questions that the provider did not serve, the rest of a part is left for the next tick.
pub(super) const MAX_UNSERVED: u32 = 3;

/// The chain and the stored progress as this tick found them.
#[derive(Clone, Copy)]
pub(super) struct View {
    pub tip: Tip,
    /// The clock of escrow matters: the later of the wall clock and the newest block's time.
    pub clock: Millis,
    /// Rollbacks that were undone before: what this tick finds is written only while no other tick undoes one.
    pub rollbacks: u64,
    /// The block up to which the address's history was read.
    pub read_to: u64,
    /// The seller of record, if we act as such.
    pub seller: Option<Address>,
    /// Whether the platform's wallet is read though nothing is to be paid: its outputs may be too few.
    pub checks_wallet: bool,
}

pub(super) struct Tick<'a, D, C, K, S, A> {
    pub ports: &'a Watch<'a, D, C, K, S, A>,
    pub view: View,
    /// The platform's wallet, once it was read.
    pub wallet: Option<PlatformWallet>,
    /// Results whose time is nearly over, by their purchases: why they are not posted yet.
    pub unposted: BTreeMap<TxHash, String>,
    pub report: Report,
}

impl<D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Watch<'_, D, C, K, S, A> {
    /// Reads what is new and does what is due, as far as the calls reach.
    ///
    /// # Errors
    /// What could not be asked, where nothing can be done without it. What was written stays; the next tick goes on.
    pub async fn tick(&self) -> Result<Report, PortError> {
        let stored = Stored::load(self.database).await?;
        let tip = self.chain.tip().await?;
        let clock = self.lead.clock(tip.time_ms, self.now);
        let view = View {
            tip,
            clock,
            rollbacks: stored.rollbacks,
            read_to: stored.read_to(),
            seller: self.keys.seller().filter(|_| self.sells).map(SigningKey::enterprise_address),
            checks_wallet: stored.checks_wallet(tip.height),
        };
        let mut tick = Tick { ports: self, view, wallet: None, unposted: BTreeMap::new(), report: Report::default() };
        if let Some(synced) = tick.sync(stored).await? {
            tick.run_parts(synced).await?;
        }
        let alarms = self.alarms(clock).await?;
        let Tick { mut report, unposted, .. } = tick;
        for (purchase, why) in unposted {
            report.alarms.push(format!("no result of {purchase} yet, and its time is nearly over: {why}"));
        }
        report.alarms.extend(alarms);
        report.shorten();
        Ok(report)
    }
}

impl<'a, D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Tick<'a, D, C, K, S, A> {
    async fn run_parts(&mut self, synced: Synced) -> Result<(), PortError> {
        let Synced { stored: Stored { actions, open, unread, next, has_unread_wallets, .. }, blocks, steps } = synced;
        self.reconcile(actions, blocks, steps, open).await?;
        if let Some(deployment) = self.ports.deployment {
            self.plan_and_act(deployment).await?;
        }
        let restored = has_unread_wallets && self.read_restored().await;
        let Some(deployment) = self.ports.deployment else { return Ok(()) };
        let found = self.backfill(deployment, next, unread).await?;
        if found || restored {
            self.view.checks_wallet = false;
            self.plan_and_act(deployment).await?;
        }
        Ok(())
    }

    /// Plans and acts, and looks whether what only waits was spent meanwhile.
    async fn plan_and_act(&mut self, deployment: &escrow::Deployment) -> Result<(), PortError> {
        let Plan { tasks, needs, waiting } = self.plan().await?;
        // Read anew where this plan needs more than an earlier one of this tick.
        self.wallet = None;
        self.act(deployment, tasks, needs).await?;
        self.follow_all(waiting).await
    }

    pub fn calls_left(&self) -> u32 {
        (self.ports.calls_left)()
    }

    pub const fn outbox(&self) -> Outbox<'a, D, C> {
        Outbox { database: self.ports.database, chain: self.ports.chain, hook: &transitions::statements }
    }

    /// Writes these in one batch, if there are any.
    pub async fn write(&self, statements: Vec<Statement>) -> Result<(), DatabaseError> {
        if !statements.is_empty() {
            self.ports.database.batch(statements).await?;
        }
        Ok(())
    }

    /// Writes changes that do not depend on one another; what the database refuses is noted.
    pub async fn write_each(&mut self, changes: Vec<Vec<Statement>>) {
        let refused = write_each(self.ports.database, changes).await;
        self.report.notes.extend(refused);
    }
}
