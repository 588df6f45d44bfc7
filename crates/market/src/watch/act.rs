//! Acting: a transaction for each decision, written down with its inputs before it is sent.
//!
//! ```text
//! creators who are owed ─────────────────────────────────────────────────────────────────────> pay
//! due escrows, earliest deadline first ──judge──> wait: look again then
//!                                                 jobs: what the seller does alike goes together ─> send
//!                                                 disputes whose window is open ─> ask the arbiter
//! ```
//!
//! The platform's wallet, which is the seller's, pays the fees and the collateral of buyers' actions, too: a buyer whose
//! service wallet is empty still gets the whole escrow back. An action that fails is put off and keeps nobody waiting.

mod ask;
mod job;
mod judge;
mod wallet;

use std::collections::{BTreeMap, VecDeque};

use cardano::{
    Lovelace, TxHash,
    chain::{Chain, ChainError},
    evaluation::Evaluate,
    history::History,
    keys::SigningKey,
    slots::{Millis, SlotConfig},
    tx::build::{NewOutput, TxPlan, Validity, build},
};
use escrow::{
    Deployment,
    plan::{ChainTime, Planner},
};
use outbox::{Draft, Earlier, Entry, Guard, Kind, ended_for};
use serde_json::json;
use sql::{Database, Statement};

use self::{job::Job, judge::Judged, wallet::SellerWallet};
use super::{
    ArbiterClient, Keys, Report, TickError, TickView, Watch,
    due::{self, Due, Owed},
};
use crate::{contents::Contents, platform, subject};

/// Outside calls for asking the arbiter: what became of the escrow, and the question.
const CALLS_TO_ASK: u32 = 4;
/// Outside calls for one action, a second try, and the wallet.
const CALLS_PER_JOB: u32 = 8;
/// The same where the wallet is known.
const CALLS_WITH_WALLET: u32 = 4;
/// After so many actions in a row that the provider did not serve, the rest is left for the next tick.
const MAX_UNSERVED: u32 = 3;
/// What fees and collateral of a tick's actions come to, amply.
const FEES: Lovelace = Lovelace::from_ada(200);
/// How long a payout to a creator stays valid, in slots.
const PAYOUT_SLOTS: u64 = 240;
/// When a payout may be written down: another tick may have undone the settlement since it was found to be owed, and
/// collect the share out of the escrow.
const NOT_OWED: &str =
    "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM escrows WHERE purchase_id = ?1 ->> '$.purchase' AND creator_due = 1)";
/// How long a transaction that splits the wallet's outputs stays valid, in slots.
const SPLIT_SLOTS: u64 = 240;

/// What all actions of a tick share.
struct Means<'a, K, A> {
    deployment: &'a Deployment,
    keys: &'a K,
    arbiter: &'a A,
    view: &'a TickView,
    /// What the platform's wallet needs.
    needs: Lovelace,
}

/// What there was to do and was not done.
#[derive(Default)]
struct Undone {
    /// Results whose time is nearly over, by their purchases: why they are not posted yet.
    pressing: BTreeMap<TxHash, String>,
}

/// Something to do.
enum Task {
    Pay(Owed),
    Do(Job),
}

