//! Driving a payment into a block, and a lock together with its result.
//!
//! ```text
//! payment   submit ──> wait for its block ──> purchase, content
//! lock      submit ──> post the result ──> wait for the result's block: the lock is in it, or below ──> purchase, content
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
    ChainObservation, Decision, Entry, EntryState, Outbox, PollPolicy, Sleep, TransitionHook, Trust, TxStatus,
    WaitOutcome, WalletSnapshot, decide,
};
use sql::{Database, DatabaseError, Rows, Statement};

use super::{Checkout, Unavailable};
use crate::{
    catalogue::ListingTerms,
    contents::{Contents, MOST_HELD},
    escrow_steps::{Found, StepRecorder},
    payment::{self, PaymentRecord, Settled},
    release::Release,
    result_poster::{self, ResultPoster},
    transitions::Transitions,
};

/// After as many looks for a result alone the lock is looked for, too: the buyer may have taken another step first.
const RESULT_POLLS: usize = 3;

/// How a payment stands after this request drove it.
pub(super) struct PaymentOutcome {
    pub status: TxStatus,
    /// The payment as stored, where a block has it.
    pub record: Option<PaymentRecord>,
    /// The purchase as JSON, where a block has it.
    pub purchase: Option<String>,
    /// The content, where it was read on the way.
    pub content: Option<String>,
}

impl PaymentOutcome {
    /// One that no block has.
    const fn not_in_block(status: TxStatus) -> Self {
        Self { status, record: None, purchase: None, content: None }
    }
}

/// What the inclusion of a payment brings along in its batch: the purchase, that the content is delivered, and the
/// payment and the content to answer with.
struct InclusionHook<'a> {
    trust: Trust,
    delivers: bool,
    content: Option<&'a Statement>,
    content_hash: &'a ContentHash,
    now: Millis,
}

impl TransitionHook for InclusionHook<'_> {
    fn statements(&self, entry: &Entry, decision: &Decision) -> Result<Vec<Statement>, DatabaseError> {
        let mut statements = Transitions.statements(entry, decision)?;
        if matches!(decision, Decision::Include(_)) {
            let may_have = self.trust == Trust::Payer || entry.provenance == outbox::Provenance::Ours;
            if self.delivers && may_have {
                statements.push(payment::mark_delivered_with(&entry.tx, self.content_hash, self.now));
            }
            statements.push(payment::settled(&entry.tx));
            statements.extend(self.content.filter(|_| may_have).cloned());
        }
        Ok(statements)
    }
}

/// What the inclusion of a result brings along in its batch: its steps.
struct ResultHook(Vec<Statement>);

impl TransitionHook for ResultHook {
    fn statements(&self, entry: &Entry, decision: &Decision) -> Result<Vec<Statement>, DatabaseError> {
        Ok([Transitions.statements(entry, decision)?, self.0.clone()].concat())
    }
}

