//! What goes into one transaction: one escrow, or several on which the seller does the same.

use std::collections::VecDeque;

use cardano::{
    chain::Chain,
    evaluation::Evaluate,
    history::History,
    keys::SigningKey,
    tx::build::{BuiltTx, NewOutput, TxPlan},
};
use escrow::plan::{DraftError, Escrow, PlanError, Step};

use super::{
    super::{Arbiter, Report, TickError, Watch, due},
    Case, Decision, Keys, Means,
    purse::{Deed, Purse},
};
use crate::fees::creator_share;
use sql::Database;

/// Escrows in one transaction at most. Each runs the contract, and each run reads all of them, so the saving of one more
/// shrinks. Fee for each, in lovelace, measured on the local ledger with 1, 2, 4, 6 and 8 together: posting 305,137,
/// 189,894, 153,686, 162,591, 184,353; collecting 284,850, 162,965, 112,900, 106,515, 111,838.
const MOST_TOGETHER: usize = 5;

/// Escrows, never none, with the same decision.
pub(super) struct Job(Vec<Case>);

/// A case with what the chain shows of its escrow, and the plan for it.
struct Planned {
    case: Case,
    escrow: Escrow,
    plan: TxPlan,
}

impl Job {
    /// Jobs in the order of their first cases.
    pub(super) fn sort(cases: Vec<Case>) -> VecDeque<Self> {
        let mut jobs: VecDeque<Self> = VecDeque::new();
        for case in cases {
            let sellers = matches!(case.decision, Decision::PostResult | Decision::Collect);
            let alike = |job: &&mut Self| job.0.first().is_some_and(|first| first.decision == case.decision);
            match jobs.iter_mut().filter(alike).find(|job| sellers && job.0.len() < MOST_TOGETHER) {
                Some(job) => job.0.push(case),
                None => jobs.push_back(Self::alone(case)),
            }
        }
        jobs
    }

    pub(super) fn alone(case: Case) -> Self {
        Self(vec![case])
    }

    pub(super) fn cases(&self) -> &[Case] {
        &self.0
    }
}

