//! Third part of a run of the watcher: selects due escrows and plans their actions. Contents are read only if a
//! decision depends on them, and once per lock.

use api_types::{Alarm, AlarmName};
use std::collections::VecDeque;

use cardano::{ContentHash, Lovelace, slots::Millis};
use escrow::{Action, Datum, State, result::result_hash, rules::Timing};
use sql::{Database, DatabaseError, Write};

use super::{
    ArbiterClient, Keys, Ledger,
    context::{Tick, View},
    decide::{EscrowFacts, NextStep, decide},
    due::{self, Due, DuePayout},
};
use crate::{contents::Contents, port_error::PortError};

/// Maximum number of escrows for which one run of the watcher plans an action. Its provider calls do not suffice for
/// more.
const MAX_PLANNED: usize = 96;
/// Maximum number of pages of due escrows that one run of the watcher reads.
const MAX_PAGES: u32 = 8;
/// Time in ms before the deadline for a result. If no result is posted by then, an alarm is raised.
const RESULT_ALARM_MS: Millis = 5 * 60_000;
/// Upper estimate of the network fees and collateral of one run of the watcher.
const FEES: Lovelace = Lovelace::from_ada(200);
/// Maximum number of escrows per transaction. The cost per result is lowest with about four, the cost per collection
/// with about six.
const MAX_TOGETHER: usize = 5;

pub(super) struct Plan {
    pub tasks: VecDeque<Task>,
    /// Amount that the tasks need from the platform's wallet.
    pub needs: Lovelace,
    /// Idle escrows that may have been spent meanwhile, each with the time of its next check, POSIX ms.
    pub waiting: Vec<(Due, Millis)>,
}

pub(super) enum Task {
    /// Pay a creator for a sale that was won in a dispute.
    Pay(DuePayout),
    /// Perform the same action on one or more escrows in one transaction.
    Act(Vec<DueAction>),
    Ask(Box<DueAction>),
    Split,
}

/// A due escrow with the action decided for it.
pub(super) struct DueAction {
    pub due: Due,
    pub datum: Datum,
    pub step: NextStep,
    /// The result to post in the escrow; `None` for other actions.
    pub result: Option<ContentHash>,
}

/// Next action on an escrow, with the result (hash of the delivered content) if the decision needed it.
type DecidedStep = (NextStep, Option<ContentHash>);

impl DueAction {
    /// Returns whether an action may share a transaction with others. Only actions of the seller that have not failed
    /// before may be combined.
    ///
    /// A result is posted alone shortly before its deadline, because a shared transaction expires at the earliest
    /// deadline of its escrows. A collection without a payout to the creator is made alone, because the payout of
    /// another sale in the same transaction could be taken for its own.
    fn can_batch(&self, clock: Millis) -> bool {
        let may_share = match self.step {
            NextStep::Collect => self.due.share > Lovelace::ZERO,
            NextStep::PostResult => !self.datum.has_result() && !is_nearly_over(&self.datum, clock),
            _ => false,
        };
        may_share && self.due.failures == 0
    }

    /// Returns whether these two actions may share a transaction.
    fn batches_with(&self, other: &Self, clock: Millis) -> bool {
        let as_safe = self.step != NextStep::PostResult || self.datum.state == other.datum.state;
        self.can_batch(clock) && other.can_batch(clock) && self.step == other.step && as_safe
    }

    /// Returns whether the action posts a result that the buyer can no longer prevent.
    fn is_safe_result(&self) -> bool {
        self.step == NextStep::PostResult && self.datum.state == State::RefundRequested
    }
}

/// Groups actions into tasks, in the order of their first escrows. Payouts come first, and then results that buyers can
/// no longer prevent, so that these do not spend the change of a transaction that a buyer can still make fail. The
/// arbiter is asked after all actions.
fn tasks(payouts: Vec<DuePayout>, actions: Vec<DueAction>, clock: Millis) -> VecDeque<Task> {
    let (mut jobs, mut asked): (Vec<Vec<DueAction>>, _) = (vec![], vec![]);
    for action in actions {
        if action.step == NextStep::AskArbiter {
            asked.push(Task::Ask(Box::new(action)));
            continue;
        }
        let alike = |job: &&mut Vec<DueAction>| {
            job.len() < MAX_TOGETHER && job.first().is_some_and(|first| first.batches_with(&action, clock))
        };
        match jobs.iter_mut().find(alike) {
            Some(job) => job.push(action),
            None => jobs.push(vec![action]),
        }
    }
    jobs.sort_by_key(|job| !job.first().is_some_and(DueAction::is_safe_result));
    let paid = payouts.into_iter().map(Task::Pay);
    paid.chain(jobs.into_iter().map(Task::Act)).chain(asked).chain([Task::Split]).collect()
}