/// A lock, its result, and the time as it passes.
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
        Outbox { database: self.database, chain: self.chain, hook: &Transitions }
    }

    /// Drives a payment as far as the request's time allows. `first`: it was claimed just now, from this wallet.
    pub(super) async fn settle(
        &self,
        entry: &mut Entry,
        terms: &ListingTerms,
        first: Option<Option<&WalletSnapshot>>,
        trust: Trust,
    ) -> Result<PaymentOutcome, Unavailable> {
        if entry.kind == outbox::Kind::Lock {
            return self.settle_lock(entry, terms, first, trust).await;
        }
        let content = self.contents.reading(&terms.content_hash).filter(|_| self.confirmations == 0);
        let delivers = first.is_some() && self.confirmations == 0 && content.is_some() && !(self.hung_up)();
        let hook = InclusionHook {
            trust,
            delivers,
            content: content.as_ref(),
            content_hash: &terms.content_hash,
            now: self.now,
        };
        let outbox = Outbox { hook: &hook, ..self.outbox() };
        let policy = PollPolicy { sleep: self.sleep, schedule: self.schedule, confirmations: self.confirmations };
        let WaitOutcome { status, hook_answers } =
            outbox.wait_for_block(entry, first, &policy, trust, self.now).await?;
        if !matches!(status, TxStatus::Confirmed { .. }) {
            return Ok(PaymentOutcome::not_in_block(status));
        }
        let read = |rows: &Rows| rows.first_json::<Settled>().ok().flatten().filter(|settled| settled.record.is_some());
        let found = hook_answers.iter().enumerate().find_map(|(at, rows)| Some((at, read(rows)?)));
        let Some((at, Settled { record, purchase })) = found else {
            // A block had it before, or another request wrote it down.
            return self.stored_outcome(&entry.tx, status).await;
        };
        let content = hook_answers.get(at.saturating_add(1)).and_then(Rows::first).map(str::to_owned);
        Ok(PaymentOutcome { status, record, purchase, content })
    }

    /// What is stored of a payment that a block has.
    async fn stored_outcome(&self, tx: &TxHash, status: TxStatus) -> Result<PaymentOutcome, Unavailable> {
        let settled: Option<Settled> = self.database.run(payment::settled(tx)).await?.first_json()?;
        let (record, purchase) = settled.map(|settled| (settled.record, settled.purchase)).unwrap_or_default();
        Ok(PaymentOutcome { status, record, purchase, content: None })
    }

    async fn settle_lock(
        &self,
        lock: &mut Entry,
        terms: &ListingTerms,
        first: Option<Option<&WalletSnapshot>>,
        trust: Trust,
    ) -> Result<PaymentOutcome, Unavailable> {
        if let Some(wallet) = first
            && let Some(reason) = self.outbox().submit_first(lock, wallet, self.now).await?
            && lock.state == EntryState::Refused
        {
            return Ok(PaymentOutcome::not_in_block(TxStatus::Refused(reason)));
        }
        if first.is_none() && lock.state == EntryState::Included && self.confirmations == 0 {
            let status = lock.block.map_or(TxStatus::Expired, |block| TxStatus::Confirmed { block, confirmations: 0 });
            let outcome = self.stored_outcome(&lock.tx, status).await?;
            let may_end = |record: &PaymentRecord| matches!(record.release(self.clock), Release::Now | Release::Never);
            if outcome.record.as_ref().is_some_and(may_end) {
                return Ok(outcome);
            }
        }
        let content = self.bought(&terms.content_hash, &lock.tx, None).await?;
        let result_hash = result_hash(&lock.tx, &content);
        let content = Some(content).filter(|content| content.len() <= MOST_HELD);
        let result = match first {
            Some(_) => None,
            None => Entry::first(&self.database.run(result_poster::live_result(&lock.tx)).await?)?,
        };
        let mut run = LockRun { lock, result_hash, result, trust, now: self.now, confirmations: 0 };
        if let Some(status) = self.drive_lock(&mut run, first.is_none()).await? {
            return Ok(PaymentOutcome::not_in_block(status));
        }
        let confirmations = run.confirmations;
        let (submitted, included) = (run.lock.state == EntryState::Submitted, run.lock.state == EntryState::Included);
        match run.lock.block.filter(|_| included) {
            None => Ok(PaymentOutcome::not_in_block(TxStatus::Pending { block: None, submitted })),
            Some(block) => {
                let outcome = self.stored_outcome(&run.lock.tx, TxStatus::Confirmed { block, confirmations }).await?;
                Ok(PaymentOutcome { content, ..outcome })
            }
        }
    }

    /// Posts the result and looks for its block, at once or after the first wait, until that is there or the time is over.
    /// How the lock ended, where it did.
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

    /// Posts the result where none is pending and the lock may be spent. What fails is tried again at the next look, and
    /// by the watcher.
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

    /// Whether a block has the result, with as many newer ones as are asked for: the lock and the result are recorded.
    async fn result_is_confirmed(&self, run: &mut LockRun<'_>) -> Result<bool, Unavailable> {
        let Some(result) = &mut run.result else { return Ok(false) };
        let tip = if self.confirmations > 0 { self.chain.tip().await.ok() } else { None };
        let block = match self.chain.inclusion_of(&result.tx).await {
            Ok(block) => block,
            Err(_) => return Ok(false),
        };
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
            match self.outbox().refresh(run.lock, None, run.trust, run.now).await {
                Ok(_) => {}
                Err(outbox::OutboxError::Database(error)) => return Err(error.into()),
                Err(outbox::OutboxError::Chain(_)) => return Ok(false),
            }
        }
        if run.lock.state == EntryState::Included && result.state != EntryState::Included {
            self.include_result(result, block).await?;
        }
        Ok(run.lock.state == EntryState::Included && run.confirmations >= self.confirmations)
    }

    /// Records that a block has the result, together with the step that it is.
    async fn include_result(&self, result: &mut Entry, block: Inclusion) -> Result<(), Unavailable> {
        let utxos = TransactionUtxos::read(&result.cbor)
            .map_err(|error| DatabaseError(format!("the result {} cannot be read: {error}", result.tx)))?;
        let Inclusion { block: hash, height, slot, time_ms, .. } = block;
        let tip = Tip { hash, height, slot, time_ms };
        let recorder = StepRecorder { database: self.database, chain: self.chain, tip, rollbacks: None, seller: None };
        let steps = recorder.steps(vec![Found { utxos, height, time_ms }]).await?;
        let hook = ResultHook(steps.statements.concat());
        Outbox { hook: &hook, ..self.outbox() }.apply(result, &Decision::Include(block)).await?;
        Ok(())
    }

    /// Looks for the lock alone. How it ended, where it did.
    async fn poll_lock(&self, run: &mut LockRun<'_>, asks_tip: bool) -> Result<Option<TxStatus>, Unavailable> {
        // A provider that lags shows less than another did: only the watcher, which compares blocks, undoes.
        if run.lock.state == EntryState::Included {
            return Ok(None);
        }
        let tip = if asks_tip { self.chain.tip().await.ok() } else { None };
        match self.outbox().refresh(run.lock, tip.as_ref(), run.trust, run.now).await {
            Ok(Decision::Refuse(reason)) => return Ok(Some(TxStatus::Refused(reason))),
            Ok(_) => {}
            Err(outbox::OutboxError::Database(error)) => return Err(error.into()),
            Err(outbox::OutboxError::Chain(_)) => {}
        }
        Ok((run.lock.state == EntryState::Expired).then_some(TxStatus::Expired))
    }
}