impl<D: Database, C: Chain + History + Evaluate> Watch<'_, D, C> {
    /// Does a job. The cases to try one by one, where they cannot be done together.
    pub(super) async fn do_job(
        &self,
        job: Job,
        means: &Means<'_, impl Keys, impl Arbiter>,
        purse: &mut Option<Purse>,
        report: &mut Report,
    ) -> Result<Vec<Case>, TickError> {
        if let [case] = job.cases()
            && case.decision == Decision::AskArbiter
        {
            self.ask(case, means, report).await?;
            return Ok(Vec::new());
        }
        let Some(platform) = means.keys.seller() else { return Ok(Vec::new()) };
        let purse = self.purse(purse, platform).await?;
        let mut planned = Vec::new();
        for case in job.0 {
            let Some(escrow) = self.unspent(&case, means).await? else {
                self.put_off(&case, &"the provider does not show it unspent", means, report).await?;
                continue;
            };
            let Some((_, step)) = step(&case) else { continue };
            match means.planner(purse).plan(&escrow, &step, means.time) {
                Ok(plan) => planned.push(Planned { plan: whole_to_buyer(plan, &escrow, &step), case, escrow }),
                // The newest block is not there yet: the next tick tries again.
                Err(PlanError::NotYet(_)) => {}
                Err(error) => self.put_off(&case, &error, means, report).await?,
            }
        }
        let Some(first) = planned.first() else { return Ok(Vec::new()) };
        let Some((action, _)) = step(&first.case) else { return Ok(Vec::new()) };
        let purpose = format!("escrow:{}", first.escrow.utxo.reference);
        let built = match self.built(&planned, means, platform, purse).await {
            Ok(built) => built,
            Err(DraftError::Chain(error)) => return Err(error.into()),
            Err(_) if planned.len() > 1 => return Ok(planned.into_iter().map(|planned| planned.case).collect()),
            Err(error) => {
                for planned in &planned {
                    self.put_off(&planned.case, &error, means, report).await?;
                }
                return Ok(Vec::new());
            }
        };
        let purchases = planned.iter().map(|planned| planned.case.due.purchase).collect();
        if !self.send(&Deed { purpose, action, purchases, built: &built }, purse, report).await? {
            if planned.len() > 1 {
                return Ok(planned.into_iter().map(|planned| planned.case).collect());
            }
            let late = planned.iter().map(|planned| due::put_off(&planned.case.due, means.time.now));
            self.database.batch(late.collect()).await?;
        }
        Ok(Vec::new())
    }

    /// The escrow, if the provider shows it unspent. If not, the chain will tell, and meanwhile it is in nobody's way.
    async fn unspent(
        &self,
        case: &Case,
        means: &Means<'_, impl Keys, impl Arbiter>,
    ) -> Result<Option<Escrow>, TickError> {
        let utxo = case.due.utxo;
        let outputs = self.chain.outputs_of(&utxo.tx).await?.unwrap_or_default();
        let output = outputs.into_iter().find(|output| output.utxo.reference == utxo && output.spent_by.is_none());
        Ok(output.and_then(|output| Escrow::read(output.utxo, means.deployment).ok()))
    }

    /// The signed transaction; with less from the wallet, where the first is refused for what the provider does not show.
    async fn built(
        &self,
        planned: &[Planned],
        means: &Means<'_, impl Keys, impl Arbiter>,
        platform: &SigningKey,
        purse: &mut Purse,
    ) -> Result<BuiltTx, DraftError> {
        let plan = |purse: &Purse| {
            let plans = planned.iter().map(|planned| planned.plan.clone()).collect();
            let mut plan = means.planner(purse).together(plans).ok_or(PlanError::OutOfRange)?;
            // Several escrows fill a transaction, and leave more than a crumb.
            if planned.len() == 1 {
                plan.inputs.extend(purse.crumbs());
            }
            Ok::<_, DraftError>(plan)
        };
        let draft = match means.planner(purse).draft_of(self.chain, plan(purse)?, &purse.wallet()).await {
            Err(DraftError::Refused(_)) if purse.distrust() => {
                means.planner(purse).draft_of(self.chain, plan(purse)?, &purse.wallet()).await
            }
            draft => draft,
        }?;
        let holder = planned.first().and_then(|planned| planned.case.due.holder.as_ref());
        let buyer = holder.and_then(|holder| means.keys.buyer(holder));
        let signers: Vec<&SigningKey> = std::iter::once(platform).chain(&buyer).collect();
        Ok(draft.sign(&signers)?)
    }

    async fn put_off(
        &self,
        case: &Case,
        why: &impl ToString,
        means: &Means<'_, impl Keys, impl Arbiter>,
        report: &mut Report,
    ) -> Result<(), TickError> {
        report.notes.push(format!("{}: {}", case.due.purchase, why.to_string()));
        self.database.run(due::put_off(&case.due, means.time.now)).await?;
        Ok(())
    }
}

fn step(case: &Case) -> Option<(&'static str, Step)> {
    let due = &case.due;
    match case.decision {
        Decision::PostResult => Some(("result", Step::SubmitResult(case.delivered))),
        Decision::Collect => {
            Some(("withdraw", Step::Withdraw { payouts: vec![(due.creator, creator_share(due.price))] }))
        }
        Decision::Refund => Some(("refund", Step::WithdrawRefund)),
        Decision::Dispute => Some(("dispute", Step::SetRefundRequested)),
        Decision::AskArbiter | Decision::Wait(_) => None,
    }
}

/// Where the contract leaves open to whom a refund goes, the platform's wallet, which pays the fee, must not keep it.
fn whole_to_buyer(mut plan: TxPlan, escrow: &Escrow, step: &Step) -> TxPlan {
    if *step == Step::WithdrawRefund
        && escrow.datum.buyer_return_address.is_none()
        && let Some(buyer) = escrow.datum.buyer.key_address()
    {
        let mut output = NewOutput::pay(buyer, escrow.utxo.value.lovelace);
        output.value = escrow.utxo.value.clone();
        plan.outputs.push(output);
    }
    plan
}
