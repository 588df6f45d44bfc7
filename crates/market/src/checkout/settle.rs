//! Drives a payment into a block, and a lock together with its result.
//!
//! ```text
//! payment   submit ──> wait for its block ──> purchase, content
//! lock      submit ──> post the result ──> wait for the result's block, which has the lock too or follows it ──> purchase, content
//! ```

use cardano::{
    ContentHash, TxHash,
    chain::{Chain, Inclusion, Tip},
    evaluation::Evaluate,
    slots::Millis,
    tx::TransactionUtxos,
};
use escrow::result::result_hash;
use outbox::{
    ChainObservation, Decision, Entry, EntryState, Kind, Outbox, PollPolicy, Provenance, Sleep, Trust, TxStatus,
    WaitOutcome, decide, unless_chain_fails,
};
use sql::{Database, DatabaseError, Rows};

use super::{Checkout, Unavailable};
use crate::{
    catalogue::ListingTerms,
    contents::{Contents, MOST_HELD},
    escrow_steps::{Found, StepRecorder},
    payment::{self, Settled},
    release::Release,
    result_poster::{self, ResultPoster},
    transitions,
};

/// Number of polls for the result alone before the lock is polled too, because the buyer may have acted on it first.
const RESULT_POLLS: usize = 3;

/// Entry point into settlement.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// Submit a payment that was just claimed.
    Submit,
    /// Go on with a payment that was just submitted.
    Submitted,
    /// Poll the chain first, because the payment was submitted before.
    Resume,
}

/// State of a payment after this request.
pub(super) struct PaymentOutcome {
    pub status: TxStatus,
    /// The payment and purchase as stored, if included.
    pub settled: Settled,
    /// The content, if it was read on the way.
    pub content: Option<String>,
}

impl PaymentOutcome {
    /// Outcome without a block.
    fn not_in_block(status: TxStatus) -> Self {
        Self { status, settled: Settled::default(), content: None }
    }
}

/// A lock and its result during settlement.
struct LockRun<'a> {
    lock: &'a mut Entry,
    result_hash: ContentHash,
    result: Option<Entry>,
    trust: Trust,
    now: Millis,
    confirmations: u64,
}

