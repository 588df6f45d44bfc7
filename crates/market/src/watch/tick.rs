//! One tick, read from the top: [`Tick::run`] names its parts in their order.

use std::collections::BTreeMap;

use cardano::{
    Address, TxHash,
    chain::{Inclusion, Tip},
    keys::SigningKey,
    slots::Millis,
};
use outbox::Outbox;
use sql::{Database, Statement};

use super::{
    ArbiterClient, Keys, Ledger, Report, TickError, Watch, act::SellerWallet, plan::Plan, restore::Restore,
    stored::Stored, sync::Synced,
};
use crate::{contents::Contents, escrow_steps::write_each, transitions::Transitions};

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
    pub looks_at_wallet: bool,
}

impl View {
    /// Whether this tick's chain can have a block: it is older than the tip, or the tip itself. A node on another fork may
    /// show another block of the tip's height.
    pub fn knows(&self, block: &Inclusion) -> bool {
        block.height < self.tip.height || block.block == self.tip.hash
    }
}

/// One tick under way.
pub(super) struct Tick<'a, D, C, K, S, A> {
    pub ports: &'a Watch<'a, D, C, K, S, A>,
    pub view: View,
    /// The platform's wallet, once it was read.
    pub wallet: Option<SellerWallet>,
    /// Results whose time is nearly over, by their purchases: why they are not posted yet.
    pub unposted: BTreeMap<TxHash, String>,
    pub report: Report,
}

impl<'a, D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Tick<'a, D, C, K, S, A> {
    /// The whole tick.
    ///
    /// # Errors
    /// What could not be asked, where nothing can be done without it.
    pub async fn run(ports: &'a Watch<'a, D, C, K, S, A>) -> Result<Report, TickError> {
        let stored = Stored::load(ports.database).await?;
        let tip = ports.chain.tip().await?;
        let clock = ports.lead.clock(tip.time_ms, ports.now);
        let view = View {
            tip,
            clock,
            rollbacks: stored.rollbacks,
            read_to: stored.read_to(),
            seller: ports.keys.seller().filter(|_| ports.sells).map(SigningKey::enterprise_address),
            looks_at_wallet: stored.looks_at_wallet(tip.height),
        };
        let mut tick = Self { ports, view, wallet: None, unposted: BTreeMap::new(), report: Report::default() };
        if let Some(synced) = tick.sync(stored).await? {
            tick.go_on(synced).await?;
        }
        let alarms = ports.alarms(clock).await?;
        let Self { mut report, unposted, .. } = tick;
        for (purchase, why) in unposted {
            report.alarms.push(format!("no result of {purchase} yet, and its time is nearly over: {why}"));
        }
        report.alarms.extend(alarms);
        report.shorten();
        Ok(report)
    }

    async fn go_on(&mut self, synced: Synced) -> Result<(), TickError> {
        let Synced { stored: Stored { actions, open, unread, next, restores, .. }, doubtful, unsure } = synced;
        self.reconcile(actions, doubtful, unsure, open).await?;
        if restores {
            self.restore().read_wallets(&mut self.report).await?;
        }
        let Some(deployment) = self.ports.deployment else {
            if restores {
                self.adopt().await?;
            }
            return Ok(());
        };
        self.work(deployment).await?;
        let found = self.backfill(deployment, next, unread).await?;
        let adopted = restores && self.adopt().await?;
        if found || adopted {
            self.view.looks_at_wallet = false;
            self.work(deployment).await?;
        }
        Ok(())
    }

    /// Plans and acts, and looks whether what only waits was spent meanwhile.
    async fn work(&mut self, deployment: &escrow::Deployment) -> Result<(), TickError> {
        let Plan { tasks, needs, waiting } = self.plan().await?;
        self.act(deployment, tasks, needs).await?;
        self.follow_all(waiting).await
    }

    async fn adopt(&mut self) -> Result<bool, TickError> {
        match self.restore().adopt_escrows(&mut self.report).await {
            Err(TickError::Chain(error)) => {
                self.report.note(&"an unknown escrow", &error);
                Ok(false)
            }
            adopted => adopted,
        }
    }

    fn restore(&self) -> Restore<'a, D, C> {
        let ports = self.ports;
        Restore {
            database: ports.database,
            chain: ports.chain,
            deployment: ports.deployment,
            seller: ports.keys.seller().filter(|_| ports.sells),
            tip: self.view.tip,
            clock: self.view.clock,
            now: ports.now,
            calls_left: ports.calls_left,
        }
    }

    pub fn calls_left(&self) -> u32 {
        (self.ports.calls_left)()
    }

    pub const fn outbox(&self) -> Outbox<'a, D, C> {
        Outbox { database: self.ports.database, chain: self.ports.chain, hook: &Transitions }
    }

    /// Writes changes that do not depend on one another; what the database refuses is noted.
    pub async fn write_each(&mut self, changes: Vec<Vec<Statement>>) {
        let refused = write_each(self.ports.database, changes).await;
        self.report.notes.extend(refused);
    }
}
