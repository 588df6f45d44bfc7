//! The third part of a tick: what is due, and what to do about it. Where the time alone decides, what was sold is not read;
//! else once for each lock.

use std::collections::VecDeque;

use cardano::{ContentHash, Lovelace, slots::Millis};
use escrow::{Action, Datum, State, result::result_hash, rules::Timing};
use sql::{Database, DatabaseError, Statement, exactly};

use super::{
    ArbiterClient, Keys, Ledger,
    context::{Tick, View},
    decide::{EscrowFacts, NextStep, decide},
    due::{self, Due, Owed},
};
use crate::{contents::Contents, port_error::PortError};

/// Escrows that one tick acts on at most: more than its calls reach.
const MAX_JUDGED: usize = 96;
/// Pages of escrows that are looked through for them.
const MAX_PAGES: u32 = 8;
/// With less time than this left, a result that is not posted raises an alarm.
const PRESSING_MS: Millis = 5 * 60_000;
/// What fees and collateral of a tick's actions come to, amply.
const FEES: Lovelace = Lovelace::from_ada(200);
/// Escrows in one transaction at most: posting is cheapest near four, collecting near six. Fee for each, in lovelace,
/// measured on the local ledger with 1, 2, 4, 6 and 8 together. Posting: 305,137, 189,894, 153,686, 162,591, 184,353.
/// Collecting: 284,850, 162,965, 112,900, 106,515, 111,838.
const MAX_TOGETHER: usize = 5;

pub(super) struct Plan {
    pub tasks: VecDeque<Task>,
    /// What the platform's wallet needs for them.
    pub needs: Lovelace,
    /// What only waits, and until when, where it may have been spent meanwhile.
    pub waiting: Vec<(Due, Millis)>,
}

pub(super) enum Task {
    /// Pays a creator what a dispute won.
    Pay(Owed),
    /// One step of all these escrows, at least one, in one transaction.
    Act(Vec<Judged>),
    Ask(Box<Judged>),
    Split,
}

/// An escrow with what is to be done, and all that it needs.
pub(super) struct Judged {
    pub due: Due,
    pub datum: Datum,
    pub step: NextStep,
    /// The hash of what was delivered, as a result of this lock, where it is posted.
    pub result: Option<ContentHash>,
}

/// What is to be done with an escrow, and the hash of what was delivered, as a result of its lock, where that counted.
type Judgement = (NextStep, Option<ContentHash>);

impl Judged {
    /// Whether the action may share a transaction. It must be the seller's and not have failed before. A result whose
    /// time is nearly over may not, as the transaction is valid only as long as the shortest. Nor may a collection that
    /// pays no creator: another sale's payment in the same transaction would count as its own.
    fn can_batch(&self, clock: Millis) -> bool {
        let may_share = match self.step {
            NextStep::Collect => self.due.share > Lovelace::ZERO,
            NextStep::PostResult => !self.datum.has_result() && !is_nearly_over(&self.datum, clock),
            _ => false,
        };
        may_share && self.due.failures == 0
    }

    /// Whether both may share a transaction.
    fn batches_with(&self, other: &Self, clock: Millis) -> bool {
        let as_safe = self.step != NextStep::PostResult || self.datum.state == other.datum.state;
        self.can_batch(clock) && other.can_batch(clock) && self.step == other.step && as_safe
    }

    /// Whether its buyer cannot overtake it any more.
    fn is_safe_result(&self) -> bool {
        self.step == NextStep::PostResult && self.datum.state == State::RefundRequested
    }
}

/// Tasks in the order of their first escrows. What no buyer can overtake comes first, so that it is not built on what one may
/// overtake; the arbiter, who has time, is asked last.
fn tasks(owed: Vec<Owed>, judged: Vec<Judged>, clock: Millis) -> VecDeque<Task> {
    let (mut jobs, mut asked): (Vec<Vec<Judged>>, _) = (vec![], vec![]);
    for judged in judged {
        if judged.step == NextStep::AskArbiter {
            asked.push(Task::Ask(Box::new(judged)));
            continue;
        }
        let alike = |job: &&mut Vec<Judged>| {
            job.len() < MAX_TOGETHER && job.first().is_some_and(|first| first.batches_with(&judged, clock))
        };
        match jobs.iter_mut().find(alike) {
            Some(job) => job.push(judged),
            None => jobs.push(vec![judged]),
        }
    }
    jobs.sort_by_key(|job| !job.first().is_some_and(Judged::is_safe_result));
    let paid = owed.into_iter().map(Task::Pay);
    paid.chain(jobs.into_iter().map(Task::Act)).chain(asked).chain([Task::Split]).collect()
}

