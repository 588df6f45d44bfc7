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

/// The pauses between the attempts of an intent.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy<'a, Z> {
    pub sleep: &'a Z,
    /// Milliseconds to wait before each further attempt. Its length is the number of further attempts.
    pub pauses: &'a [Millis],
}

/// A [`Sleep`] for policies without pauses: returns at once.
#[derive(Clone, Copy, Debug)]
pub struct NoPause;

impl Sleep for NoPause {
    async fn sleep(&self, _: Millis) {}
}

/// One attempt of an intent.
#[derive(Debug)]
pub struct Attempt {
    /// Number of attempts of this intent before this one.
    pub number: usize,
    /// The wall clock, POSIX ms.
    pub now: Millis,
    /// The transaction of this attempt, once the intent has sent one.
    pub sent: Option<Sent>,
}

/// The next thing to do for an intent.
#[derive(Debug)]
pub enum Next<T> {
    /// Record and submit this transaction, built from this wallet. The intent is then called again with the outcome.
    Send(Box<NewEntry>, Box<WalletSnapshot>),
    /// Submit this transaction, which the intent has recorded together with what it pays for.
    Submit(Box<Entry>, Box<WalletSnapshot>),
    /// Make another attempt after the policy's next pause.
    Retry,
    /// Nothing more: the intent has ended with this result.
    Done(T),
}

/// The outcome of recording and submitting a transaction.
#[derive(Debug)]
pub enum Sent {
    /// Submitted: a node accepted it, or no answer is known.
    Submitted(Entry),
    /// Rejected by the ledger, for this reason. The entry is refused, or still open if the rejection proves nothing.
    Rejected(Entry, String),
    /// Not recorded: another entry has the same purpose or has reserved one of the outputs, or the transaction's
    /// [`Guard`](crate::Guard) failed.
    NotRecorded,
}

impl<D: Database, C: Chain> Outbox<'_, D, C> {
    /// Calls an intent and sends its transactions until it ends, and returns its result. Returns `None` if the policy
    /// allows no further attempt before that.
    ///
    /// # Errors
    /// Returns the intent's error. A transaction that was recorded stays recorded.
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
    /// Returns [`DatabaseError`] if the database cannot be asked. If the chain does not answer, the entry stays
    /// claimed.
    pub async fn send_once(&self, new: &NewEntry, wallet: &WalletSnapshot, now: Millis) -> Result<Sent, DatabaseError> {
        match Entry::first(&self.database.run(write_down(new, now)).await?)? {
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