impl<D: Database, C: Chain + Evaluate, V, Z: Sleep, K: Contents> Checkout<'_, D, C, V, Z, K> {
    pub(super) const fn outbox(&self) -> Outbox<'_, D, C> {
        Outbox { database: self.database, chain: self.chain, hook: &transitions::statements }
    }

    /// Drives a payment as far as the request's time allows.
    pub(super) async fn settle(
        &self,
        entry: &mut Entry,
        terms: &ListingTerms,
        start: Start,
        trust: Trust,
    ) -> Result<PaymentOutcome, Unavailable> {
        if matches!(start, Start::Submit)
            && let Some(reason) = self.outbox().submit_first(entry, None, self.now).await?
            && entry.state == EntryState::Refused
        {
            return Ok(PaymentOutcome::not_in_block(TxStatus::Refused(reason)));
        }
        match entry.kind {
            Kind::Lock => self.settle_lock(entry, terms, start, trust).await,
            _ => self.settle_payment(entry, terms, start, trust).await,
        }
    }

    /// Waits for an instant payment's block. The batch that records it also marks the payment as delivered and reads
    /// the purchase and the content for the answer.
    async fn settle_payment(
        &self,
        entry: &mut Entry,
        terms: &ListingTerms,
        start: Start,
        trust: Trust,
    ) -> Result<PaymentOutcome, Unavailable> {
        let content = self.contents.reading(&terms.content_hash).filter(|_| self.confirmations == 0);
        let delivers = !matches!(start, Start::Resume) && content.is_some() && !(self.hung_up)();
        let hook = |entry: &Entry, decision: &Decision| {
            let mut statements = transitions::statements(entry, decision)?;
            if matches!(decision, Decision::Include(_)) {
                let may_have = trust == Trust::Payer || entry.provenance == Provenance::Ours;
                if delivers && may_have {
                    statements.push(payment::mark_delivered_with(&entry.tx, &terms.content_hash, self.now));
                }
                statements.push(payment::settled(&entry.tx));
                statements.extend(content.clone().filter(|_| may_have));
            }
            Ok(statements)
        };
        let policy = PollPolicy {
            sleep: self.sleep,
            schedule: self.schedule,
            confirmations: self.confirmations,
            at_once: matches!(start, Start::Resume),
        };
        let outbox = Outbox { hook: &hook, ..self.outbox() };
        let WaitOutcome { status, hook_answers } = outbox.wait_for_block(entry, &policy, trust, self.now).await?;
        if !matches!(status, TxStatus::Confirmed { .. }) {
            return Ok(PaymentOutcome::not_in_block(status));
        }
        let read = |rows: &Rows| rows.first_json::<Settled>().ok().flatten().filter(|settled| settled.record.is_some());
        let found = hook_answers.iter().enumerate().find_map(|(at, rows)| Some((at, read(rows)?)));
        let Some((at, settled)) = found else {
            // The inclusion was recorded before, by another request or after a rollback.
            return self.stored_outcome(&entry.tx, status).await;
        };
        let content = hook_answers.get(at.saturating_add(1)).and_then(Rows::first).map(str::to_owned);
        Ok(PaymentOutcome { status, settled, content })
    }

    /// Reads the outcome of an included payment.
    async fn stored_outcome(&self, tx: &TxHash, status: TxStatus) -> Result<PaymentOutcome, Unavailable> {
        let settled = self.database.run(payment::settled(tx)).await?.first_json()?.unwrap_or_default();
        Ok(PaymentOutcome { status, settled, content: None })
    }

    async fn settle_lock(
        &self,
        lock: &mut Entry,
        terms: &ListingTerms,
        start: Start,
        trust: Trust,
    ) -> Result<PaymentOutcome, Unavailable> {
        let resumes = matches!(start, Start::Resume);
        if let Some(block) = lock.block.filter(|_| resumes && lock.state == EntryState::Included)
            && self.confirmations == 0
        {
            let outcome = self.stored_outcome(&lock.tx, TxStatus::Confirmed { block, confirmations: 0 }).await?;
            if outcome.settled.record.as_ref().is_some_and(|record| record.release(self.clock) != Release::NotYet) {
                return Ok(outcome);
            }
        }
        let content = self.bought(&terms.content_hash, &lock.tx, None).await?;
        let result_hash = result_hash(&lock.tx, &content);
        let content = Some(content).filter(|content| content.len() <= MOST_HELD);
        let result = match start {
            Start::Submit | Start::Submitted => None,
            Start::Resume => Entry::first(&self.database.run(result_poster::live_result(&lock.tx)).await?)?,
        };
        let mut run = LockRun { lock, result_hash, result, trust, now: self.now, confirmations: 0 };
        if let Some(end) = self.drive_lock(&mut run, resumes).await? {
            return Ok(PaymentOutcome::not_in_block(end));
        }
        let LockRun { lock, confirmations, .. } = run;
        let Some(block) = lock.block.filter(|_| lock.state == EntryState::Included) else {
            let submitted = lock.state == EntryState::Submitted;
            return Ok(PaymentOutcome::not_in_block(TxStatus::Pending { block: None, submitted }));
        };
        let outcome = self.stored_outcome(&lock.tx, TxStatus::Confirmed { block, confirmations }).await?;
        Ok(PaymentOutcome { content, ..outcome })
    }

    /// Posts the result and polls for its block, until it is included or the time is over. Returns how the lock ended,
    /// if it did.
    async fn drive_lock(&self, run: &mut LockRun<'_>, at_once: bool) -> Result<Option<TxStatus>, Unavailable> {
        let waits: Vec<Millis> = at_once.then_some(0).into_iter().chain(self.schedule.iter().copied()).collect();
        for (index, wait) in waits.iter().enumerate() {
            self.post_result(run).await;
            if *wait > 0 {
                self.sleep.sleep(*wait).await;
                run.now = run.now.saturating_add(*wait);
            }
            let is_last = index.saturating_add(1) == waits.len();
            if self.result_is_confirmed(run).await? {
                break;
            }
            if run.result.is_none() || is_last || index % RESULT_POLLS == RESULT_POLLS.saturating_sub(1) {
                let end = self.poll_lock(run, *wait == 0 || is_last).await?;
                if end.is_some() {
                    return Ok(end);
                }
            }
        }
        Ok(None)
    }

    /// Posts the result unless one is pending or the lock cannot be spent yet. Failures are retried at the next poll
    /// and by the watcher.
    async fn post_result(&self, run: &mut LockRun<'_>) {
        let may_be_spent = matches!(run.lock.state, EntryState::Submitted | EntryState::Included);
        let (None, true, Some(seller)) = (&run.result, may_be_spent, self.seller) else { return };
        let clock = self.clock.saturating_add(run.now.saturating_sub(self.now));
        let poster = ResultPoster { database: self.database, chain: self.chain, seller, now: run.now, clock };
        match poster.post(run.lock, run.result_hash).await {
            Ok(entry) => run.result = Some(entry),
            Err(error) => (self.note)(&format!("no result of {} posted yet: {error}", run.lock.tx)),
        }
    }

    /// Whether the result is in a block with enough confirmations. Records lock and result then.
    async fn result_is_confirmed(&self, run: &mut LockRun<'_>) -> Result<bool, Unavailable> {
        let Some(result) = &mut run.result else { return Ok(false) };
        let tip = if self.confirmations > 0 { self.chain.tip().await.ok() } else { None };
        let Ok(block) = self.chain.inclusion_of(&result.tx).await else { return Ok(false) };
        let Some(block) = block.filter(|block| block.valid) else {
            let seen = ChainObservation::InNoBlock { tip_slot: None };
            if decide(result, &seen, Trust::Payer, run.now) == Decision::Submit {
                self.outbox().submit_again(result, Trust::Payer, run.now).await?;
            }
            if !result.state.is_open() && result.state != EntryState::Included {
                run.result = None;
            }
            return Ok(false);
        };
        run.confirmations = tip.map_or(0, |tip| tip.height.saturating_sub(block.height));
        if run.lock.state != EntryState::Included {
            unless_chain_fails(self.outbox().refresh(run.lock, None, run.trust, run.now).await)?;
        }
        if run.lock.state == EntryState::Included && result.state != EntryState::Included {
            self.include_result(result, block).await?;
        }
        Ok(run.lock.state == EntryState::Included && run.confirmations >= self.confirmations)
    }

    /// Records the inclusion of the result, with its escrow step.
    async fn include_result(&self, result: &mut Entry, block: Inclusion) -> Result<(), Unavailable> {
        let utxos = TransactionUtxos::read(&result.cbor)
            .map_err(|error| DatabaseError(format!("the result {} cannot be read: {error}", result.tx)))?;
        let Inclusion { block: hash, height, slot, time_ms, .. } = block;
        let tip = Tip { hash, height, slot, time_ms };
        let recorder = StepRecorder { database: self.database, chain: self.chain, tip, rollbacks: None, seller: None };
        let steps = recorder.steps(vec![Found { utxos, height, time_ms }]).await?;
        let steps = steps.statements.concat();
        let hook = |entry: &Entry, decision: &Decision| {
            Ok([transitions::statements(entry, decision)?, steps.clone()].concat())
        };
        Outbox { hook: &hook, ..self.outbox() }.apply(result, &Decision::Include(block)).await?;
        Ok(())
    }

    /// Polls for the lock alone. Returns how it ended, if it did.
    async fn poll_lock(&self, run: &mut LockRun<'_>, asks_tip: bool) -> Result<Option<TxStatus>, Unavailable> {
        // A lagging provider may not show a recorded block. Only the watcher, which compares blocks, undoes inclusions.
        if run.lock.state == EntryState::Included {
            return Ok(None);
        }
        let tip = if asks_tip { self.chain.tip().await.ok() } else { None };
        let decision = self.outbox().refresh(run.lock, tip.as_ref(), run.trust, run.now).await;
        if let Some(Decision::Refuse(reason)) = unless_chain_fails(decision)? {
            return Ok(Some(TxStatus::Refused(reason)));
        }
        Ok((run.lock.state == EntryState::Expired).then_some(TxStatus::Expired))
    }
}
