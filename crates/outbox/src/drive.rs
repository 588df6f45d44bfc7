//! Driving an entry: one poll of the chain, or several with bounded waits. No other module submits transactions.

use cardano::{
    TxHash,
    chain::{Chain, ChainError, Inclusion, Submission, Tip},
    slots::Millis,
    tx::SignedTx,
};
use sql::{Database, DatabaseError, Rows, Statement};

use crate::{
    decide::{ChainObservation, Decision, NOT_OUR_SUBMISSION, Trust, decide},
    entry::{Entry, EntryState, Provenance},
    statements::{attempt_not_sent, begin_attempt, by_id, change, keep_bytes, open_of_same_wallet},
    wallet::WalletSnapshot,
};

/// Names the statements that run in the same batch as a change of an entry, after those that write the change. They
/// must check the entry's state: where another request was faster, it has another one, and they must change nothing.
pub type Hook<'a> = dyn Fn(&Entry, &Decision) -> Result<Vec<Statement>, DatabaseError> + 'a;

/// Waiting, as a port.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait Sleep {
    /// Returns after this many milliseconds.
    async fn sleep(&self, ms: Millis);
}

/// How long a request waits for a block.
#[derive(Clone, Copy, Debug)]
pub struct PollPolicy<'a, Z> {
    pub sleep: &'a Z,
    /// Waits in ms before polls of the chain: as many polls, and no more. Each costs up to three outside calls.
    pub schedule: &'a [Millis],
    /// Newer blocks that are asked for beyond the one that has the transaction: 0 to 20.
    pub confirmations: u64,
    /// Whether to look before the first wait, as a request does that comes back. It stops where the provider is asked
    /// too much: it need not wait beside those that pay just now.
    pub at_once: bool,
}

/// Why an entry could not be driven. What is written down stays.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutboxError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    Chain(#[from] ChainError),
}

/// Takes a chain that does not answer for one that shows nothing new.
///
/// # Errors
/// The database query failed.
pub fn unless_chain_fails<T>(answer: Result<T, OutboxError>) -> Result<Option<T>, DatabaseError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(OutboxError::Chain(_)) => Ok(None),
        Err(OutboxError::Database(error)) => Err(error),
    }
}

/// How an entry stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TxStatus {
    /// In a block, with at least as many newer ones as were asked for.
    Confirmed {
        block: Inclusion,
        /// Newer blocks, as far as is known.
        confirmations: u64,
    },
    /// Not yet: in a block with fewer newer ones, or in none.
    Pending {
        /// The block and the newer ones, where there is one.
        block: Option<(Inclusion, u64)>,
        /// Whether a node took it.
        submitted: bool,
    },
    /// It is refused permanently, for this reason.
    Refused(String),
    /// It was in no block before its validity ended.
    Expired,
}

/// An entry after it was driven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitOutcome {
    pub status: TxStatus,
    /// What the hook's statements answered at its inclusion; empty where a block had it before.
    pub hook_answers: Vec<Rows>,
}

/// What one poll of the chain showed of an entry.
struct Poll {
    /// Its last status, where the poll ends the waiting.
    end: Option<TxStatus>,
    /// Blocks above its own, as far as this poll shows.
    confirmations: u64,
    /// What the hook's statements answered at its inclusion.
    hook_answers: Vec<Rows>,
    /// Whether the provider refuses to be asked more.
    throttled: bool,
}

/// The outbox of a database.
#[derive(Clone, Copy)]
pub struct Outbox<'a, D, C> {
    pub database: &'a D,
    pub chain: &'a C,
    /// What else changes with an entry.
    pub hook: &'a Hook<'a>,
}

