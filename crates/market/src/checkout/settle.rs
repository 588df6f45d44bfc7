//! Settles a payment, or a lock with its result: submits and polls the transactions until the content may be released.
//!
//! A *lock* is the payment of a protected purchase: it locks the money in the escrow. Its *result* is the seller's
//! transaction that posts a hash of the content to the escrow.
//!
//! ```text
//! payment   submit ──> its block ──────────────────────────────────────────────────> confirmed
//! lock      submit ──> post the result ──> the result's block: the lock is in it, or below ──> confirmed
//! ```

use api_types::Purchase;
use cardano::{
    ContentHash, TxHash,
    chain::{Chain, ChainError, Inclusion, Tip},
    evaluation::Evaluate,
    slots::Millis,
    tx::TransactionUtxos,
};
use escrow::result::result_hash;
use futures_util::future::join;
use outbox::{
    ChainObservation, Decision, Entry, EntryState, Kind, NewBlocks, Outbox, PollPolicy, Provenance, Sleep, Trust,
    TxStatus, decide, unless_chain_fails,
};
use sql::{Database, DatabaseError};

use super::{Checkout, Unavailable};
use crate::{
    catalogue::ListingTerms,
    contents::{Contents, MAX_HELD},
    escrow_steps::{IncludedTx, StepRecorder},
    payment::{self, PaymentRecord},
    purchase::{self, PurchaseRow},
    release::Unreleased,
    result_poster::{self, ResultPoster},
    transitions,
};

/// Interval, in polls, at which the lock is looked up as well as its result. The buyer may spend the lock before the
/// seller's result does; then a block includes the lock, but never the result.
const LOCK_POLL_INTERVAL: usize = 2;

/// Point at which a request starts to settle a payment.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// Submit a payment that was just claimed.
    Submit,
    /// The payment was just submitted. Wait for its block.
    Submitted,
    /// The payment was submitted earlier. Poll the chain first.
    Resume,
}

/// Status of a payment after this request submitted or polled it. [`crate::release::release`] decides whether its
/// content may be handed out.
pub(super) enum PaymentOutcome {
    Included(Box<IncludedPayment>),
    /// No block includes the payment yet.
    Pending {
        /// `true` if a node has accepted the payment.
        submitted: bool,
    },
    /// The payment was rejected permanently, with the node's reason.
    Refused(String),
    /// The payment's validity interval ended before any block included it.
    Expired,
}

/// A payment that a block includes.
pub(super) struct IncludedPayment {
    /// The stored payment, with the numbers of newer blocks that this request has seen.
    pub record: PaymentRecord,
    /// The payment's purchase.
    pub purchase: Option<Purchase>,
    /// The content, if it was already read while waiting.
    pub content: Option<String>,
}

/// A payment and its purchase, as stored.
type StoredPayment = (Option<PaymentRecord>, Option<PurchaseRow>);

/// A lock (the transaction that pays into the escrow) and its result, while one request settles them.
struct LockSettlement<'a> {
    lock: &'a mut Entry,
    result_hash: ContentHash,
    result: Option<Entry>,
    /// The payment and the purchase, as read by the batch that recorded the inclusion of the result.
    read: Option<StoredPayment>,
    trust: Trust,
    now: Millis,
}

