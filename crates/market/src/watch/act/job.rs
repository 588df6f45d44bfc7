//! What goes into one transaction: one escrow, or several on which the seller does the same. What failed before goes alone:
//! whoever holds it back holds back nobody else.

use std::collections::VecDeque;

use cardano::{
    Lovelace,
    chain::{Chain, ChainError},
    evaluation::Evaluate,
    history::History,
    keys::SigningKey,
    slots::Millis,
    tx::{
        TransactionUtxos,
        build::{BuiltTx, NewOutput, TxPlan},
    },
};
use escrow::{
    State,
    plan::{DraftError, Escrow, PlanError, Step},
};
use outbox::{Draft, Entry, Kind, by_id};
use sql::Database;

use super::{Judged, Means, Undone, judge::is_nearly_over, wallet::SellerWallet};
use crate::{
    contents::Contents,
    escrow_steps::Spending,
    results::purpose,
    watch::{ArbiterClient, Keys, Report, TickError, Watch, decide::NextStep, due},
};

/// Escrows in one transaction at most. Each runs the contract, and each run reads all of them, so the saving of one more
/// shrinks. Fee for each, in lovelace, measured on the local ledger with 1, 2, 4, 6 and 8 together: posting 305,137,
/// 189,894, 153,686, 162,591, 184,353; collecting 284,850, 162,965, 112,900, 106,515, 111,838.
pub(super) const MAX_TOGETHER: usize = 5;

/// How soon a result is tried again for which the wallet had too little that was free.
const FUNDS_MS: Millis = 10_000;

impl Judged {
    /// Whether it may go with others: the seller's, not what failed before, and no result whose time is nearly over, for that
    /// of all of them ends with the first.
    fn shares(&self, clock: Millis) -> bool {
        let has_time = || !self.datum.has_result() && !is_nearly_over(&self.datum, clock);
        let sellers = self.step == NextStep::Collect || self.step == NextStep::PostResult && has_time();
        sellers && self.due.failures == 0
    }
}

/// Escrows, never none, with the same step.
pub(super) struct Job(Vec<Judged>);

/// An escrow with the plan for its step.
struct Planned {
    judged: Judged,
    escrow: Escrow,
    plan: TxPlan,
}

impl Job {
    /// Jobs in the order of their first escrows; what the arbiter is asked has time, and comes last.
    pub fn sort(judged: Vec<Judged>, clock: Millis) -> VecDeque<Self> {
        let mut jobs: VecDeque<Self> = VecDeque::new();
        let mut asked = VecDeque::new();
        for judged in judged {
            let shares = judged.shares(clock);
            let alike = |job: &&mut Self| {
                let first = job.0.first().filter(|it| it.shares(clock));
                first.is_some_and(|it| {
                    let as_safe = it.step != NextStep::PostResult || it.datum.state == judged.datum.state;
                    it.step == judged.step && as_safe
                })
            };
            match jobs.iter_mut().filter(alike).find(|job| shares && job.0.len() < MAX_TOGETHER) {
                Some(job) => job.0.push(judged),
                None if judged.step == NextStep::AskArbiter => asked.push_back(Self::alone(judged)),
                None => jobs.push_back(Self::alone(judged)),
            }
        }
        // What its buyer cannot overtake any more goes first: it is not built on what may be overtaken.
        jobs.make_contiguous().sort_by_key(|job| !job.posts_safely());
        jobs.append(&mut asked);
        jobs
    }

    fn posts_safely(&self) -> bool {
        self.0
            .first()
            .is_some_and(|judged| judged.step == NextStep::PostResult && judged.datum.state == State::RefundRequested)
    }

    pub fn alone(judged: Judged) -> Self {
        Self(vec![judged])
    }

    pub fn cases(&self) -> &[Judged] {
        &self.0
    }

    pub fn asks(&self) -> bool {
        self.0.first().is_some_and(|judged| judged.step == NextStep::AskArbiter)
    }
}

