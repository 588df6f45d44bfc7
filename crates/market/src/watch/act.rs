//! Acting: a transaction for each decision, written down with its inputs before it is sent.
//!
//! ```text
//! creators who are owed ────────────────────────────────────────────────────────────────────> pay
//! due escrows, earliest deadline first ──judge──> wait: look again then
//!                                                 jobs: what the seller does alike goes together ─> send
//!                                                 disputes whose window is open ─> ask the arbiter
//! ```
//!
//! The platform's wallet, which is the seller's, pays the fees and the collateral of buyers' actions, too: a buyer whose
//! service wallet is empty still gets the whole escrow back. An action that fails is put off and keeps nobody waiting.

mod job;
mod purse;

use sql::{Database, Statement};
use std::collections::VecDeque;

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
    evidence::EVIDENCE_GRACE_MS,
    plan::{ChainTime, Planner},
    result::result_hash,
};

use self::{job::Job, purse::Purse};
use super::{
    Arbiter, Dispute, Report, TickError, Watch,
    decide::{ASK_AGAIN_MS, Decision, Facts, decide},
    due::{self, Due, Holder, Owed},
};
use crate::{catalogue, fees::creator_share};

/// Outside calls beyond one for each escrow: the evaluation, the submission, the purse, and a second try.
const CALLS_PER_JOB: u32 = 6;
/// After so many actions in a row that the provider did not serve, the rest is left for the next tick.
const MAX_UNSERVED: u32 = 3;
/// The arbiter's answer when nothing is proven.
const NO_VERDICT: &str = "no_verdict";
/// Contents that are in memory at once: each may have a mebibyte, several times over on its way here.
const CONTENTS_AT_ONCE: usize = 4;
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
    /// The hash of what was delivered, as a result of this lock.
    delivered: ContentHash,
    /// When the arbiters' window opens, POSIX ms.
    window: Millis,
}

/// What all actions of a tick share.
struct Means<'a, K, A> {
    deployment: &'a Deployment,
    keys: &'a K,
    arbiter: &'a A,
    time: ChainTime,
}

