//! Builds transactions for one escrow, or for several on which the seller takes the same action.
//!
//! Acting on several escrows in one transaction saves fees. Beyond a few escrows, the cost of running the contract
//! outweighs the saving, because it grows with the square of their number. On the local ledger, a result costs 305,137
//! lovelace alone, 153,686 in a transaction with four, and 184,353 with eight.

use cardano::{
    Lovelace,
    chain::ChainError,
    keys::SigningKey,
    slots::Millis,
    tx::build::{BuiltTx, TxPlan},
};
use escrow::{
    Deployment,
    plan::{ChainTime, DraftError, Escrow, PlanError, Planner, Step},
};
use outbox::{Entry, Kind, NewEntry, by_id};
use sql::Database;

use crate::{
    contents::Contents,
    escrow_steps::{Spending, escrow_in},
    escrow_tx,
    platform::PlatformWallet,
    port_error::PortError,
    result_poster::purpose,
    watch::{ArbiterClient, Keys, Ledger, context::Tick, decide::NextStep, due, plan::DueAction},
};

/// Delay in ms before a result is retried if the platform's wallet has too few free outputs.
const FUNDS_MS: Millis = 10_000;

/// An action on an escrow, with the plan of its transaction.
struct Planned {
    action: DueAction,
    escrow: Escrow,
    plan: TxPlan,
}

