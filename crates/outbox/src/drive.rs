//! Drives an outbox entry towards its end: submits its transaction, polls the chain, and records the outcome.
//!
//! This is the only module that submits transactions. A request drives its entry with a bounded number of polls
//! ([`Outbox::wait_for_block`]); in each of its runs, the watcher polls every open entry once ([`Outbox::observe`]).
//! Both apply the same pure function, [`decide`](crate::decide), so it does not matter which of them sees the block
//! first.

use cardano::{
    TxHash,
    chain::{Chain, ChainError, Inclusion, Submission, Tip},
    slots::Millis,
    tx::{SignedTx, TxPart},
};
use sql::{Batch, Database, DatabaseError, Write};

use crate::{
    decide::{ChainObservation, Decision, NOT_OUR_SUBMISSION, Trust, decide},
    entry::{Entry, EntryState, Provenance},
    news::NewBlocks,
    statements::{attempt_not_sent, begin_attempt, by_id, change, open_of_same_wallet, restore_cbor},
    wallet::WalletSnapshot,
};

/// Returns additional statements for the batch that records a decision, for example one that inserts the purchase.
///
/// The additional statements run after the statement that changes the entry. That statement has no effect if another
/// request has changed the entry meanwhile. Each additional statement must therefore check the entry's state itself.
pub type Hook<'a> = dyn Fn(&Entry, &Decision) -> Result<Vec<Write>, DatabaseError> + 'a;

/// A way to wait: workers sleep, and tests advance a simulated clock.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait Sleep {
    /// Returns after this many milliseconds.
    async fn sleep(&self, ms: Millis);
}

/// The polling schedule of a request that waits for a block.
#[derive(Clone, Copy, Debug)]
pub struct PollPolicy<'a, Z> {
    pub sleep: &'a Z,
    /// Milliseconds to wait before each poll. A poll makes up to three provider calls.
    pub schedule: &'a [Millis],
    /// `true` to poll once before the first wait, for a client that returns to a pending payment. Such a client stops
    /// waiting once it has used up its share of provider calls.
    pub at_once: bool,
}

/// Reason why an entry could not be submitted or polled. Changes that were recorded before the error persist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutboxError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    Chain(#[from] ChainError),
}

/// Converts a failure of the provider to `None`. The caller then continues with the recorded state.
///
/// # Errors
/// Returns an error if the database query failed.
pub fn unless_chain_fails<T>(answer: Result<T, OutboxError>) -> Result<Option<T>, DatabaseError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(OutboxError::Chain(_)) => Ok(None),
        Err(OutboxError::Database(error)) => Err(error),
    }
}

/// Status of a transaction after it was submitted or polled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TxStatus {
    /// A block includes the transaction.
    Included(Inclusion),
    /// No block includes the transaction yet.
    Pending {
        /// `true` if a node has accepted the transaction.
        submitted: bool,
    },
    /// A node rejected the transaction permanently. Contains the node's reason.
    Refused(String),
    /// The validity interval ended before any block included the transaction.
    Expired,
}

/// Result of waiting for a block that includes a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitOutcome<'a, T> {
    pub status: TxStatus,
    /// Rows of the caller's queries, which ran in the batch that recorded the inclusion; `None` if the transaction is
    /// not included, or if another request recorded the inclusion.
    pub read: Option<T>,
    /// The unused part of [`PollPolicy::schedule`]: pauses between further polls, in ms.
    pub rest: &'a [Millis],
}

/// Result of one poll of the chain.
struct Poll<T> {
    /// Final status of the transaction; `None` if further polls may find a block.
    end: Option<TxStatus>,
    /// Rows of the caller's queries, which ran in the batch that recorded the inclusion; `None` if this poll recorded
    /// none.
    read: Option<T>,
    /// `true` if the provider was not called because the client has used up its share of provider calls.
    throttled: bool,
}

/// The outbox: transactions recorded in a database, and the chain to which they are submitted.
#[derive(Clone, Copy)]
pub struct Outbox<'a, D, C> {
    pub database: &'a D,
    pub chain: &'a C,
    /// Function that returns additional statements for each batch that changes an entry.
    pub hook: &'a Hook<'a>,
}