impl<D: Database, C: Chain> Outbox<'_, D, C> {
    /// Writes a decision down, with the hook's statements. Whether it changed the entry, and what these statements answered.
    ///
    /// # Errors
    /// The database query failed.
    pub async fn apply(&self, entry: &mut Entry, decision: &Decision) -> Result<(bool, Vec<Rows>), DatabaseError> {
        let Some(change) = change(entry, decision) else { return Ok((false, vec![])) };
        let statements = [vec![change], (self.hook)(entry, decision)?].concat();
        let mut answers = self.database.batch(statements).await?.into_iter();
        let changed = answers.next().map(|rows| Entry::first(&rows)).transpose()?.flatten();
        let (hook_answers, has_changed) = (answers.collect(), changed.is_some());
        match changed {
            Some(changed) => *entry = Entry { cbor: std::mem::take(&mut entry.cbor), ..changed },
            // Another request was faster, and may have learnt from a node since the entry was read.
            None if matches!(decision, Decision::Include(_) | Decision::Reanchor(_)) => self.read_again(entry).await?,
            None => {}
        }
        Ok((has_changed, hook_answers))
    }

    /// Submits the bytes of an entry whose attempt is written down. Where the ledger refuses it because a node may have
    /// lost the change that it spends, the transactions that made the change are submitted first.
    async fn submit(
        &self,
        entry: &mut Entry,
        wallet: Option<&WalletSnapshot>,
    ) -> Result<ChainObservation, DatabaseError> {
        let mut answer = self.chain.submit(&entry.cbor).await;
        if matches!(answer, Ok(Submission::Refused(_))) {
            let parents = wallet.map(|wallet| wallet.parents_of(&entry.cbor)).unwrap_or_default();
            for parent in &parents {
                // Its answer does not matter: a parent that the node still has is refused, for its inputs are spent.
                drop(self.chain.submit(parent).await);
            }
            if !parents.is_empty() {
                answer = self.chain.submit(&entry.cbor).await;
            }
        }
        Ok(match answer {
            Err(ChainError::RateLimited | ChainError::BudgetExhausted | ChainError::TimeOver) => {
                self.database.run(attempt_not_sent(entry)).await?;
                entry.attempts = entry.attempts.saturating_sub(1);
                ChainObservation::Unavailable
            }
            Err(_) => ChainObservation::Unavailable,
            Ok(Submission::Accepted) => ChainObservation::Accepted,
            Ok(Submission::Refused(reason)) => match unless_chain_fails(self.inclusion_of(entry).await)? {
                None => ChainObservation::Unavailable,
                // Others submitted it: only its payer can say what it is for.
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

    /// The block that has it. Bytes that were dropped are read again from there.
    async fn inclusion_of(&self, entry: &mut Entry) -> Result<Option<Inclusion>, OutboxError> {
        let block = self.chain.inclusion_of(&entry.tx).await?;
        if block.is_some() && entry.cbor.is_empty() {
            let bytes = self.chain.transaction(&entry.tx).await?;
            entry.cbor = bytes.ok_or_else(|| ChainError::Malformed(format!("no bytes of {}", entry.tx)))?;
            self.database.run(keep_bytes(entry)).await?;
        }
        Ok(block)
    }

    /// Makes the submission that claiming an entry began. The ledger's reason, where it refuses.
    ///
    /// # Errors
    /// The database cannot be asked. A chain that does not answer leaves the entry claimed.
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

    /// Submits the same bytes again, unless another attempt began since the entry was read.
    ///
    /// # Errors
    /// The database query failed.
    pub async fn submit_again(&self, entry: &mut Entry, trust: Trust, now: Millis) -> Result<(), DatabaseError> {
        let Some(begun) = Entry::first(&self.database.run(begin_attempt(entry, now)).await?)? else { return Ok(()) };
        *entry = begun;
        let seen = self.submit(entry, None).await?;
        let decision = decide(entry, &seen, trust, now);
        self.apply(entry, &decision).await?;
        Ok(())
    }

    /// Gives up an entry that conflicts with a transaction in a block (`by`), and what spends its change. Whether the entry was
    /// open.
    ///
    /// # Errors
    /// The database query failed.
    pub async fn give_up_conflicting(&self, tx: &TxHash, by: &TxHash) -> Result<bool, DatabaseError> {
        let Some(mut entry) = Entry::first(&self.database.run(by_id(tx)).await?)? else { return Ok(false) };
        if !entry.state.is_open() || tx == by {
            return Ok(false);
        }
        let changed = self.apply(&mut entry, &Decision::Refuse(format!("{by} was first"))).await?.0;
        if changed {
            self.give_up_descendants(*tx).await?;
        }
        Ok(changed)
    }

    /// Gives up what spends outputs of an entry that no block will have, and what spends outputs of these. No node takes
    /// them, and their inputs would stay reserved until their validity ends.
    async fn give_up_descendants(&self, tx: TxHash) -> Result<(), DatabaseError> {
        let mut open = Entry::all(&self.database.run(open_of_same_wallet(&tx)).await?)?;
        let mut gone = vec![tx];
        while let Some(parent) = gone.pop() {
            for entry in &mut open {
                let spends = || SignedTx::parse(&entry.cbor).is_ok_and(|tx| tx.inputs.iter().any(|it| it.tx == parent));
                if entry.state.is_open() && entry.kind.ends_by_refusal() && spends() {
                    let why = format!("what {parent} made is never there");
                    self.apply(entry, &Decision::Refuse(why)).await?;
                    gone.push(entry.tx);
                }
            }
        }
        Ok(())
    }

    /// Looks at the chain once and acts on what it shows. What was decided.
    ///
    /// # Errors
    /// The database or the chain cannot be asked.
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

    /// As [`Outbox::refresh`], but leaves submitting again to the caller ([`Outbox::submit_again`]).
    ///
    /// # Errors
    /// As [`Outbox::refresh`].
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

    /// Reads what other requests wrote down meanwhile. Bytes that are not stored any more are kept.
    async fn read_again(&self, entry: &mut Entry) -> Result<(), DatabaseError> {
        if let Some(stored) = Entry::first(&self.database.run(by_id(&entry.tx)).await?)? {
            *entry = Entry { cbor: std::mem::take(&mut entry.cbor), ..stored };
        }
        Ok(())
    }

    /// Waits for the block of an entry as long as the policy allows.
    ///
    /// # Errors
    /// The database cannot be asked. A chain that cannot be asked leaves the entry pending.
    pub async fn wait_for_block<Z: Sleep>(
        &self,
        entry: &mut Entry,
        policy: &PollPolicy<'_, Z>,
        trust: Trust,
        mut now: Millis,
    ) -> Result<WaitOutcome, DatabaseError> {
        let (mut hook_answers, mut confirmations) = (vec![], 0);
        let at_once = policy.at_once.then_some(0);
        let mut waits = at_once.into_iter().chain(policy.schedule.iter().copied()).peekable();
        while let Some(wait) = waits.next() {
            if let Some(status) = confirmed(entry, confirmations, policy.confirmations) {
                return Ok(WaitOutcome { status, hook_answers });
            }
            if wait > 0 {
                policy.sleep.sleep(wait).await;
                now = now.saturating_add(wait);
            }
            // A request that comes back after the end is told so at once.
            let asks_tip = wait == 0 || waits.peek().is_none() || policy.confirmations > 0;
            let poll = self.poll(entry, asks_tip, trust, now).await?;
            confirmations = poll.confirmations;
            if !poll.hook_answers.is_empty() {
                hook_answers = poll.hook_answers;
            }
            if let Some(status) = poll.end {
                return Ok(WaitOutcome { status, hook_answers });
            }
            if poll.throttled && policy.at_once {
                break;
            }
        }
        let status = confirmed(entry, confirmations, policy.confirmations).unwrap_or(TxStatus::Pending {
            block: entry.block.map(|block| (block, confirmations)),
            submitted: entry.state == EntryState::Submitted,
        });
        Ok(WaitOutcome { status, hook_answers })
    }

    /// One poll of [`Outbox::wait_for_block`]. The tip is read first: had one of its blocks the transaction, the poll would show it.
    async fn poll(&self, entry: &mut Entry, asks_tip: bool, trust: Trust, now: Millis) -> Result<Poll, DatabaseError> {
        let tip = if asks_tip { self.chain.tip().await.ok() } else { None };
        let mut poll = Poll { end: None, confirmations: 0, hook_answers: vec![], throttled: false };
        let seen = match self.inclusion_of(entry).await {
            Ok(Some(block)) => ChainObservation::InBlock(block),
            Ok(None) => ChainObservation::InNoBlock { tip_slot: tip.map(|tip| tip.slot) },
            Err(OutboxError::Database(error)) => return Err(error),
            Err(OutboxError::Chain(error)) => {
                poll.throttled = error == ChainError::TooMany;
                ChainObservation::Unavailable
            }
        };
        // Confirmations count only where this poll shows the block below them: a rollback may have removed it.
        if let (Some(tip), ChainObservation::InBlock(block)) = (&tip, &seen) {
            poll.confirmations = tip.height.saturating_sub(block.height);
        }
        // The request that submitted it may have written its answer down meanwhile.
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
            // A provider that lags shows less than another did: only the watcher, which compares blocks, undoes.
            Decision::Unconfirm | Decision::Reanchor(_) => {}
            Decision::Submit => self.submit_again(entry, trust, now).await?,
            decision => {
                let (changed, rows) = self.apply(entry, &decision).await?;
                match decision {
                    Decision::Include(_) => poll.hook_answers = rows,
                    Decision::Refuse(reason) if changed => poll.end = Some(TxStatus::Refused(reason)),
                    // Another request saw more, and what it wrote down counts.
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

    /// Refreshes [`crate::overdue`] entries. Open ones expire, which frees their inputs; one that was given up may be in a block after
    /// all. Whether one of the latter is.
    ///
    /// # Errors
    /// The database or the chain cannot be asked.
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

fn confirmed(entry: &Entry, newer: u64, asked: u64) -> Option<TxStatus> {
    let block = entry.block.filter(|_| entry.state == EntryState::Included && newer >= asked)?;
    Some(TxStatus::Confirmed { block, confirmations: newer })
}
