//! Sends a transaction of a service wallet: builds it, records it with its inputs reserved, submits it, and retries.
//!
//! ```text
//! intent ── Send ──> record, reserve the inputs ──> submit ──┐
//!   ^  │ Retry: pause                                        │ not recorded, submitted or rejected
//!   └──┴<────────────────────────────────────────────────────┘ until the intent is Done
//! ```
//!
//! The caller passes an *intent*: a function that returns the transaction to send, and decides what to do after a
//! conflict or a rejection. The number of attempts and the pauses between them are a [`RetryPolicy`].

use cardano::{chain::Chain, slots::Millis};
use sql::{Database, DatabaseError};

use crate::{
    drive::{Outbox, Sleep},
    entry::{Entry, NewEntry},
    statements::write_down,
    wallet::WalletSnapshot,
};

/// The pauses between attempts to send a transaction.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy<'a, Z> {
    pub sleep: &'a Z,
    /// Milliseconds to wait before each further attempt. The number of pauses is the number of further attempts.
    pub pauses: &'a [Millis],
}

/// A [`Sleep`] that returns at once, for retry policies without pauses.
#[derive(Clone, Copy, Debug)]
pub struct NoPause;

impl Sleep for NoPause {
    async fn sleep(&self, _: Millis) {}
}

/// An attempt to send a transaction. [`Outbox::send`] passes it to the caller's function that builds the transaction.
#[derive(Debug)]
pub struct Attempt {
    /// Number of attempts before this one.
    pub number: usize,
    /// Wall clock in POSIX milliseconds.
    pub now: Millis,
    /// Outcome of the transaction that this attempt has sent; `None` until this attempt has sent one.
    pub sent: Option<Sent>,
}

/// The next step that the caller's function chooses in [`Outbox::send`].
#[derive(Debug)]
pub enum Next<T> {
    /// Record and submit this transaction, which was built from this wallet. The caller's function is then called again
    /// with the outcome.
    Send(Box<NewEntry>, Box<WalletSnapshot>),
    /// Submit this transaction, which the caller's function has already recorded.
    Submit(Box<Entry>, Box<WalletSnapshot>),
    /// Begin another attempt after the policy's next pause.
    Retry,
    /// Stop, and return this result.
    Done(T),
}

/// The outcome of recording and submitting a transaction.
#[derive(Debug)]
pub enum Sent {
    /// Submitted: a node accepted it, or no answer is known.
    Submitted(Entry),
    /// Rejected by the ledger. Contains the ledger's reason. The entry is now refused, or still open if a node may have
    /// accepted the transaction at an earlier attempt.
    Rejected(Entry, String),
    /// The transaction was not recorded: another entry has the same purpose or has reserved one of the outputs, or its
    /// [`Guard`](crate::Guard) failed.
    NotRecorded,
}

impl<D: Database, C: Chain> Outbox<'_, D, C> {
    /// Sends the transactions that the function `intent` returns. Ends when `intent` returns [`Next::Done`], and
    /// returns its result. Returns `None` if the policy's attempts are used up before.
    ///
    /// # Errors
    /// Returns the error of `intent`. A transaction that was recorded stays recorded.
    pub async fn send<T, E: From<DatabaseError>, Z: Sleep>(
        &self,
        policy: &RetryPolicy<'_, Z>,
        now: Millis,
        mut intent: impl AsyncFnMut(Attempt) -> Result<Next<T>, E>,
    ) -> Result<Option<T>, E> {
        let (mut number, mut now, mut sent) = (0_usize, now, None);
        let mut pauses = policy.pauses.iter();
        loop {
            sent = match intent(Attempt { number, now, sent }).await? {
                Next::Done(output) => return Ok(Some(output)),
                Next::Send(new, wallet) => Some(self.send_once(&new, &wallet, now).await?),
                Next::Submit(entry, wallet) => Some(self.sent(*entry, &wallet, now).await?),
                Next::Retry => {
                    let Some(pause) = pauses.next() else { return Ok(None) };
                    policy.sleep.sleep(*pause).await;
                    (number, now) = (number.saturating_add(1), now.saturating_add(*pause));
                    None
                }
            };
        }
    }

    /// Records a transaction with its inputs reserved, and submits it.
    ///
    /// # Errors
    /// Returns [`DatabaseError`] if the database is unavailable. If the provider does not answer, the entry stays open.
    pub async fn send_once(&self, new: &NewEntry, wallet: &WalletSnapshot, now: Millis) -> Result<Sent, DatabaseError> {
        match self.database.execute(write_down(new, now)).await? {
            Some(entry) => self.sent(entry, wallet, now).await,
            None => Ok(Sent::NotRecorded),
        }
    }

    async fn sent(&self, mut entry: Entry, wallet: &WalletSnapshot, now: Millis) -> Result<Sent, DatabaseError> {
        Ok(match self.submit_first(&mut entry, Some(wallet), now).await? {
            Some(reason) => Sent::Rejected(entry, reason),
            None => Sent::Submitted(entry),
        })
    }
}
