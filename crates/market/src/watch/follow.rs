//! Follows escrows through their own outputs: finds the transaction that spent an output, and the output that it
//! created. Strangers' outputs at the contract's address cannot interfere.

use cardano::{TxRef, slots::Millis};
use sql::Database;

use super::{
    ArbiterClient, Keys, Ledger,
    context::{MAX_PROVIDER_FAILURES, Tick, View},
    due::{self, Due},
};
use crate::{
    contents::Contents,
    escrow_steps::{IncludedTx, Recorded, Spending, StepRecorder},
    port_error::PortError,
};

/// Maximum number of provider calls that it takes to find and read the transaction that spent an escrow's output.
const CALLS_PER_STEP: u32 = 3;
/// Time in ms after which an escrow is checked again if a run of the watcher had no time to check it.
const SOON_MS: Millis = 60_000;

impl<'a, D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Tick<'a, D, C, K, S, A> {
    /// Checks whether these idle escrows were spent. Schedules the next check of each for the time given with it.
    pub(super) async fn follow_all(&mut self, waiting: Vec<(Due, Millis)>) -> Result<(), PortError> {
        let mut provider_failures = 0_u32;
        let (mut later, mut statements) = (vec![], vec![]);
        for (due, until) in waiting {
            if self.calls_left() < CALLS_PER_STEP || provider_failures >= MAX_PROVIDER_FAILURES {
                later.push((due, self.view.clock.saturating_add(SOON_MS)));
                continue;
            }
            let followed = self.follow(&due.utxo).await;
            if followed.is_ok() {
                provider_failures = 0;
            }
            match followed {
                Ok(Spending::Unspent) => later.push((due, until)),
                Ok(Spending::SpentBy(_)) => {}
                Ok(Spending::Unknown) => statements.push(due::retry_later(&due, self.view.clock)),
                Err(error) => {
                    provider_failures = provider_failures.saturating_add(u32::from(error.is_provider_down()));
                    self.report.note(&due.purchase, &error);
                    statements.push(due::retry_later(&due, self.view.clock));
                }
            }
        }
        statements.extend((!later.is_empty()).then(|| due::check_later(&later)));
        Ok(self.write(statements).await?)
    }

    /// Finds and records the transaction that spent an escrow's last known output. Later transactions are left to the
    /// watcher's next run, for which the escrow becomes due, because a buyer could make more transactions than one run
    /// can read.
    pub(super) async fn follow(&mut self, from: &TxRef) -> Result<Spending, PortError> {
        let mut recorded = Recorded::default();
        let spending = self.recorder().follow(from, &mut recorded).await;
        self.report.absorb(recorded);
        Ok(spending?)
    }

    /// Records the effects of these transactions on our escrows.
    pub(super) async fn record(&mut self, found: Vec<IncludedTx>) -> Result<(), PortError> {
        let recorded = self.recorder().record(found).await?;
        self.report.absorb(recorded);
        Ok(())
    }

    const fn recorder(&self) -> StepRecorder<'a, D, C> {
        let (ports, View { tip, rollbacks, seller, .. }) = (self.ports, self.view);
        StepRecorder { database: ports.database, chain: ports.chain, tip, rollbacks: Some(rollbacks), seller }
    }
}