impl<D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Tick<'_, D, C, K, S, A> {
    /// Performs an action on several escrows in one transaction. If the transaction fails, returns the tasks to try
    /// next: two tasks with half of the escrows each, or, if there is only one escrow, the same task after the wallet
    /// was read again.
    pub(super) async fn act_together(
        &mut self,
        deployment: &Deployment,
        cases: Vec<DueAction>,
        key: &SigningKey,
        platform: &mut PlatformWallet,
    ) -> Result<Vec<Vec<DueAction>>, PortError> {
        let planned = self.plan_all(deployment, cases, platform).await?;
        let Some(first) = planned.first() else { return Ok(vec![]) };
        let Some((kind, _)) = step(&first.action) else { return Ok(vec![]) };
        let purpose = purpose(&first.escrow.utxo.reference);
        let refused = match self.built(deployment, &planned, key, platform).await {
            Ok(built) => {
                let acts_on = planned.iter().map(|planned| planned.action.due.purchase).collect();
                let new = NewEntry { acts_on, ..NewEntry::built(kind, purpose, platform.address, &built) };
                let refused = self.send(&new, &built.facts.change, platform).await?;
                refused.map(DraftError::Refused)
            }
            Err(DraftError::Chain(error)) => return Err(error.into()),
            Err(error) => Some(error),
        };
        let mut cases: Vec<DueAction> = planned.into_iter().map(|planned| planned.action).collect();
        let Some(error) = refused else {
            self.late_results.retain(|purchase, _| !cases.iter().any(|action| action.due.purchase == *purchase));
            return Ok(vec![]);
        };
        if matches!(error, DraftError::Refused(_)) {
            if let [alone] = cases.as_slice()
                && self.is_spent(alone).await?
            {
                return Ok(vec![]);
            }
            if platform.may_spend_unconfirmed {
                let (database, chain, now) = (self.ports.database, self.ports.chain, self.ports.now);
                platform.read_again(database, chain, self.view.tip.slot, now).await?;
                if cases.len() == 1 {
                    return Ok(vec![cases]);
                }
            }
        }
        if kind == Kind::Result && error.lacks_funds() {
            // The wallet's change usually comes with the next block, so the escrows are not postponed further.
            let soon = self.view.clock.saturating_add(FUNDS_MS);
            let later: Vec<_> = cases.iter().map(|action| (action.due.clone(), soon)).collect();
            self.ports.database.execute(due::check_later(&later)).await?;
            cases.iter().for_each(|action| self.note_late_result(&action.due.purchase, &error));
            return Ok(vec![]);
        }
        if let [alone] = cases.as_slice() {
            self.retry_later(alone, &error).await?;
            return Ok(vec![]);
        }
        let second = cases.split_off(cases.len().div_ceil(2));
        Ok(vec![cases, second])
    }

    /// Returns whether a block includes another transaction that spent the escrow of a rejected action. If so, records
    /// that transaction as the escrow's next step.
    async fn is_spent(&mut self, action: &DueAction) -> Result<bool, PortError> {
        match self.follow(&action.due.utxo).await {
            Ok(Spending::SpentBy(_)) => {
                self.late_results.remove(&action.due.purchase);
                Ok(true)
            }
            Ok(Spending::Unspent | Spending::Unknown) => Ok(false),
            // Strangers can make this answer too long; the rest of the run continues.
            Err(PortError::Chain(
                why @ (ChainError::TooLong | ChainError::Unavailable(_) | ChainError::Malformed(_)),
            )) => {
                self.report.note(&action.due.purchase, &why);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    async fn plan_all(
        &mut self,
        deployment: &Deployment,
        cases: Vec<DueAction>,
        platform: &PlatformWallet,
    ) -> Result<Vec<Planned>, PortError> {
        let made: Vec<_> = cases.iter().map(|action| by_id(&action.due.utxo.tx)).collect();
        let made = self.ports.database.batch(made).await?;
        let time = ChainTime { tip_slot: self.view.tip.slot, now: self.view.clock };
        let mut planned = Vec::new();
        for (action, made) in cases.into_iter().zip(made) {
            let Some(escrow) = self.escrow(deployment, &action, made).await? else {
                self.retry_later(&action, &"the provider does not know it").await?;
                continue;
            };
            let Some((_, step)) = step(&action) else { continue };
            match escrow_tx::plan(planner(deployment, platform), &escrow, &step, time) {
                Ok(plan) => planned.push(Planned { plan, action, escrow }),
                // The newest block is too old for the action; the next run retries.
                Err(PlanError::NotYet(_)) => {}
                Err(error) => self.retry_later(&action, &error).await?,
            }
        }
        Ok(planned)
    }

    /// Decodes an escrow's output from the transaction that created it. If the output is already spent, the ledger
    /// rejects the action.
    async fn escrow(
        &self,
        deployment: &Deployment,
        action: &DueAction,
        made: Option<Entry>,
    ) -> Result<Option<Escrow>, PortError> {
        let utxo = action.due.utxo;
        let cbor = match made {
            Some(entry) if !entry.cbor.is_empty() => Some(entry.cbor),
            _ => self.ports.chain.transaction(&utxo.tx).await?,
        };
        Ok(cbor.and_then(|cbor| escrow_in(&cbor, Some(&utxo), deployment)))
    }

    /// Builds the signed transaction. Spends unconfirmed change only if nothing else suffices, and omits outputs that
    /// the provider does not know.
    async fn built(
        &self,
        deployment: &Deployment,
        planned: &[Planned],
        key: &SigningKey,
        platform: &mut PlatformWallet,
    ) -> Result<BuiltTx, DraftError> {
        let wallet = planned.first().and_then(|planned| planned.action.due.service_wallet.as_ref());
        let buyer = wallet.and_then(|wallet| self.ports.keys.buyer(wallet));
        let signers: Vec<&SigningKey> = std::iter::once(key).chain(&buyer).collect();
        let build = async |platform: &PlatformWallet| {
            let mut plans: Vec<TxPlan> = planned.iter().map(|planned| planned.plan.clone()).collect();
            // Dust is merged only in a transaction for one escrow, because several escrows fill a transaction.
            if let [alone] = plans.as_mut_slice() {
                alone.inputs.extend(platform.dust());
            }
            let planner = planner(deployment, platform);
            escrow_tx::build(planner, self.ports.chain, plans, &platform.wallet(), &[], &signers).await
        };
        let mut built = build(platform).await;
        if built.as_ref().is_err_and(DraftError::may_succeed_with_more_utxos) && platform.spend_change() {
            built = build(platform).await;
        }
        built
    }
}

const fn planner<'a>(deployment: &'a Deployment, platform: &'a PlatformWallet) -> Planner<'a> {
    Planner { deployment, parameters: &platform.parameters, slots: &api_types::SLOTS }
}

fn step(action: &DueAction) -> Option<(Kind, Step)> {
    let due = &action.due;
    match action.step {
        NextStep::PostResult => Some((Kind::Result, Step::SubmitResult(action.result?))),
        NextStep::Collect => {
            let payouts = Some((due.creator, due.share)).filter(|(_, share)| *share > Lovelace::ZERO);
            Some((Kind::Collect, Step::Withdraw { payouts: payouts.into_iter().collect() }))
        }
        NextStep::Refund => Some((Kind::Refund, Step::WithdrawRefund)),
        NextStep::Dispute => Some((Kind::Dispute, Step::SetRefundRequested)),
        NextStep::AskArbiter | NextStep::Wait(_) => None,
    }
}
