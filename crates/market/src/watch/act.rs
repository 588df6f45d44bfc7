//! Acting: a transaction for each decision, written down with its inputs before it is sent.
//!
//! ```text
//! due escrows, earliest deadline first ──judge──> wait ─> look again then
//!                                                 ask the arbiter
//!                                                 jobs: what the seller does alike goes together ─> send
//! ```
//!
//! The platform's wallet, which is the seller's, pays the fees and the collateral of buyers' actions, too: a buyer whose
//! service wallet is empty still gets the whole escrow back. An action that fails is put off and keeps nobody waiting.

mod job;
mod purse;

use cardano::{
    ContentHash,
    chain::{Chain, ChainError, Tip},
    evaluation::Evaluate,
    history::History,
    keys::SigningKey,
    slots::{Millis, SlotConfig},
    tx::build::{NewOutput, TxPlan, Validity, build},
};
use escrow::{
    Deployment,
    payout::creator_payout,
    plan::{ChainTime, Planner},
    result::result_hash,
};

use self::{job::Job, purse::Purse};
use super::{
    Arbiter, Dispute, Report, TickError, Watch,
    decide::{ASK_AGAIN_MS, Decision, Facts, decide},
    due::{self, Due, Holder, Owed},
};
use crate::{
    catalogue,
    database::{Database, Statement},
};

/// Outside calls beyond one for each escrow: the evaluation, the submission, the purse, and a second try.
const CALLS_PER_JOB: u32 = 6;
/// After so many actions in a row that the provider did not serve, the rest is left for the next tick.
const MAX_UNSERVED: u32 = 3;
/// How long a payout to a creator stays valid, in slots.
const PAYOUT_SLOTS: u64 = 240;

/// Whose keys the watcher holds.
pub trait Keys {
    /// The seller of record, where we act as such.
    fn seller(&self) -> Option<&SigningKey>;
    /// The key of a service wallet.
    fn buyer(&self, holder: &Holder) -> Option<SigningKey>;
}

/// A decision with all that it needs.
struct Case {
    due: Due,
    decision: Decision,
    content: String,
}

/// What all actions of a tick share.
struct Means<'a, K> {
    deployment: &'a Deployment,
    keys: &'a K,
    /// Pays for everything, and acts as the seller.
    platform: &'a SigningKey,
    tip_slot: u64,
    time: ChainTime,
}

