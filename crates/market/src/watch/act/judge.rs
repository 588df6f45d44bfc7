//! Judging what is due. Where the time alone decides, what was sold is not read; else once for each lock.

use cardano::{ContentHash, chain::Chain, evaluation::Evaluate, history::History, slots::Millis};
use escrow::{Action, Datum, result::result_hash, rules::Timing};
use sql::{Database, Statement};

use super::{Means, Undone};
use crate::{
    contents::Contents,
    watch::{
        ArbiterClient, Keys, Report, TickError, TickView, Watch,
        decide::{EscrowFacts, NextStep, decide},
        due::{self, Due},
    },
};

/// Escrows that one tick acts on at most: more than its calls reach.
const MAX_JUDGED: usize = 96;
/// Pages of escrows that are looked through for them.
const MAX_PAGES: u32 = 8;
/// With less time than this left, a result that is not posted raises an alarm.
const PRESSING_MS: Millis = 5 * 60_000;

/// What is to be done with an escrow, and the hash of what was delivered, as a result of its lock, where that counted.
pub(super) type Verdict = (Datum, NextStep, Option<ContentHash>);

/// An escrow with what is to be done, and all that it needs.
pub(super) struct Judged {
    pub due: Due,
    pub datum: Datum,
    pub step: NextStep,
    /// The hash of what was delivered, as a result of this lock, where it is posted.
    pub result: Option<ContentHash>,
}

impl<D: Database, C: Chain + History + Evaluate, K: Contents> Watch<'_, D, C, K> {
    /// Judges what is due, page after page, until there is as much to do as one tick may reach. What only waits is put
    /// aside at once, so that it is in nobody's way; that which may be gone is handed back.
    pub(super) async fn judge_all(
        &self,
        mut due: Vec<Due>,
        means: &Means<'_, impl Keys, impl ArbiterClient>,
        undone: &mut Undone,
        report: &mut Report,
    ) -> Result<(Vec<Judged>, Vec<(Due, Millis)>), TickError> {
        let (mut judged, mut waiting) = (vec![], vec![]);
        let most = MAX_JUDGED.min(usize::try_from((self.calls_left)().saturating_mul(3) / 5).unwrap_or(0));
        // Where contents are kept elsewhere, reading one is an outside call, too: half of them are for what is to be done.
        let kept = (self.calls_left)().div_ceil(2);
        for _ in 0..MAX_PAGES {
            let full = due.len() >= usize::try_from(due::PAGE).unwrap_or(usize::MAX);
            let (mut later, mut writes): (_, Vec<Statement>) = (vec![], vec![]);
            for due in std::mem::take(&mut due) {
                if due.datum().is_ok_and(|datum| is_pressing(&datum, means.view)) {
                    undone.pressing.insert(due.purchase, "the tick did not come to it".into());
                }
                if judged.len() >= most {
                    continue;
                }
                let verdict = self.judge(&due, means, (self.calls_left)() > kept, report).await;
                if let (None, Ok(Some((.., Some(delivered))))) = (due.delivered, &verdict) {
                    writes.push(due::keep_delivered(&due.purchase, delivered));
                }
                match verdict {
                    Ok(None) => {}
                    Ok(Some((datum, NextStep::Wait(until), _))) => {
                        undone.done(&due.purchase);
                        let until = due::next_look(until, &datum.deadlines, means.view.clock);
                        if due.may_be_gone(means.view.read_to) {
                            waiting.push((due, until));
                        } else {
                            later.push((due, until));
                        }
                    }
                    Ok(Some((datum, step, result))) => judged.push(Judged { due, datum, step, result }),
                    Err(error) => {
                        report.note(&due.purchase, &error);
                        writes.push(due::put_off(&due, means.view.clock));
                    }
                }
            }
            writes.extend((!later.is_empty()).then(|| due::look_again(&later)));
            if !writes.is_empty() {
                self.database.batch(writes).await?;
            }
            if !full || judged.len() >= most {
                break;
            }
            let except = judged.len().saturating_add(waiting.len());
            due = self.database.run(due::due(means.view.clock, except)).await?.all_json()?;
        }
        Ok((judged, waiting))
    }

    /// `None` where that hangs on what was sold, which is not at hand, and not to be read.
    pub(super) async fn judge(
        &self,
        due: &Due,
        means: &Means<'_, impl Keys, impl ArbiterClient>,
        reads: bool,
        report: &mut Report,
    ) -> Result<Option<Verdict>, TickError> {
        let datum = due.datum()?;
        let holder = due.holder.as_ref().filter(|holder| datum.buyer.key_address() == Some(holder.wallet));
        let facts = EscrowFacts {
            datum: &datum,
            right: true,
            mismatch: due.verification.as_deref() == Some("mismatch"),
            sells: means.view.seller.is_some() && datum.seller.key_address() == means.view.seller,
            buys: holder.is_some_and(|holder| means.keys.buyer(holder).is_some()),
            now: means.view.clock,
        };
        if facts.sells && !datum.has_result() && is_over(&datum, means.view) {
            let purchase = due.purchase;
            report.alarms.push(format!("no result of {purchase} in time: its refund will lower its creator's score"));
        }
        let steps = [true, false].map(|right| decide(&EscrowFacts { right, ..facts }));
        if let [step, other] = steps
            && step == other
            && step != NextStep::PostResult
        {
            return Ok(Some((datum, step, None)));
        }
        if let [NextStep::Wait(one), NextStep::Wait(other)] = steps {
            return Ok(Some((datum, NextStep::Wait(one.min(other)), None)));
        }
        let Some(result) = self.delivered(due, reads).await? else { return Ok(None) };
        let step = decide(&EscrowFacts { right: datum.result_hash == result.as_bytes(), ..facts });
        Ok(Some((datum, step, Some(result))))
    }

    /// The hash of what was delivered, as a result of this lock.
    async fn delivered(&self, due: &Due, reads: bool) -> Result<Option<ContentHash>, TickError> {
        if due.delivered.is_some() || !reads {
            return Ok(due.delivered);
        }
        let content = self.contents.get(&due.content_hash).await?;
        let content = content.ok_or_else(|| sql::DatabaseError("what was sold is not there".into()))?;
        Ok(Some(result_hash(&due.purchase, &content)))
    }
}

/// Whether a first result can no longer be posted.
fn is_over(datum: &Datum, view: &TickView) -> bool {
    datum.window(Action::SubmitResult).is_some_and(|window| window.timing(view.clock, 0) == Timing::Over)
}

fn is_pressing(datum: &Datum, view: &TickView) -> bool {
    let ours = view.seller.is_some() && datum.seller.key_address() == view.seller;
    ours && !datum.has_result() && is_nearly_over(datum, view.clock)
}

/// Whether little is left of the time for a result.
pub(super) fn is_nearly_over(datum: &Datum, clock: Millis) -> bool {
    datum.deadlines.submit_result < clock.saturating_add(PRESSING_MS)
}