impl<D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Tick<'_, D, C, K, S, A> {
    /// Reads what is due, and plans what to do about it.
    pub(super) async fn plan(&mut self) -> Result<Plan, PortError> {
        let reads = vec![due::due(self.view.clock, 0), due::owed()];
        let [due, owed] = exactly(self.ports.database.batch(reads).await?)?;
        let (due, owed): (Vec<Due>, Vec<Owed>) = (due.all_json()?, owed.all_json()?);
        let (judged, waiting) = self.judge_all(due).await?;
        let needs = owed.iter().map(|owed| owed.share).chain([FEES]).sum();
        if self.ports.keys.seller().is_none() && !(judged.is_empty() && owed.is_empty()) {
            let alarm = "SELLER_SECRET is not set: nothing can be posted, collected, refunded or paid";
            self.report.alarms.push(alarm.into());
        }
        Ok(Plan { tasks: tasks(owed, judged, self.view.clock), needs, waiting })
    }

    /// Judges what is due, page after page, until there is as much to do as one tick may reach. What only waits is put
    /// aside at once; what of it may have been spent meanwhile is handed back.
    async fn judge_all(&mut self, mut due: Vec<Due>) -> Result<(Vec<Judged>, Vec<(Due, Millis)>), PortError> {
        let (mut judged, mut waiting) = (vec![], vec![]);
        let most = MAX_JUDGED.min(usize::try_from(self.calls_left().saturating_mul(3) / 5).unwrap_or(0));
        // Where contents are kept elsewhere, reading one is an outside call, too: half of them are for what is to be done.
        let kept = self.calls_left().div_ceil(2);
        for _ in 0..MAX_PAGES {
            let full = due.len() >= usize::try_from(due::PAGE).unwrap_or(usize::MAX);
            let (mut later, mut writes): (Vec<_>, Vec<Statement>) = (vec![], vec![]);
            for due in std::mem::take(&mut due) {
                if due.datum().is_ok_and(|datum| is_pressing(datum, &self.view)) {
                    self.unposted.insert(due.purchase, "the tick did not come to it".into());
                }
                if judged.len() >= most {
                    continue;
                }
                let verdict = self.judge(&due, self.calls_left() > kept).await;
                if let (None, Ok(Some((_, Some(delivered))))) = (due.delivered, &verdict) {
                    writes.push(due::keep_delivered(&due.purchase, delivered));
                }
                match (verdict, due.datum().cloned()) {
                    (Ok(None), _) => {}
                    (Ok(Some((NextStep::Wait(until), _))), Ok(datum)) => {
                        self.unposted.remove(&due.purchase);
                        let until = due::next_check(until, &datum.deadlines, self.view.clock);
                        let to = if due.may_be_gone(self.view.read_to) { &mut waiting } else { &mut later };
                        to.push((due, until));
                    }
                    (Ok(Some((step, result))), Ok(datum)) => judged.push(Judged { due, datum, step, result }),
                    (Err(error), _) => {
                        self.report.note(&due.purchase, &error);
                        writes.push(due::retry_later(&due, self.view.clock));
                    }
                    (_, Err(error)) => return Err(error.into()),
                }
            }
            writes.extend((!later.is_empty()).then(|| due::check_later(&later)));
            self.write(writes).await?;
            if !full || judged.len() >= most {
                break;
            }
            let except = judged.len().saturating_add(waiting.len());
            due = self.ports.database.run(due::due(self.view.clock, except)).await?.all_json()?;
        }
        Ok((judged, waiting))
    }

    /// What to do with one escrow; `None` where that depends on what was sold, which may not be read now.
    pub(super) async fn judge(&mut self, due: &Due, reads: bool) -> Result<Option<Judgement>, PortError> {
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
            self.report
                .alarms
                .push(format!("no result of {purchase} in time: its refund will lower its seller's score"));
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

    /// The hash of what was delivered, as a result of this lock.
    async fn delivered(&self, due: &Due, reads: bool) -> Result<Option<ContentHash>, PortError> {
        if due.delivered.is_some() || !reads {
            return Ok(due.delivered);
        }
        let content = self.ports.contents.get(&due.content_hash).await?;
        let content = content.ok_or_else(|| DatabaseError("what was sold is not there".into()))?;
        Ok(Some(result_hash(&due.purchase, &content)))
    }
}

/// Whether a first result can no longer be posted.
fn is_over(datum: &Datum, view: &View) -> bool {
    datum.window(Action::SubmitResult).is_some_and(|window| window.timing(view.clock, 0) == Timing::Over)
}

fn is_pressing(datum: &Datum, view: &View) -> bool {
    let ours = view.seller.is_some() && datum.seller.key_address() == view.seller;
    ours && !datum.has_result() && is_nearly_over(datum, view.clock)
}

/// Whether little is left of the time for a result.
pub(super) fn is_nearly_over(datum: &Datum, clock: Millis) -> bool {
    datum.deadlines.submit_result < clock.saturating_add(PRESSING_MS)
}
