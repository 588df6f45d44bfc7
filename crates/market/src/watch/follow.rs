//! Our escrows are followed by their own outputs: what spent this one, and into what. What others put at the escrow's address
//! cannot come between.

use cardano::{
    TxRef,
    chain::{Chain, ChainError},
    evaluation::Evaluate,
    history::History,
    slots::Millis,
};
use sql::Database;

use super::{
    Report, TickError, TickView, Watch,
    due::{self, Due},
};
use crate::{
    contents::Contents,
    escrow_steps::{Found, Recorded, Spending, StepRecorder},
};

/// Outside calls that following one step takes.
const CALLS_PER_STEP: u32 = 3;
/// When an escrow is looked at that this tick did not come to.
const SOON_MS: Millis = 60_000;
/// After so many in a row that the provider said nothing about, the rest is left for the next tick.
const MAX_UNSERVED: u32 = 3;

impl<D: Database, C: Chain + History + Evaluate, K: Contents> Watch<'_, D, C, K> {
    /// Looks whether escrows were spent on which nothing is to be done before the time that stands with each.
    pub(super) async fn follow_all(
        &self,
        waiting: Vec<(Due, Millis)>,
        view: &TickView,
        report: &mut Report,
    ) -> Result<(), TickError> {
        let mut unserved = 0_u32;
        let (mut later, mut statements) = (vec![], vec![]);
        for (due, until) in waiting {
            if (self.calls_left)() < CALLS_PER_STEP || unserved >= MAX_UNSERVED {
                later.push((due, view.clock.saturating_add(SOON_MS)));
                continue;
            }
            let followed = self.follow(&due.utxo, view, report).await;
            if followed.is_ok() {
                unserved = 0;
            }
            match followed {
                Ok(Spending::Unspent) => later.push((due, until)),
                Ok(Spending::SpentBy(_)) => {}
                Ok(Spending::Unknown) => statements.push(due::put_off(&due, view.clock)),
                Err(error) => {
                    let too_long = matches!(error, TickError::Chain(ChainError::TooLong));
                    unserved = unserved.saturating_add(u32::from(!too_long));
                    report.note(&due.purchase, &error);
                    statements.push(due::put_off(&due, view.clock));
                }
            }
        }
        statements.extend((!later.is_empty()).then(|| due::look_again(&later)));
        if !statements.is_empty() {
            self.database.batch(statements).await?;
        }
        Ok(())
    }

    /// Follows an escrow from the output that it was last known to be, by one step. Later steps are due at once, and are not
    /// read here: a buyer makes as long a step as they like.
    pub(super) async fn follow(
        &self,
        from: &TxRef,
        view: &TickView,
        report: &mut Report,
    ) -> Result<Spending, TickError> {
        let mut recorded = Recorded::default();
        let spending = self.recorder(view).follow(from, &mut recorded).await;
        report.absorb(recorded);
        Ok(spending?)
    }

    /// Records what these transactions did to our escrows.
    pub(super) async fn record(
        &self,
        found: Vec<Found>,
        view: &TickView,
        report: &mut Report,
    ) -> Result<(), TickError> {
        report.absorb(self.recorder(view).record(found).await?);
        Ok(())
    }

    const fn recorder(&self, view: &TickView) -> StepRecorder<'_, D, C> {
        let TickView { tip, rollbacks, seller, .. } = *view;
        StepRecorder { database: self.database, chain: self.chain, tip, rollbacks, seller, now: self.now }
    }
}