impl<D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Tick<'_, D, C, K, S, A> {
    /// Reads due escrows and plans their actions.
    pub(super) async fn plan(&mut self) -> Result<Plan, PortError> {
        let reads = (due::due(self.view.clock, 0), due::payouts());
        let (due, payouts) = self.ports.database.batch(reads).await?;
        let (actions, waiting) = self.decide_all(due).await?;
        let needs = payouts.iter().map(|payout| payout.share).chain([FEES]).sum();
        if self.ports.keys.seller().is_none() && !(actions.is_empty() && payouts.is_empty()) {
            let message = "SELLER_SECRET is not set: nothing can be posted, collected, refunded or paid";
            self.report.alarms.push(Alarm::new(AlarmName::SellerSecretMissing, message));
        }
        Ok(Plan { tasks: tasks(payouts, actions, self.view.clock), needs, waiting })
    }

    /// Decides on actions for due escrows page by page, until there is enough to do. Returns the actions, and the idle
    /// escrows that may have been spent meanwhile, each with the time of its next check. Other idle escrows are
    /// postponed.
    async fn decide_all(&mut self, mut due: Vec<Due>) -> Result<(Vec<DueAction>, Vec<(Due, Millis)>), PortError> {
        let (mut actions, mut waiting) = (vec![], vec![]);
        let most = MAX_PLANNED.min(usize::try_from(self.calls_left().saturating_mul(3) / 5).unwrap_or(0));
        // Reading a content from a bucket is a call too. Half of the calls are reserved for actions.
        let kept = self.calls_left().div_ceil(2);
        for _ in 0..MAX_PAGES {
            let full = due.len() >= usize::try_from(due::PAGE).unwrap_or(usize::MAX);
            let (mut later, mut writes): (Vec<_>, Vec<Write>) = (vec![], vec![]);
            for due in std::mem::take(&mut due) {
                if due.datum().is_ok_and(|datum| is_pressing(datum, &self.view)) {
                    self.late_results.insert(due.purchase, "the tick did not come to it".into());
                }
                if actions.len() >= most {
                    continue;
                }
                let decided = self.decide(&due, self.calls_left() > kept).await;
                if let (None, Ok(Some((_, Some(delivered))))) = (due.delivered, &decided) {
                    writes.push(due::store_result(&due.purchase, delivered));
                }
                match (decided, due.datum().cloned()) {
                    (Ok(None), _) => {}
                    (Ok(Some((NextStep::Wait(until), _))), Ok(datum)) => {
                        self.late_results.remove(&due.purchase);
                        let until = due::next_check(until, &datum.deadlines, self.view.clock);
                        let to = if due.may_be_spent(self.view.read_to) { &mut waiting } else { &mut later };
                        to.push((due, until));
                    }
                    (Ok(Some((step, result))), Ok(datum)) => actions.push(DueAction { due, datum, step, result }),
                    (Err(error), _) => {
                        self.report.note(&due.purchase, &error);
                        writes.push(due::retry_later(&due, self.view.clock));
                    }
                    (_, Err(error)) => return Err(error.into()),
                }
            }
            writes.extend((!later.is_empty()).then(|| due::check_later(&later)));
            self.write(writes).await?;
            if !full || actions.len() >= most {
                break;
            }
            let except = actions.len().saturating_add(waiting.len());
            due = self.ports.database.fetch(due::due(self.view.clock, except)).await?;
        }
        Ok((actions, waiting))
    }

    /// Decides what to do with a due escrow. If `reads` is `false`, the content is not read; returns `None` if the
    /// decision depends on the content.
    pub(super) async fn decide(&mut self, due: &Due, reads: bool) -> Result<Option<DecidedStep>, PortError> {
        let datum = due.datum()?;
        let wallet = due.service_wallet.as_ref().filter(|wallet| datum.buyer.key_address() == Some(wallet.address));
        let facts = EscrowFacts {
            datum,
            result_matches: true,
            mismatch: due.verification.as_deref() == Some("mismatch"),
            sells: self.view.seller.is_some() && datum.seller.key_address() == self.view.seller,
            buys: wallet.is_some_and(|wallet| self.ports.keys.buyer(wallet).is_some()),
            now: self.view.clock,
        };
        if facts.sells && !datum.has_result() && is_over(datum, &self.view) {
            let purchase = due.purchase;
            let message =
                format!("no result of {purchase} was posted in time: its refund will lower the seller's score");
            self.report.alarms.push(Alarm::new(AlarmName::ResultMissed, message));
        }
        let steps = [true, false].map(|result_matches| decide(&EscrowFacts { result_matches, ..facts }));
        if let [step, other] = steps
            && step == other
            && step != NextStep::PostResult
        {
            return Ok(Some((step, None)));
        }
        if let [NextStep::Wait(one), NextStep::Wait(other)] = steps {
            return Ok(Some((NextStep::Wait(one.min(other)), None)));
        }
        let Some(result) = self.delivered(due, reads).await? else { return Ok(None) };
        let step = decide(&EscrowFacts { result_matches: datum.result_hash == result.as_bytes(), ..facts });
        Ok(Some((step, Some(result))))
    }

    /// Returns the result for this escrow: the hash over the lock's id and the delivered content. The content is read
    /// only if `reads` is set. Returns `None` if the result is not known.
    async fn delivered(&self, due: &Due, reads: bool) -> Result<Option<ContentHash>, PortError> {
        if due.delivered.is_some() || !reads {
            return Ok(due.delivered);
        }
        let content = self.ports.contents.get(&due.content_hash).await?;
        let content = content.ok_or_else(|| DatabaseError("what was sold is not there".into()))?;
        Ok(Some(result_hash(&due.purchase, &content)))
    }
}

/// Returns whether the deadline for posting a first result has passed.
fn is_over(datum: &Datum, view: &View) -> bool {
    datum.window(Action::SubmitResult).is_some_and(|window| window.timing(view.clock, 0) == Timing::Over)
}

fn is_pressing(datum: &Datum, view: &View) -> bool {
    let ours = view.seller.is_some() && datum.seller.key_address() == view.seller;
    ours && !datum.has_result() && is_nearly_over(datum, view.clock)
}

/// Returns whether the deadline for posting a result is less than [`RESULT_ALARM_MS`] away, or has passed.
pub(super) fn is_nearly_over(datum: &Datum, clock: Millis) -> bool {
    datum.deadlines.submit_result < clock.saturating_add(RESULT_ALARM_MS)
}
