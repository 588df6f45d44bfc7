//! One tick, read from the top: [`Tick::run`] names its parts in their order.

use std::collections::BTreeMap;

use cardano::keys::SigningKey;
use sql::Database;

use super::{
    ArbiterClient, Keys, Ledger, Report, Watch,
    context::{Tick, View},
    plan::Plan,
    stored::Stored,
    sync::Synced,
};
use crate::{contents::Contents, port_error::PortError};

impl<'a, D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Tick<'a, D, C, K, S, A> {
    /// The whole tick.
    ///
    /// # Errors
    /// What could not be asked, where nothing can be done without it.
    pub async fn run(ports: &'a Watch<'a, D, C, K, S, A>) -> Result<Report, PortError> {
        let stored = Stored::load(ports.database).await?;
        let tip = ports.chain.tip().await?;
        let clock = ports.lead.clock(tip.time_ms, ports.now);
        let view = View {
            tip,
            clock,
            rollbacks: stored.rollbacks,
            read_to: stored.read_to(),
            seller: ports.keys.seller().filter(|_| ports.sells).map(SigningKey::enterprise_address),
            checks_wallet: stored.checks_wallet(tip.height),
        };
        let mut tick = Self { ports, view, wallet: None, unposted: BTreeMap::new(), report: Report::default() };
        if let Some(synced) = tick.sync(stored).await? {
            tick.run_parts(synced).await?;
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
}
