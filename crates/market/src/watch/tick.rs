//! A run of the watcher (a *tick*), with its parts in order.

use api_types::{Alarm, AlarmName};
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

impl<D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Watch<'_, D, C, K, S, A> {
    /// Reads the chain and performs due actions, as far as provider calls suffice.
    ///
    /// # Errors
    /// Returns an error if the database or the provider failed. Everything that was written before stays, and the
    /// watcher's next run resumes.
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
        let is_restored = stored.has_unread_wallets;
        let mut tick = Tick {
            ports: self,
            view,
            chain: BTreeMap::new(),
            wallet: None,
            late_results: BTreeMap::new(),
            report: Report::default(),
        };
        if let Some(stored) = tick.sync(stored).await? {
            tick.clean_up().await;
            if let Some(synced) = tick.note_tip(stored).await? {
                tick.run_parts(synced).await?;
            }
        }
        let alarms = self.alarms(clock).await?;
        let Tick { mut report, late_results, .. } = tick;
        for (purchase, why) in late_results {
            let message = format!("no result of {purchase} is posted yet, and its deadline is near: {why}");
            report.alarms.push(Alarm::new(AlarmName::ResultLate, message));
        }
        report.alarms.extend(alarms);
        if is_restored {
            let message = "the database was restored to an earlier state: some wallets' transactions are still being read from \
                the chain, and these wallets do not pay until then";
            report.alarms.push(Alarm::new(AlarmName::DatabaseRestored, message));
        }
        report.shorten();
        Ok(report)
    }
}

impl<D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Tick<'_, D, C, K, S, A> {
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

    /// Plans and performs actions, and checks whether idle escrows were spent meanwhile.
    async fn plan_and_act(&mut self, deployment: &escrow::Deployment) -> Result<(), PortError> {
        let Plan { tasks, needs, waiting } = self.plan().await?;
        // An earlier plan of this run may have read too little of the wallet.
        self.wallet = None;
        self.act(deployment, tasks, needs).await?;
        self.follow_all(waiting).await
    }
}