impl<D: Database, C: Chain + Evaluate, V, Z: Sleep, K: Contents> Checkout<'_, D, C, V, Z, K> {
    pub(super) const fn outbox(&self) -> Outbox<'_, D, C> {
        Outbox { database: self.database, chain: self.chain, hook: &transitions::statements }
    }

    /// Submits a payment, and waits for its block, its result, and the required number of newer blocks, as far as the
    /// request's time allows.
    pub(super) async fn settle(
        &self,
        entry: &mut Entry,
        terms: &ListingTerms,
        start: Start,
        trust: Trust,
    ) -> Result<PaymentOutcome, Unavailable> {
        let mut result = None;
        if matches!(start, Start::Submit) {
            // While the lock is being submitted, its result is computed.
            let (outbox, lock) = (self.outbox(), (entry.kind == Kind::Lock).then_some(entry.tx));
            let reading = async {
                match lock {
                    Some(lock) => self.result_of(&terms.content_hash, &lock).await.map(Some),
                    None => Ok(None),
                }
            };
            let (rejected, read) = join(outbox.submit_first(entry, None, self.now), reading).await;
            if let Some(reason) = rejected?
                && entry.state == EntryState::Refused
            {
                return Ok(PaymentOutcome::Refused(reason));
            }
            result = read?;
        }
        let (mut outcome, mut rest) = (PaymentOutcome::Pending { submitted: false }, self.schedule);
        if matches!(start, Start::Resume) && entry.state == EntryState::Included {
            outcome = self.stored(&entry.tx, None).await?;
        }
        if self.is_missing_a_block(&outcome) {
            (outcome, rest) = match entry.kind {
                Kind::Lock => self.settle_lock(entry, terms, result, start, trust).await?,
                _ => self.settle_payment(entry, terms, start, trust).await?,
            };
        }
        if let PaymentOutcome::Included(payment) = &mut outcome {
            self.wait_for_depth(&mut payment.record, rest).await;
        }
        Ok(outcome)
    }

    /// Returns whether the payment, or the result of a lock, is in no block yet, so that the content cannot be
    /// released.
    fn is_missing_a_block(&self, outcome: &PaymentOutcome) -> bool {
        match outcome {
            PaymentOutcome::Included(payment) => matches!(
                payment.record.release(self.confirmations, self.clock),
                Err(Unreleased::NotIncluded | Unreleased::NoResult)
            ),
            _ => true,
        }
    }

    /// Polls the provider until the payment has enough newer blocks, or until all `waits` (pauses in ms between two
    /// polls) are used up.
    async fn wait_for_depth(&self, record: &mut PaymentRecord, waits: &[Millis]) {
        let is_unconfirmed =
            |record: &PaymentRecord| record.release(self.confirmations, self.clock) == Err(Unreleased::Unconfirmed);
        let (mut waits, mut blocks) = (waits.iter(), NewBlocks::default());
        while is_unconfirmed(record) {
            if blocks.advanced(self.chain).await {
                // If the provider does not answer, the next poll tries again.
                drop(self.observe(record).await);
            }
            match waits.next() {
                Some(wait) if is_unconfirmed(record) => self.sleep.sleep(*wait).await,
                _ => return,
            }
        }
    }

    /// Updates the number of newer blocks on top of the block that includes the payment or, if there is a result, the
    /// result. Reads the chain's tip first, and then checks that the provider still shows the recorded block, because a
    /// rollback may have removed it.
    pub(super) async fn observe(&self, record: &mut PaymentRecord) -> Result<(), ChainError> {
        if let Some((_, depth)) = self.chain.depth_of(&record.facts.latest_tx(&record.entry.tx)).await? {
            record.facts.observe(depth);
        }
        Ok(())
    }

    /// Waits for a block that includes an instant payment. Also returns the unused part of the polling schedule.
    ///
    /// The batch that records the inclusion also reads the payment, the purchase and the content for the response.
    async fn settle_payment(
        &self,
        entry: &mut Entry,
        terms: &ListingTerms,
        start: Start,
        trust: Trust,
    ) -> Result<(PaymentOutcome, &[Millis]), Unavailable> {
        let content = self.contents.reading(&terms.content_hash);
        let reading = |entry: &Entry| {
            let may_have = trust == Trust::Payer || entry.provenance == Provenance::Ours;
            (payment::by_tx(&entry.tx), purchase::read(&entry.tx), content.clone().filter(|_| may_have))
        };
        let at_once = matches!(start, Start::Resume);
        let policy = PollPolicy { sleep: self.sleep, schedule: self.schedule, at_once };
        let waited = self.outbox().wait_for_block(entry, &policy, trust, self.now, reading).await?;
        let outcome = match waited.status {
            TxStatus::Pending { submitted } => PaymentOutcome::Pending { submitted },
            TxStatus::Refused(reason) => PaymentOutcome::Refused(reason),
            TxStatus::Expired => PaymentOutcome::Expired,
            TxStatus::Included(_) => match waited.read {
                Some((Some(record), purchase, content)) => included(record, purchase, content.flatten()),
                // The inclusion was already recorded, for example by another request.
                _ => self.stored(&entry.tx, None).await?,
            },
        };
        Ok((outcome, waited.rest))
    }

    /// Reads the stored data of a payment that a block includes.
    async fn stored(&self, tx: &TxHash, content: Option<String>) -> Result<PaymentOutcome, Unavailable> {
        let (record, purchase) = self.database.batch((payment::by_tx(tx), purchase::read(tx))).await?;
        let record = record.ok_or_else(|| DatabaseError(format!("the payment {tx} is gone")))?;
        Ok(included(record, purchase, content))
    }

    /// Returns the hash that the seller posts as the result of a lock, and the content from which it is computed. The
    /// content is omitted if it is too large to hold while the request waits.
    async fn result_of(
        &self,
        content_hash: &ContentHash,
        lock: &TxHash,
    ) -> Result<(ContentHash, Option<String>), Unavailable> {
        let content = self.read_bought(content_hash, lock).await?;
        Ok((result_hash(lock, &content), Some(content).filter(|content| content.len() <= MAX_HELD)))
    }

    /// Waits for the blocks that include a lock and its result. `result` is the value of [`Self::result_of`], or `None`
    /// if it was not called yet. Also returns the unused part of the polling schedule.
    async fn settle_lock(
        &self,
        lock: &mut Entry,
        terms: &ListingTerms,
        result: Option<(ContentHash, Option<String>)>,
        start: Start,
        trust: Trust,
    ) -> Result<(PaymentOutcome, &[Millis]), Unavailable> {
        let resumes = matches!(start, Start::Resume);
        let (result_hash, content) = match result {
            Some(result) => result,
            None => self.result_of(&terms.content_hash, &lock.tx).await?,
        };
        let result = match start {
            Start::Submit | Start::Submitted => None,
            Start::Resume => self.database.fetch(result_poster::live_result(&lock.tx)).await?,
        };
        let mut run = LockSettlement { lock, result_hash, result, read: None, trust, now: self.now };
        let (end, rest) = self.drive_lock(&mut run, resumes).await?;
        let LockSettlement { lock, read, .. } = run;
        let outcome = match (end, read) {
            (Some(end), _) => end,
            (None, Some((Some(record), purchase))) => included(record, purchase, content),
            (None, _) if lock.state == EntryState::Included => self.stored(&lock.tx, content).await?,
            _ => PaymentOutcome::Pending { submitted: lock.state == EntryState::Submitted },
        };
        Ok((outcome, rest))
    }

    /// Posts the result of a lock, and polls the chain until a block includes the result or the polling schedule ends.
    /// If `at_once` is set, the first poll precedes the first wait.
    ///
    /// Returns how the lock failed, if it did, and the unused part of the schedule.
    async fn drive_lock(
        &self,
        run: &mut LockSettlement<'_>,
        at_once: bool,
    ) -> Result<(Option<PaymentOutcome>, &[Millis]), Unavailable> {
        let (mut rest, mut looks_at_once, mut polls) = (self.schedule, at_once, 0_usize);
        let mut blocks = NewBlocks::begin(self.chain);
        while looks_at_once || !rest.is_empty() {
            self.post_result(run).await;
            let is_at_once = std::mem::take(&mut looks_at_once);
            if !is_at_once && let Some((wait, later)) = rest.split_first() {
                rest = later;
                self.sleep.sleep(*wait).await;
                run.now = run.now.saturating_add(*wait);
            }
            let is_last = rest.is_empty();
            let waits_for = run.result.as_ref().filter(|result| {
                !is_at_once
                    && !is_last
                    && run.lock.state != EntryState::Claimed
                    && result.state == EntryState::Submitted
            });
            let may_be_included = match waits_for {
                Some(result) => blocks.may_include(&result.tx, self.chain).await,
                None => true,
            };
            let lists_lock =
                run.lock.state != EntryState::Included && self.chain.cached_tip_with(&run.lock.tx).is_some();
            if !may_be_included && !lists_lock {
                continue;
            }
            if may_be_included && self.result_is_included(run).await? {
                break;
            }
            polls = polls.saturating_add(1);
            if run.result.is_none() || is_last || lists_lock || polls % LOCK_POLL_INTERVAL == 0 {
                let end = self.poll_lock(run, is_at_once || is_last).await?;
                if end.is_some() {
                    return Ok((end, rest));
                }
            }
        }
        Ok((None, rest))
    }

    /// Posts the result, unless it is already pending or the lock cannot be spent yet. A failure is retried at the next
    /// poll, and later by the watcher.
    async fn post_result(&self, run: &mut LockSettlement<'_>) {
        let may_be_spent = matches!(run.lock.state, EntryState::Submitted | EntryState::Included);
        let (None, true, Some(seller)) = (&run.result, may_be_spent, self.seller) else { return };
        let clock = self.clock.saturating_add(run.now.saturating_sub(self.now));
        let poster = ResultPoster { database: self.database, chain: self.chain, seller, now: run.now, clock };
        match poster.post(run.lock, run.result_hash).await {
            Ok(entry) => run.result = Some(entry),
            Err(error) => (self.note)(&format!("no result of {} posted yet: {error}", run.lock.tx)),
        }
    }

    /// Returns whether a block includes the result. If so, records the inclusion of the lock and of the result.
    async fn result_is_included(&self, run: &mut LockSettlement<'_>) -> Result<bool, Unavailable> {
        let Some(result) = &mut run.result else { return Ok(false) };
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
        if run.lock.state != EntryState::Included {
            unless_chain_fails(self.outbox().refresh(run.lock, None, run.trust, run.now).await)?;
        }
        if run.lock.state == EntryState::Included && result.state != EntryState::Included {
            run.read = self.include_result(&run.lock.tx, result, block).await?;
        }
        Ok(run.lock.state == EntryState::Included)
    }

    /// Records the inclusion of the result, with its escrow step. The same batch reads the payment and the purchase of
    /// the lock.
    async fn include_result(
        &self,
        lock: &TxHash,
        result: &mut Entry,
        block: Inclusion,
    ) -> Result<Option<StoredPayment>, Unavailable> {
        let utxos = TransactionUtxos::read(&result.cbor)
            .map_err(|error| DatabaseError(format!("the result {} cannot be read: {error}", result.tx)))?;
        let Inclusion { block: hash, height, slot, time_ms, .. } = block;
        let tip = Tip { hash, height, slot, time_ms };
        let recorder = StepRecorder { database: self.database, chain: self.chain, tip, rollbacks: None, seller: None };
        let steps = recorder.steps(vec![IncludedTx { utxos, height, time_ms }]).await?;
        let steps = steps.statements.concat();
        let hook = |entry: &Entry, decision: &Decision| {
            Ok([transitions::statements(entry, decision)?, steps.clone()].concat())
        };
        let reading = (payment::by_tx(lock), purchase::read(lock));
        let outbox = Outbox { hook: &hook, ..self.outbox() };
        Ok(outbox.apply_and_read(result, &Decision::Include(block), reading).await?.1)
    }

    /// Looks up the lock on the chain, but not its result. Returns how the lock failed, if it did.
    async fn poll_lock(
        &self,
        run: &mut LockSettlement<'_>,
        asks_tip: bool,
    ) -> Result<Option<PaymentOutcome>, Unavailable> {
        // A lagging provider may not show a recorded block. Only the watcher, which compares blocks, undoes inclusions.
        if run.lock.state == EntryState::Included {
            return Ok(None);
        }
        let tip = if asks_tip { self.chain.tip().await.ok() } else { None };
        let decision = self.outbox().refresh(run.lock, tip.as_ref(), run.trust, run.now).await;
        if let Some(Decision::Refuse(reason)) = unless_chain_fails(decision)? {
            return Ok(Some(PaymentOutcome::Refused(reason)));
        }
        Ok((run.lock.state == EntryState::Expired).then_some(PaymentOutcome::Expired))
    }
}

/// Builds the outcome of an included payment from the stored data. The payment counts as pending if the watcher has
/// recorded a rollback of its block meanwhile.
fn included(record: PaymentRecord, purchase: Option<PurchaseRow>, content: Option<String>) -> PaymentOutcome {
    if !record.is_purchase() {
        return PaymentOutcome::Pending { submitted: record.entry.state == EntryState::Submitted };
    }
    PaymentOutcome::Included(Box::new(IncludedPayment { record, purchase: purchase.map(Into::into), content }))
}