impl<D: Database, C: Chain> Outbox<'_, D, C> {
    /// Records a decision about an entry, in one batch with the [`Hook`]'s statements. Returns whether the entry
    /// changed.
    ///
    /// # Errors
    /// Returns an error if the database query failed.
    pub async fn apply(&self, entry: &mut Entry, decision: &Decision) -> Result<bool, DatabaseError> {
        Ok(self.apply_and_read(entry, decision, None::<Write>).await?.0)
    }

    /// Records a decision like [`Outbox::apply`], with the queries `then` at the end of the same batch. Also returns
    /// the rows of these queries, or `None` if the decision changes nothing.
    ///
    /// # Errors
    /// Returns an error if the database query fails.
    pub async fn apply_and_read<B: Batch>(
        &self,
        entry: &mut Entry,
        decision: &Decision,
        then: B,
    ) -> Result<(bool, Option<B::Answer>), DatabaseError> {
        let Some(change) = change(entry, decision) else { return Ok((false, None)) };
        let (changed, _, read) = self.database.batch((change, (self.hook)(entry, decision)?, then)).await?;
        let has_changed = changed.is_some();
        match changed {
            Some(changed) => *entry = Entry { cbor: std::mem::take(&mut entry.cbor), ..changed },
            // Another request was faster, and may have learnt from a node since the entry was read.
            None if matches!(decision, Decision::Include(_) | Decision::ChangeBlock(_)) => {
                self.read_again(entry).await?
            }
            None => {}
        }
        Ok((has_changed, Some(read)))
    }

    /// Submits the transaction of an entry, after the attempt was recorded. If a node rejects the transaction, first
    /// submits the unconfirmed transactions whose change it spends, because the node may have lost them, and then the
    /// transaction again.
    async fn submit(
        &self,
        entry: &mut Entry,
        wallet: Option<&WalletSnapshot>,
    ) -> Result<ChainObservation, DatabaseError> {
        let mut answer = self.chain.submit(&entry.cbor).await;
        if matches!(answer, Ok(Submission::Refused(_))) {
            let parents = wallet.map(|wallet| wallet.parents_of(&entry.cbor)).unwrap_or_default();
            for parent in &parents {
                // The result is irrelevant: a node that still has the parent rejects it.
                drop(self.chain.submit(parent).await);
            }
            if !parents.is_empty() {
                answer = self.chain.submit(&entry.cbor).await;
            }
        }
        Ok(match answer {
            Err(error) if error.was_not_sent() => {
                self.database.execute(attempt_not_sent(entry)).await?;
                entry.attempts = entry.attempts.saturating_sub(1);
                ChainObservation::Unavailable
            }
            Err(_) => ChainObservation::Unavailable,
            Ok(Submission::Accepted) => ChainObservation::Accepted,
            Ok(Submission::Refused(reason)) => match unless_chain_fails(self.inclusion_of(entry).await)? {
                None => ChainObservation::Unavailable,
                // Somebody else submitted the transaction, so only its payer can tell what it pays for.
                Some(Some(_))
                    if entry.is_only_attempt()
                        && entry.provenance == Provenance::Unknown
                        && !entry.kind.names_its_listing() =>
                {
                    ChainObservation::Refused(reason)
                }
                Some(Some(block)) => ChainObservation::InBlock(block),
                Some(None) => ChainObservation::Refused(reason),
            },
        })
    }

    /// Looks up the block that includes the transaction. If the entry's CBOR was deleted, it is restored from the
    /// chain.
    async fn inclusion_of(&self, entry: &mut Entry) -> Result<Option<Inclusion>, OutboxError> {
        if let Some(tip) = self.chain.cached_tip_with(&entry.tx)
            && runs_no_script(&entry.cbor)
        {
            let Tip { hash: block, height, slot, time_ms } = tip;
            return Ok(Some(Inclusion { block, height, slot, time_ms, valid: true }));
        }
        let block = self.chain.inclusion_of(&entry.tx).await?;
        if block.is_some() && entry.cbor.is_empty() {
            let bytes = self.chain.transaction(&entry.tx).await?;
            entry.cbor = bytes.ok_or_else(|| ChainError::Malformed(format!("no bytes of {}", entry.tx)))?;
            self.database.execute(restore_cbor(entry)).await?;
        }
        Ok(block)
    }

    /// Submits a transaction that was just recorded. Returns the ledger's reason if the ledger rejects it, or else
    /// `None`.
    ///
    /// # Errors
    /// Returns an error if the database query failed. If the provider fails, the entry stays open.
    pub async fn submit_first(
        &self,
        entry: &mut Entry,
        wallet: Option<&WalletSnapshot>,
        now: Millis,
    ) -> Result<Option<String>, DatabaseError> {
        let seen = self.submit(entry, wallet).await?;
        let decision = decide(entry, &seen, Trust::Payer, now);
        self.apply(entry, &decision).await?;
        Ok(match seen {
            ChainObservation::Refused(reason) => Some(reason),
            _ => None,
        })
    }

    /// Submits an entry's transaction again, unless another request has begun an attempt since the entry was read.
    ///
    /// # Errors
    /// Returns an error if the database query failed.
    pub async fn submit_again(&self, entry: &mut Entry, trust: Trust, now: Millis) -> Result<(), DatabaseError> {
        let Some(begun) = self.database.execute(begin_attempt(entry, now)).await? else { return Ok(()) };
        *entry = begun;
        let seen = self.submit(entry, None).await?;
        let decision = decide(entry, &seen, trust, now);
        self.apply(entry, &decision).await?;
        Ok(())
    }

    /// Marks the entry of `tx` as refused, because the included transaction `by` spent one of its inputs. Also marks
    /// the entries that spend outputs of `tx`. Returns whether the entry was open.
    ///
    /// # Errors
    /// Returns an error if the database query failed.
    pub async fn give_up_conflicting(&self, tx: &TxHash, by: &TxHash) -> Result<bool, DatabaseError> {
        let Some(mut entry) = self.database.fetch(by_id(tx)).await? else { return Ok(false) };
        if !entry.state.is_open() || tx == by {
            return Ok(false);
        }
        let changed = self.apply(&mut entry, &Decision::Refuse(format!("{by} was first"))).await?;
        if changed {
            self.give_up_descendants(*tx).await?;
        }
        Ok(changed)
    }

    /// Marks as refused all entries that spend outputs of `tx`, directly or indirectly, because `tx` will never be
    /// included. Otherwise their inputs would stay reserved until their validity intervals end.
    async fn give_up_descendants(&self, tx: TxHash) -> Result<(), DatabaseError> {
        let mut open = self.database.fetch(open_of_same_wallet(&tx)).await?;
        let mut gone = vec![tx];
        while let Some(parent) = gone.pop() {
            for entry in &mut open {
                let spends = || SignedTx::parse(&entry.cbor).is_ok_and(|tx| tx.inputs.iter().any(|it| it.tx == parent));
                if entry.state.is_open() && entry.kind.ends_by_refusal() && spends() {
                    let why = format!("it spends an output of {parent}, which will never be included");
                    self.apply(entry, &Decision::Refuse(why)).await?;
                    gone.push(entry.tx);
                }
            }
        }
        Ok(())
    }

    /// Looks up an entry's transaction on the chain once. Then records the result, or submits the transaction again.
    /// Returns the decision that was taken.
    ///
    /// # Errors
    /// Returns an error if the database or the provider failed.
    pub async fn refresh(
        &self,
        entry: &mut Entry,
        tip: Option<&Tip>,
        trust: Trust,
        now: Millis,
    ) -> Result<Decision, OutboxError> {
        let decision = self.observe(entry, tip, trust, now).await?;
        if decision == Decision::Submit {
            self.submit_again(entry, trust, now).await?;
        }
        Ok(decision)
    }

    /// Looks up an entry's transaction on the chain once and records the result. If the decision is
    /// [`Decision::Submit`], the caller must submit the transaction ([`Outbox::submit_again`]).
    ///
    /// # Errors
    /// Returns an error if the database or the provider failed.
    pub async fn observe(
        &self,
        entry: &mut Entry,
        tip: Option<&Tip>,
        trust: Trust,
        now: Millis,
    ) -> Result<Decision, OutboxError> {
        let seen = match self.inclusion_of(entry).await? {
            Some(block) => ChainObservation::InBlock(block),
            None => ChainObservation::InNoBlock { tip_slot: tip.map(|tip| tip.slot) },
        };
        let decision = decide(entry, &seen, trust, now);
        if decision != Decision::Submit {
            self.apply(entry, &decision).await?;
        }
        Ok(decision)
    }

    /// Reads the entry from the database again, except for its CBOR, which may have been deleted there.
    async fn read_again(&self, entry: &mut Entry) -> Result<(), DatabaseError> {
        if let Some(stored) = self.database.fetch(by_id(&entry.tx)).await? {
            *entry = Entry { cbor: std::mem::take(&mut entry.cbor), ..stored };
        }
        Ok(())
    }

    /// Waits for a block that includes an entry's transaction, as long as the policy allows. `reading` returns queries
    /// that run in the batch that records the inclusion.
    ///
    /// # Errors
    /// Returns [`DatabaseError`] if the database fails. A provider that fails leaves the entry pending.
    pub async fn wait_for_block<'p, Z: Sleep, B: Batch>(
        &self,
        entry: &mut Entry,
        policy: &PollPolicy<'p, Z>,
        trust: Trust,
        mut now: Millis,
        reading: impl Fn(&Entry) -> B,
    ) -> Result<WaitOutcome<'p, B::Answer>, DatabaseError> {
        let (mut read, mut rest) = (None, policy.schedule);
        let mut polls_at_once = policy.at_once;
        let mut blocks = NewBlocks::begin(self.chain);
        let status = loop {
            if let Some(block) = entry.block.filter(|_| entry.state == EntryState::Included) {
                break TxStatus::Included(block);
            }
            if !std::mem::take(&mut polls_at_once) {
                let Some((wait, later)) = rest.split_first() else { break pending(entry) };
                rest = later;
                policy.sleep.sleep(*wait).await;
                now = now.saturating_add(*wait);
            }
            // Expiry shows only if the newest block is read. The last poll reads it, and so does the immediate poll of
            // a repeated request, which should learn at once that its payment has expired.
            let asks_tip = rest.is_empty() || rest.len() == policy.schedule.len();
            // An entry that no node has accepted yet may have to be submitted again.
            if !asks_tip && entry.state == EntryState::Submitted && !blocks.may_include(&entry.tx, self.chain).await {
                continue;
            }
            let poll = self.poll(entry, asks_tip, trust, now, &reading).await?;
            read = poll.read.or(read);
            if let Some(status) = poll.end {
                break status;
            }
            if poll.throttled && policy.at_once {
                break pending(entry);
            }
        };
        Ok(WaitOutcome { status, read, rest })
    }

    /// Polls the chain once for [`Outbox::wait_for_block`]. With `asks_tip`, the newest block is read before the
    /// transaction is looked up, so that the lookup cannot miss a transaction in that block.
    async fn poll<B: Batch>(
        &self,
        entry: &mut Entry,
        asks_tip: bool,
        trust: Trust,
        now: Millis,
        reading: &impl Fn(&Entry) -> B,
    ) -> Result<Poll<B::Answer>, DatabaseError> {
        let tip = if asks_tip { self.chain.tip().await.ok() } else { None };
        let mut poll = Poll { end: None, read: None, throttled: false };
        let seen = match self.inclusion_of(entry).await {
            Ok(Some(block)) => ChainObservation::InBlock(block),
            Ok(None) => ChainObservation::InNoBlock { tip_slot: tip.map(|tip| tip.slot) },
            Err(OutboxError::Database(error)) => return Err(error),
            Err(OutboxError::Chain(error)) => {
                poll.throttled = error == ChainError::ClientRateLimited;
                ChainObservation::Unavailable
            }
        };
        // The request that submitted the transaction may have recorded the node's answer meanwhile.
        if trust == Trust::Unproven
            && matches!(seen, ChainObservation::InBlock(_))
            && entry.state == EntryState::Claimed
            && entry.provenance == Provenance::Unknown
        {
            self.read_again(entry).await?;
            if entry.state == EntryState::Refused {
                poll.end = Some(TxStatus::Refused(NOT_OUR_SUBMISSION.into()));
                return Ok(poll);
            }
        }
        match decide(entry, &seen, trust, now) {
            // A lagging provider may not show a recorded block. Only the watcher, which compares blocks, undoes
            // inclusions.
            Decision::Reopen | Decision::ChangeBlock(_) => {}
            Decision::Submit => self.submit_again(entry, trust, now).await?,
            decision @ Decision::Include(_) => {
                let then = reading(entry);
                poll.read = self.apply_and_read(entry, &decision, then).await?.1;
            }
            decision => {
                let changed = self.apply(entry, &decision).await?;
                match decision {
                    Decision::Refuse(reason) if changed => poll.end = Some(TxStatus::Refused(reason)),
                    // Another request has recorded a newer state, which counts.
                    Decision::Refuse(_) | Decision::Expire if !changed => self.read_again(entry).await?,
                    _ => {}
                }
            }
        }
        if matches!(seen, ChainObservation::InNoBlock { .. }) && entry.state == EntryState::Expired {
            poll.end = Some(TxStatus::Expired);
        }
        Ok(poll)
    }

    /// Looks up the transactions of overdue entries ([`crate::overdue`]) and records the results. Open entries may have
    /// expired, and a block may include a refused or expired entry after all. Returns whether a block includes a
    /// refused or expired entry.
    ///
    /// # Errors
    /// Returns an error if the database or the provider failed.
    pub async fn close(&self, entries: Vec<Entry>, tip: &Tip, now: Millis) -> Result<bool, OutboxError> {
        let mut found = false;
        for mut entry in entries {
            let was = entry.state;
            let decision = self.refresh(&mut entry, Some(tip), Trust::Unproven, now).await?;
            found |= !was.is_open() && matches!(decision, Decision::Include(_));
        }
        Ok(found)
    }
}

/// Returns whether a transaction runs no Plutus script. A block can include such a transaction only as valid. The check
/// reads only the body, which the transaction's id covers, so it holds for every transaction with the same id.
fn runs_no_script(cbor: &[u8]) -> bool {
    SignedTx::parse(cbor).is_ok_and(|tx| !tx.parts.contains_key(&TxPart::ScriptDataHash))
}

fn pending(entry: &Entry) -> TxStatus {
    TxStatus::Pending { submitted: entry.state == EntryState::Submitted }
}