impl<D: Database, C: Chain + History + Evaluate, K: Contents> Watch<'_, D, C, K> {
    /// Looks at what is due and acts, as far as the calls reach. What only waits, and until when, where it may be gone.
    pub(super) async fn act(
        &self,
        deployment: &Deployment,
        keys: &impl Keys,
        arbiter: &impl ArbiterClient,
        view: &TickView,
        (due, owed): (Vec<Due>, Vec<Owed>),
        report: &mut Report,
    ) -> Result<Vec<(Due, Millis)>, TickError> {
        let needs = owed.iter().map(|owed| owed.share).chain([FEES]).sum();
        let means = Means { deployment, keys, arbiter, view, needs };
        let mut undone = Undone::default();
        let (judged, waiting) = self.judge_all(due, &means, &mut undone, report).await?;
        if keys.seller().is_none() && !(judged.is_empty() && owed.is_empty()) {
            report.alarms.push("SELLER_SECRET is not set: nothing can be posted, collected, refunded or paid".into());
        }
        let mut work: VecDeque<Task> = owed.into_iter().map(Task::Pay).collect();
        work.extend(Job::sort(judged, view.clock).into_iter().map(Task::Do));
        let mut platform = self.do_all(work, &means, &mut undone, report).await?;
        let looks = platform.is_some() || view.looks_at_wallet;
        if let Some(key) = keys.seller().filter(|_| looks && (self.calls_left)() >= CALLS_WITH_WALLET) {
            match self.split_outputs(key, &mut platform, &means, report).await {
                Err(TickError::Chain(error)) => report.note(&"splitting the wallet's outputs", &error),
                done => done?,
            }
        }
        for (purchase, why) in undone.pressing {
            report.alarms.push(format!("no result of {purchase} yet, and its time is nearly over: {why}"));
        }
        Ok(waiting)
    }

    /// Does one after another. What the provider does not serve is put off by itself; a provider that serves nothing ends
    /// the acting. The platform's wallet as it is then, where it was read.
    async fn do_all(
        &self,
        mut work: VecDeque<Task>,
        means: &Means<'_, impl Keys, impl ArbiterClient>,
        undone: &mut Undone,
        report: &mut Report,
    ) -> Result<Option<SellerWallet>, TickError> {
        let (mut platform, mut unserved) = (None, 0_u32);
        while let Some(next) = work.pop_front() {
            if (self.calls_left)() < next.calls(platform.is_some()) {
                return Ok(platform);
            }
            // What is not asked now is due as before.
            if matches!(&next, Task::Do(job) if job.asks()) && !means.arbiter.has_time() {
                continue;
            }
            let cases = next.cases();
            let purchases: Vec<TxHash> = cases.iter().map(|judged| judged.due.purchase).collect();
            let late: Vec<Statement> = cases.iter().map(|judged| due::put_off(&judged.due, means.view.clock)).collect();
            let done = match next {
                Task::Pay(owed) => self.pay_creator(&owed, means, &mut platform, report).await.map(|()| vec![]),
                Task::Do(job) => self.do_job(job, means, &mut platform, undone, report).await,
            };
            match done {
                Ok(instead) => {
                    unserved = 0;
                    instead.into_iter().rev().for_each(|job| work.push_front(Task::Do(job)));
                }
                Err(TickError::Chain(ChainError::BudgetExhausted | ChainError::TimeOver)) => return Ok(platform),
                Err(error @ (TickError::Chain(_) | TickError::Contents(_))) => {
                    report.note(&"an action", &error);
                    for purchase in purchases {
                        undone.pressing.entry(purchase).and_modify(|why| *why = error.to_string());
                    }
                    // No fault of what was to be done, and the next would not be served either.
                    if matches!(error, TickError::Chain(ChainError::RateLimited)) {
                        return Ok(platform);
                    }
                    if !late.is_empty() {
                        self.database.batch(late).await?;
                    }
                    // What somebody made too long to be read says nothing of the provider.
                    unserved =
                        unserved.saturating_add(u32::from(!matches!(error, TickError::Chain(ChainError::TooLong))));
                    if unserved >= MAX_UNSERVED {
                        return Ok(platform);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(platform)
    }

    /// Splits the largest output of the platform's wallet, where too few are left for results that do not depend on each
    /// other.
    async fn split_outputs(
        &self,
        key: &SigningKey,
        platform: &mut Option<SellerWallet>,
        means: &Means<'_, impl Keys, impl ArbiterClient>,
        report: &mut Report,
    ) -> Result<(), TickError> {
        let platform = self.platform(platform, key, means.needs, means.view).await?;
        let Some((from, outputs)) = platform::split(&platform.utxos(), platform.address) else { return Ok(()) };
        let purpose = format!("split:{}", from.reference);
        let plan = TxPlan {
            outputs,
            inputs: vec![from],
            validity: Validity { from: None, until: means.view.tip.slot.saturating_add(SPLIT_SLOTS) },
            ..TxPlan::default()
        };
        match build(&plan, &platform.wallet(), &platform.parameters).and_then(|draft| draft.sign(&[key])) {
            Ok(built) => {
                let draft = Draft::built(Kind::Split, purpose, platform.address, &built);
                self.send(&draft, &built.facts.change, &[], platform, report).await?;
            }
            Err(error) => report.note(&"splitting the wallet's outputs", &error),
        }
        Ok(())
    }

    /// The creator's share of a sale that was won in a dispute, as a payment of its own.
    async fn pay_creator(
        &self,
        owed: &Owed,
        means: &Means<'_, impl Keys, impl ArbiterClient>,
        platform: &mut Option<SellerWallet>,
        report: &mut Report,
    ) -> Result<(), TickError> {
        let Some(key) = means.keys.seller() else { return Ok(()) };
        let platform = self.platform(platform, key, means.needs, means.view).await?;
        // Nobody evaluates a plain payment before it is sent: only what is shown pays for it.
        platform.distrust();
        let purpose = format!("payout:{}", owed.purchase);
        let ended = Entry::all(&self.database.run(ended_for(&purpose, self.now)).await?)?;
        let inputs = match self.outbox().earlier(ended, platform.known(), &platform.utxos(), self.now).await? {
            Earlier::ReplacementInputs(utxos) => utxos,
            Earlier::InBlock(tx) => {
                report.note(&tx, &"the creator is paid by it, and its block is not shown");
                return Ok(());
            }
            Earlier::Unresolved(tx) => {
                report.note(&tx, &"the creator may be paid by it: nothing keeps it out of a block for now");
                return Ok(());
            }
        };
        let plan = TxPlan {
            outputs: vec![NewOutput::pay(owed.creator, owed.share)],
            auxiliary_data: subject::auxiliary_data(&owed.purchase.to_string()),
            inputs,
            validity: Validity { from: None, until: means.view.tip.slot.saturating_add(PAYOUT_SLOTS) },
            ..TxPlan::default()
        };
        let built = build(&plan, &platform.wallet(), &platform.parameters).and_then(|draft| draft.sign(&[key]));
        match built {
            Ok(built) => {
                let guard = Some(Guard { blocked_by: NOT_OWED, facts: json!({ "purchase": owed.purchase }) });
                let draft = Draft { guard, ..Draft::built(Kind::Payout, purpose, platform.address, &built) };
                self.send(&draft, &built.facts.change, &[owed.purchase], platform, report).await?;
            }
            Err(error) => report.alarms.push(format!("the creator of {} cannot be paid: {error}", owed.purchase)),
        }
        Ok(())
    }

    async fn put_off(
        &self,
        judged: &Judged,
        why: &dyn std::fmt::Display,
        means: &Means<'_, impl Keys, impl ArbiterClient>,
        undone: &mut Undone,
        report: &mut Report,
    ) -> Result<(), TickError> {
        undone.keep(&judged.due.purchase, why, report);
        self.database.run(due::put_off(&judged.due, means.view.clock)).await?;
        Ok(())
    }
}

impl Undone {
    fn keep(&mut self, purchase: &TxHash, why: &dyn std::fmt::Display, report: &mut Report) {
        report.note(purchase, why);
        self.pressing.entry(*purchase).and_modify(|said| *said = why.to_string());
    }

    fn done(&mut self, purchase: &TxHash) {
        self.pressing.remove(purchase);
    }
}

impl Task {
    fn cases(&self) -> &[Judged] {
        match self {
            Self::Pay(_) => &[],
            Self::Do(job) => job.cases(),
        }
    }

    fn calls(&self, knows_wallet: bool) -> u32 {
        match self {
            Self::Do(job) if job.asks() => CALLS_TO_ASK,
            _ if knows_wallet => CALLS_WITH_WALLET,
            _ => CALLS_PER_JOB,
        }
    }
}

impl<K, A> Means<'_, K, A> {
    fn time(&self) -> ChainTime {
        ChainTime { tip_slot: self.view.tip.slot, now: self.view.clock }
    }

    const fn planner<'a>(&'a self, platform: &'a SellerWallet) -> Planner<'a> {
        Planner { deployment: self.deployment, parameters: &platform.parameters, slots: &SlotConfig::PREPROD }
    }
}