impl<D: Database, C: Chain + History + Evaluate> Watch<'_, D, C> {
    /// Looks at what is due and acts, as far as the calls reach.
    pub(super) async fn act(
        &self,
        deployment: &Deployment,
        keys: &impl Keys,
        arbiter: &impl Arbiter,
        tip: &Tip,
        (due, owed): (Vec<Due>, Vec<Owed>),
        report: &mut Report,
    ) -> Result<(), TickError> {
        if due.is_empty() && owed.is_empty() {
            return Ok(());
        }
        let time = ChainTime { tip_slot: tip.slot, now: self.now.max(tip.time_ms) };
        let mut cases = self.judge(due, keys, time.now, report).await?;
        let mut waits: Vec<Statement> = Vec::new();
        cases.retain(|case| match case.decision {
            Decision::Wait(until) => {
                waits.push(due::look_again(&case.due, until));
                false
            }
            _ => true,
        });
        if !waits.is_empty() {
            self.database.batch(waits).await?;
        }
        let (disputes, cases) = cases.into_iter().partition(|case| case.decision == Decision::AskArbiter);
        self.ask(arbiter, disputes, time.now, report).await?;
        let Some(platform) = keys.seller() else {
            if !(Vec::is_empty(&cases) && owed.is_empty()) {
                report
                    .notes
                    .push("SELLER_SECRET is not set: nothing can be posted, collected, refunded or paid".into());
            }
            return Ok(());
        };
        let means = Means { deployment, keys, platform, tip_slot: tip.slot, time };
        self.do_all(cases, owed, &means, report).await
    }

    async fn judge(
        &self,
        due: Vec<Due>,
        keys: &impl Keys,
        now: Millis,
        report: &mut Report,
    ) -> Result<Vec<Case>, TickError> {
        if due.is_empty() {
            return Ok(Vec::new());
        }
        let contents = self.database.batch(due.iter().map(|due| catalogue::content(&due.listing_id)).collect()).await?;
        let seller = keys.seller().map(SigningKey::enterprise_address);
        let mut cases = Vec::with_capacity(due.len());
        for (due, content) in due.into_iter().zip(contents) {
            let (Some(content), Ok(datum)) = (content.rows.into_iter().next(), due.datum()) else {
                report.notes.push(format!("what is stored of {} cannot be read", due.purchase));
                self.database.run(due::put_off(&due, now)).await?;
                continue;
            };
            let mismatch = due.verification.as_deref() == Some("mismatch");
            let decision = decide(&Facts {
                datum: &datum,
                delivered: result_hash(&due.purchase, &content),
                mismatch: mismatch || ContentHash::of(content.as_bytes()) != due.content_hash,
                sells: self.sells && seller.is_some() && datum.seller.key_address() == seller,
                buys: due.holder.as_ref().is_some_and(|holder| datum.buyer.key_address() == Some(holder.wallet)),
                now,
            });
            cases.push(Case { due, decision, content });
        }
        Ok(cases)
    }

    async fn ask(
        &self,
        arbiter: &impl Arbiter,
        disputes: Vec<Case>,
        now: Millis,
        report: &mut Report,
    ) -> Result<(), TickError> {
        for case in disputes {
            if (self.calls_left)() < CALLS_PER_JOB {
                return Ok(());
            }
            let Due { utxo, listing_id, content_hash, purchase, .. } = &case.due;
            let dispute = Dispute { escrow: *utxo, listing_id, content_hash: *content_hash, output: &case.content };
            match arbiter.resolve(&dispute).await {
                Ok(answer) => report.acted.push(format!("asked the arbiter about {purchase}: {answer}")),
                Err(error) => report.notes.push(format!("the arbiter cannot be asked about {purchase}: {error}")),
            }
            self.database.run(due::look_again(&case.due, now.saturating_add(ASK_AGAIN_MS))).await?;
        }
        Ok(())
    }

    /// Does what is decided, earliest deadline first, then pays creators. What the provider does not serve is put off
    /// by itself; a provider that serves nothing ends the tick.
    async fn do_all(
        &self,
        cases: Vec<Case>,
        owed: Vec<Owed>,
        means: &Means<'_, impl Keys>,
        report: &mut Report,
    ) -> Result<(), TickError> {
        let mut jobs = Job::sort(cases);
        let mut purse = None;
        let mut unserved = 0_u32;
        while let Some(job) = jobs.pop_front() {
            if (self.calls_left)() < job.escrows().saturating_add(CALLS_PER_JOB) {
                return Ok(());
            }
            let late: Vec<Statement> = job.cases().iter().map(|case| due::put_off(&case.due, means.time.now)).collect();
            match self.do_job(job, means, &mut purse, report).await {
                Ok(singly) => {
                    unserved = 0;
                    singly.into_iter().rev().for_each(|case| jobs.push_front(Job::alone(case)));
                }
                Err(TickError::Chain(ChainError::BudgetExhausted)) => return Ok(()),
                Err(TickError::Chain(error)) => {
                    self.database.batch(late).await?;
                    unserved = unserved.saturating_add(1);
                    if unserved >= MAX_UNSERVED {
                        return Err(error.into());
                    }
                    report.notes.push(error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        for owed in owed {
            if (self.calls_left)() < CALLS_PER_JOB {
                return Ok(());
            }
            let purse = self.purse(&mut purse, means.platform).await?;
            // Nobody evaluates a plain payment before it is sent: only what is seen pays for it.
            purse.distrust();
            self.pay_creator(&owed, means, purse, report).await?;
        }
        Ok(())
    }

    /// The creator's part of a sale that was won in a dispute, as a payment of its own.
    async fn pay_creator(
        &self,
        owed: &Owed,
        means: &Means<'_, impl Keys>,
        purse: &mut Purse,
        report: &mut Report,
    ) -> Result<(), TickError> {
        let plan = TxPlan {
            outputs: vec![NewOutput::pay(owed.creator, creator_payout(owed.price))],
            validity: Validity { from: None, until: means.tip_slot.saturating_add(PAYOUT_SLOTS) },
            ..TxPlan::default()
        };
        let built = build(&plan, &purse.wallet(), &purse.parameters).and_then(|draft| draft.sign(&[means.platform]));
        match built {
            Ok(built) => {
                let purpose = format!("payout:{}", owed.purchase);
                let deed =
                    purse::Deed { purpose, action: purse::PAYOUT, purchases: vec![owed.purchase], built: &built };
                self.send(&deed, purse, report).await.map(drop)
            }
            Err(error) => {
                report.notes.push(format!("the creator of {} cannot be paid: {error}", owed.purchase));
                Ok(())
            }
        }
    }
}

impl<K> Means<'_, K> {
    const fn planner<'a>(&'a self, purse: &'a Purse) -> Planner<'a> {
        Planner { deployment: self.deployment, parameters: &purse.parameters, slots: &SlotConfig::PREPROD }
    }
}
