//! Asking the arbiter to settle a dispute.

use cardano::{
    chain::{Chain, ChainError},
    evaluation::Evaluate,
    history::History,
    slots::Millis,
};
use escrow::evidence::EVIDENCE_GRACE_MS;
use sql::Database;

use super::{Judged, Means, job::Job};
use crate::{
    contents::Contents,
    escrow_steps::Spending,
    watch::{
        ArbiterClient, Dispute, Keys, Report, TickError, Watch,
        decide::NextStep,
        due::{self, Due},
    },
};

/// How often the arbiter is asked again.
const ASK_AGAIN_MS: Millis = 60_000;
/// The arbiter's answer when nothing is proven.
const NO_VERDICT: &str = "no_verdict";

impl<D: Database, C: Chain + History + Evaluate, K: Contents> Watch<'_, D, C, K> {
    /// Asks, unless the dispute is over: no transaction of ours would be refused for that, and say so. Then what is due next.
    /// As long as nothing is proven asking again changes nothing, until there is no more to wait for.
    pub(super) async fn ask(
        &self,
        judged: &Judged,
        means: &Means<'_, impl Keys, impl ArbiterClient>,
        report: &mut Report,
    ) -> Result<Vec<Job>, TickError> {
        let due = &judged.due;
        let purchase = due.purchase;
        if due.may_be_gone(means.view.read_to) {
            match self.follow(&due.utxo, means.view, report).await {
                Ok(Spending::SpentBy(_)) => return self.next_of(judged, means, report).await,
                Ok(Spending::Unspent | Spending::Unknown) => {}
                Err(error @ (TickError::Database(_) | TickError::Chain(ChainError::BudgetExhausted))) => {
                    return Err(error);
                }
                Err(error) => report.note(&purchase, &error),
            }
        }
        let Some(output) = self.contents.get(&due.content_hash).await? else {
            report.note(&purchase, &"what was sold is not there");
            self.database.run(due::put_off(due, means.view.clock)).await?;
            return Ok(Vec::new());
        };
        let dispute =
            Dispute { escrow: due.utxo, listing_id: &due.listing_id, content_hash: due.content_hash, output: &output };
        let later = match means.arbiter.resolve(&dispute).await {
            Ok(answer) => {
                report.acted.push(format!("asked the arbiter about {purchase}: {answer}"));
                let again = means.view.clock.saturating_add(ASK_AGAIN_MS);
                let over = judged.datum.deadlines.external_dispute_unlock.saturating_add(EVIDENCE_GRACE_MS);
                due::look_again(&[(due.clone(), if answer == NO_VERDICT { again.max(over) } else { again })])
            }
            Err(error) => {
                report.note(&purchase, &format_args!("the arbiter cannot be asked: {error}"));
                due::put_off(due, means.view.clock)
            }
        };
        self.database.run(later).await?;
        Ok(Vec::new())
    }

    /// What there is to do now on an escrow that went on.
    async fn next_of(
        &self,
        judged: &Judged,
        means: &Means<'_, impl Keys, impl ArbiterClient>,
        report: &mut Report,
    ) -> Result<Vec<Job>, TickError> {
        let due: Vec<Due> = self.database.run(due::due(means.view.clock, 0)).await?.all_json()?;
        let Some(due) = due.into_iter().find(|due| due.purchase == judged.due.purchase) else { return Ok(Vec::new()) };
        let Some((datum, step, result)) = self.judge(&due, means, true, report).await? else { return Ok(Vec::new()) };
        let acts = !matches!(step, NextStep::Wait(_) | NextStep::AskArbiter);
        Ok(acts.then(|| Job::alone(Judged { due, datum, step, result })).into_iter().collect())
    }
}