/// Something to do.
enum Work {
    Pay(Owed),
    Do(Job),
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
        if keys.seller().is_none() && !(cases.is_empty() && owed.is_empty()) {
            report.notes.push("SELLER_SECRET is not set: nothing can be posted, collected, refunded or paid".into());
        }
        self.do_all(cases, owed, &Means { deployment, keys, arbiter, time }, report).await
    }

    async fn judge(
        &self,
        due: Vec<Due>,
        keys: &impl Keys,
        now: Millis,
        report: &mut Report,
    ) -> Result<Vec<Case>, TickError> {
        let seller = keys.seller().map(SigningKey::enterprise_address);
        let mut cases = Vec::with_capacity(due.len());
        let mut due = due.into_iter();
        loop {
            let some: Vec<Due> = due.by_ref().take(CONTENTS_AT_ONCE).collect();
            if some.is_empty() {
                return Ok(cases);
            }
            let contents = some.iter().map(|due| catalogue::content(&due.listing_id)).collect();
            for (due, content) in some.into_iter().zip(self.database.batch(contents).await?) {
                let (Some(content), Ok(datum)) = (content.first(), due.datum()) else {
                    report.notes.push(format!("what is stored of {} cannot be read", due.purchase));
                    self.database.run(due::put_off(&due, now)).await?;
                    continue;
                };
                let mismatch = due.verification.as_deref() == Some("mismatch");
                let delivered = result_hash(&due.purchase, content);
                let decision = decide(&Facts {
                    datum: &datum,
                    delivered,
                    mismatch: mismatch || ContentHash::of(content.as_bytes()) != due.content_hash,
                    sells: self.sells && seller.is_some() && datum.seller.key_address() == seller,
                    buys: due.holder.as_ref().is_some_and(|holder| datum.buyer.key_address() == Some(holder.wallet)),
                    now,
                });
                let window = datum.deadlines.external_dispute_unlock;
                cases.push(Case { due, decision, delivered, window });
            }
        }
    }

    /// Pays creators, then does what is decided, earliest deadline first. What the provider does not serve is put off by
    /// itself; a provider that serves nothing ends the tick.
    async fn do_all(
        &self,
        cases: Vec<Case>,
        owed: Vec<Owed>,
        means: &Means<'_, impl Keys, impl Arbiter>,
        report: &mut Report,
    ) -> Result<(), TickError> {
        let mut work: VecDeque<Work> = owed.into_iter().map(Work::Pay).collect();
        work.extend(Job::sort(cases).into_iter().map(Work::Do));
        let mut purse = None;
        let mut unserved = 0_u32;
        while let Some(next) = work.pop_front() {
            let cases = next.cases();
            if (self.calls_left)() < u32::try_from(cases.len()).unwrap_or(u32::MAX).saturating_add(CALLS_PER_JOB) {
                return Ok(());
            }
            let late: Vec<Statement> = cases.iter().map(|case| due::put_off(&case.due, means.time.now)).collect();
            let done = match next {
                Work::Pay(owed) => self.pay_creator(&owed, means, &mut purse, report).await,
                Work::Do(job) => self.do_job(job, means, &mut purse, report).await,
            };
            match done {
                Ok(singly) => {
                    unserved = 0;
                    singly.into_iter().rev().for_each(|case| work.push_front(Work::Do(Job::alone(case))));
                }
                Err(TickError::Chain(ChainError::BudgetExhausted)) => return Ok(()),
                Err(TickError::Chain(error)) => {
                    if !late.is_empty() {
                        self.database.batch(late).await?;
                    }
                    unserved = unserved.saturating_add(1);
                    if unserved >= MAX_UNSERVED {
                        return Err(error.into());
                    }
                    report.notes.push(error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Asks the arbiter. As long as nothing is proven asking again changes nothing, until there is no more to wait for.
    async fn ask(
        &self,
        case: &Case,
        means: &Means<'_, impl Keys, impl Arbiter>,
        report: &mut Report,
    ) -> Result<(), TickError> {
        let Due { utxo, listing_id, content_hash, purchase, .. } = &case.due;
        let content = self.database.run(catalogue::content(listing_id)).await?;
        // `judge` saw it a moment ago, and contents never go.
        let Some(output) = content.first() else { return Ok(()) };
        let dispute = Dispute { escrow: *utxo, listing_id, content_hash: *content_hash, output };
        let mut again = means.time.now.saturating_add(ASK_AGAIN_MS);
        match means.arbiter.resolve(&dispute).await {
            Ok(answer) => {
                report.acted.push(format!("asked the arbiter about {purchase}: {answer}"));
                if answer == NO_VERDICT {
                    again = again.max(case.window.saturating_add(EVIDENCE_GRACE_MS));
                }
            }
            Err(error) => report.notes.push(format!("the arbiter cannot be asked about {purchase}: {error}")),
        }
        self.database.run(due::look_again(&case.due, again)).await?;
        Ok(())
    }

    /// The creator's part of a sale that was won in a dispute, as a payment of its own.
    async fn pay_creator(
        &self,
        owed: &Owed,
        means: &Means<'_, impl Keys, impl Arbiter>,
        purse: &mut Option<Purse>,
        report: &mut Report,
    ) -> Result<Vec<Case>, TickError> {
        let Some(platform) = means.keys.seller() else { return Ok(Vec::new()) };
        let purse = self.purse(purse, platform).await?;
        // Nobody evaluates a plain payment before it is sent: only what is seen pays for it.
        purse.distrust();
        let plan = TxPlan {
            outputs: vec![NewOutput::pay(owed.creator, creator_share(owed.price))],
            validity: Validity { from: None, until: means.time.tip_slot.saturating_add(PAYOUT_SLOTS) },
            ..TxPlan::default()
        };
        let built = build(&plan, &purse.wallet(), &purse.parameters).and_then(|draft| draft.sign(&[platform]));
        match built {
            Ok(built) => {
                let purpose = format!("payout:{}", owed.purchase);
                let deed =
                    purse::Deed { purpose, action: purse::PAYOUT, purchases: vec![owed.purchase], built: &built };
                self.send(&deed, purse, report).await?;
            }
            Err(error) => report.notes.push(format!("the creator of {} cannot be paid: {error}", owed.purchase)),
        }
        Ok(Vec::new())
    }
}

impl Work {
    fn cases(&self) -> &[Case] {
        match self {
            Self::Pay(_) => &[],
            Self::Do(job) => job.cases(),
        }
    }
}

impl<K, A> Means<'_, K, A> {
    const fn planner<'a>(&'a self, purse: &'a Purse) -> Planner<'a> {
        Planner { deployment: self.deployment, parameters: &purse.parameters, slots: &SlotConfig::PREPROD }
    }
}