impl<D: Database, C: Chain + History + Evaluate, K: Contents> Watch<'_, D, C, K> {
    /// Does a job. What to try instead, where its escrows cannot be done together: each half of them.
    pub(super) async fn do_job(
        &self,
        job: Job,
        means: &Means<'_, impl Keys, impl ArbiterClient>,
        platform: &mut Option<SellerWallet>,
        undone: &mut Undone,
        report: &mut Report,
    ) -> Result<Vec<Job>, TickError> {
        if let ([judged], true) = (job.cases(), job.asks()) {
            return self.ask(judged, means, report).await;
        }
        let Some(key) = means.keys.seller() else { return Ok(Vec::new()) };
        let platform = self.platform(platform, key, means.needs, means.view).await?;
        let planned = self.plan_all(job.0, means, platform, undone, report).await?;
        let Some(first) = planned.first() else { return Ok(Vec::new()) };
        let Some((kind, _)) = step(&first.judged) else { return Ok(Vec::new()) };
        let purpose = purpose(&first.escrow.utxo.reference);
        let refused = match self.built(&planned, means, key, platform).await {
            Ok(built) => {
                let purchases: Vec<_> = planned.iter().map(|planned| planned.judged.due.purchase).collect();
                let draft = Draft::built(kind, purpose, platform.address, &built);
                let refused = self.send(&draft, &built.facts.change, &purchases, platform, report).await?;
                refused.map(DraftError::Refused)
            }
            Err(DraftError::Chain(error)) => return Err(error.into()),
            Err(error) => Some(error),
        };
        let mut cases: Vec<Judged> = planned.into_iter().map(|planned| planned.judged).collect();
        match (refused, cases.as_slice()) {
            // Mostly what is not free is change that comes with the next block: that is no fault of theirs.
            (Some(error), all) if kind == Kind::Result && error.lacks_funds() => {
                let soon = means.view.clock.saturating_add(FUNDS_MS);
                let later: Vec<_> = all.iter().map(|judged| (judged.due.clone(), soon)).collect();
                self.database.run(due::look_again(&later)).await?;
                for judged in all {
                    undone.keep(&judged.due.purchase, &error, report);
                }
            }
            (None, done) => done.iter().for_each(|judged| undone.done(&judged.due.purchase)),
            (Some(error), [alone]) => self.fail(alone, &error, means, undone, report).await?,
            (Some(error), _) => {
                let named: Vec<Judged> = cases.extract_if(.., |judged| error.names(&judged.due.utxo)).collect();
                for judged in &named {
                    self.fail(judged, &error, means, undone, report).await?;
                }
                let halves = if named.is_empty() { cases.len().div_ceil(2) } else { cases.len() };
                let second = cases.split_off(halves);
                return Ok([cases, second].into_iter().filter(|cases| !cases.is_empty()).map(Job).collect());
            }
        }
        Ok(Vec::new())
    }

    /// An action may fail because another step of the escrow came first: then that is recorded, and what follows is due.
    async fn fail(
        &self,
        judged: &Judged,
        error: &DraftError,
        means: &Means<'_, impl Keys, impl ArbiterClient>,
        undone: &mut Undone,
        report: &mut Report,
    ) -> Result<(), TickError> {
        if matches!(error, DraftError::Refused(_)) {
            match self.follow(&judged.due.utxo, means.view, report).await {
                Ok(Spending::SpentBy(_)) => {
                    undone.done(&judged.due.purchase);
                    return Ok(());
                }
                Ok(Spending::Unspent | Spending::Unknown) => {}
                // Whoever made it decides how long what is told of it is: what else is to be done goes on.
                Err(TickError::Chain(
                    why @ (ChainError::TooLong | ChainError::Unavailable(_) | ChainError::Malformed(_)),
                )) => report.note(&judged.due.purchase, &why),
                Err(error) => return Err(error),
            }
        }
        self.put_off(judged, error, means, undone, report).await?;
        Ok(())
    }

    async fn plan_all(
        &self,
        job: Vec<Judged>,
        means: &Means<'_, impl Keys, impl ArbiterClient>,
        platform: &SellerWallet,
        undone: &mut Undone,
        report: &mut Report,
    ) -> Result<Vec<Planned>, TickError> {
        let made = job.iter().map(|judged| by_id(&judged.due.utxo.tx)).collect();
        let made = self.database.batch(made).await?;
        let mut planned = Vec::new();
        for (judged, made) in job.into_iter().zip(made) {
            let Some(escrow) = self.escrow(&judged, Entry::first(&made)?, means).await? else {
                self.put_off(&judged, &"the provider does not know it", means, undone, report).await?;
                continue;
            };
            let Some((_, step)) = step(&judged) else { continue };
            match means.planner(platform).plan(&escrow, &step, means.time()) {
                Ok(plan) => planned.push(Planned { plan: whole_to_buyer(plan, &escrow, &step), judged, escrow }),
                // The newest block is not there yet: the next tick tries again.
                Err(PlanError::NotYet(_)) => {}
                Err(error) => self.put_off(&judged, &error, means, undone, report).await?,
            }
        }
        Ok(planned)
    }

    /// The escrow's output, from the bytes of what made it. Whether it is still there, the ledger says to what spends it.
    async fn escrow(
        &self,
        judged: &Judged,
        made: Option<Entry>,
        means: &Means<'_, impl Keys, impl ArbiterClient>,
    ) -> Result<Option<Escrow>, TickError> {
        let utxo = judged.due.utxo;
        let cbor = match made {
            Some(entry) if !entry.cbor.is_empty() => Some(entry.cbor),
            _ => self.chain.transaction(&utxo.tx).await?,
        };
        let utxos = cbor.and_then(|cbor| TransactionUtxos::read(&cbor).ok());
        let output = utxos.and_then(|utxos| utxos.made.into_iter().find(|output| output.reference == utxo));
        Ok(output.and_then(|output| Escrow::read(output, means.deployment).ok()))
    }

    /// The signed transaction; with change that is on its way, where nothing else is enough; with less from the wallet, where
    /// that is refused for what the provider does not show.
    async fn built(
        &self,
        planned: &[Planned],
        means: &Means<'_, impl Keys, impl ArbiterClient>,
        key: &SigningKey,
        platform: &mut SellerWallet,
    ) -> Result<BuiltTx, DraftError> {
        let plan = |platform: &SellerWallet| {
            let plans = planned.iter().map(|planned| planned.plan.clone()).collect();
            let mut plan = means.planner(platform).together(plans).ok_or(PlanError::OutOfRange)?;
            // Several escrows fill a transaction, and leave more than dust.
            if planned.len() == 1 {
                plan.inputs.extend(platform.dust());
            }
            Ok::<_, DraftError>(plan)
        };
        let draft = async |platform: &SellerWallet| {
            means.planner(platform).draft_of(self.chain, plan(platform)?, &platform.wallet()).await
        };
        let mut drafted = draft(platform).await;
        if drafted.as_ref().is_err_and(DraftError::wants_more_of_the_wallet) && platform.spend_change() {
            drafted = draft(platform).await;
        }
        let draft = match drafted {
            Err(DraftError::Refused(reason)) if platform.distrust_what(&reason) => draft(platform).await,
            drafted => drafted,
        }?;
        let holder = planned.first().and_then(|planned| planned.judged.due.holder.as_ref());
        let buyer = holder.and_then(|holder| means.keys.buyer(holder));
        let signers: Vec<&SigningKey> = std::iter::once(key).chain(&buyer).collect();
        Ok(draft.sign(&signers)?)
    }
}

fn step(judged: &Judged) -> Option<(Kind, Step)> {
    let due = &judged.due;
    match judged.step {
        NextStep::PostResult => Some((Kind::Result, Step::SubmitResult(judged.result?))),
        NextStep::Collect => {
            let payouts = Some((due.creator, due.share)).filter(|(_, share)| *share > Lovelace::ZERO);
            Some((Kind::Collect, Step::Withdraw { payouts: payouts.into_iter().collect() }))
        }
        NextStep::Refund => Some((Kind::Refund, Step::WithdrawRefund)),
        NextStep::Dispute => Some((Kind::Dispute, Step::SetRefundRequested)),
        NextStep::AskArbiter | NextStep::Wait(_) => None,
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
