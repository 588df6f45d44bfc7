//! Posts the result of a lock (the hash of the delivered content) in its escrow as soon as a node has accepted the
//! lock.
//!
//! ```text
//! lock accepted ──> result built on its output ──> evaluated with that output ──> stored ──> submitted
//! ```
//!
//! Both transactions wait in the mempool and usually share a block, so protection costs no further block. If an action
//! of the buyer is included first, the result is built on the output of that action. Failures are retried by the
//! request within seconds, and by the watcher.

use std::collections::BTreeSet;

use cardano::{
    ContentHash, TxHash, TxRef,
    chain::{Chain, ChainError, Utxo},
    evaluation::Evaluate,
    keys::SigningKey,
    slots::Millis,
    tx::build::{BuiltTx, Wallet},
};
use escrow::{
    Deployment,
    plan::{ChainTime, DraftError, Escrow, Planner, Step},
};
use futures_util::future::join;
use outbox::{
    Attempt, ENTRY, Entry, EntryState, Kind, NewEntry, Next, NoPause, Outbox, OutboxError, RetryPolicy, Sent,
};
use sql::{Database, DatabaseError, Read};

use crate::{
    escrow_steps::{Recorded, StepRecorder, escrow_in, rollbacks},
    escrow_tx,
    platform::PlatformWallet,
    port_error::from_by_way_of,
    transitions,
};

/// Retry policy for posting a result: up to three immediate retries if another transaction spent an input first.
const RETRIES: RetryPolicy<'_, NoPause> = RetryPolicy { sleep: &NoPause, pauses: &[0; 3] };

/// Contract and key with which the platform acts as the seller. The platform is the seller of record of every protected
/// sale.
#[derive(Clone, Copy)]
pub struct Seller<'a> {
    pub deployment: &'a Deployment,
    /// Key that signs results, and whose wallet pays their network fees.
    pub key: &'a SigningKey,
}

/// Reason why no result was posted. The watcher tries again later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The transaction cannot be built, or the ledger rejects it.
    #[error(transparent)]
    Draft(#[from] DraftError),
    #[error("the lock makes no escrow at this contract")]
    NoEscrow,
    #[error("other transactions took the wallet's outputs first")]
    Busy,
    #[error(transparent)]
    Outbox(#[from] OutboxError),
}

from_by_way_of!(PostError, OutboxError: DatabaseError, ChainError);

pub struct ResultPoster<'a, D, C> {
    pub database: &'a D,
    pub chain: &'a C,
    pub seller: Seller<'a>,
    /// The wall clock, POSIX ms.
    pub now: Millis,
    /// Clock for escrow deadlines, POSIX ms.
    pub clock: Millis,
}

/// State of posting the result of one lock, shared by all attempts.
struct ResultIntent<'a, D, C> {
    poster: &'a ResultPoster<'a, D, C>,
    lock: &'a Entry,
    result: ContentHash,
    /// The escrow's output that the last attempt spent; `None` before the first attempt.
    output: Option<TxRef>,
    /// Whether the chain was already asked which transaction spent the escrow. The question is asked only once.
    has_followed: bool,
    /// Whether the evaluation of an attempt failed.
    was_refused: bool,
}

impl<D: Database, C: Chain + Evaluate> ResultPoster<'_, D, C> {
    /// Posts the result of a lock that a node has accepted, unless a result is already pending. Returns the outbox
    /// entry of the result.
    ///
    /// # Errors
    /// Returns the reason why the result could not be posted now.
    pub async fn post(&self, lock: &Entry, result: ContentHash) -> Result<Entry, PostError> {
        let outbox = Outbox { database: self.database, chain: self.chain, hook: &transitions::statements };
        let mut intent =
            ResultIntent { poster: self, lock, result, output: None, has_followed: false, was_refused: false };
        let sent = outbox.send(&RETRIES, self.now, async |attempt| intent.next(attempt).await).await?;
        sent.ok_or(PostError::Busy)
    }

    /// Returns the current escrow of a lock, and the pending transaction that posts its result, if any.
    async fn escrow(&self, lock: &Entry) -> Result<(Escrow, Option<Entry>), PostError> {
        let output: Read<Option<TxRef>> =
            sql::read!("SELECT utxo FROM escrows WHERE purchase_id = ?1 AND utxo IS NOT NULL", lock.tx);
        let (output, result) = self.database.batch((output, live_result(&lock.tx))).await?;
        let cbor = match output {
            Some(output) if output.tx != lock.tx => self.chain.transaction(&output.tx).await?,
            _ => Some(lock.cbor.clone()),
        };
        let escrow = cbor.and_then(|cbor| escrow_in(&cbor, output.as_ref(), self.seller.deployment));
        Ok((escrow.ok_or(PostError::NoEscrow)?, result))
    }

    /// Builds and signs the transaction that posts the result. A single output of the platform's wallet pays for it if
    /// one is large enough. The choice depends on the lock's hash and the attempt, so that concurrent requests rarely
    /// choose the same output.
    async fn build(
        &self,
        lock: &Entry,
        escrow: &Escrow,
        result: ContentHash,
        (wallet, tip_slot): (&PlatformWallet, u64),
        attempt: usize,
    ) -> Result<BuiltTx, DraftError> {
        let planner =
            Planner { deployment: self.seller.deployment, parameters: &wallet.parameters, slots: &api_types::SLOTS };
        let time = ChainTime { tip_slot, now: self.clock };
        let mut plan = escrow_tx::plan(planner, escrow, &Step::SubmitResult(result), time)?;
        if lock.state != EntryState::Included {
            // If the lock expires, the result must not reserve outputs any longer.
            plan.validity.until = plan.validity.until.min(lock.valid_until);
        }
        let from: Vec<Utxo> = match wallet.output_for(&lock.tx, attempt) {
            Some(utxo) => vec![utxo.clone()],
            None => [wallet.utxos.as_slice(), &wallet.unconfirmed].concat(),
        };
        let mut unconfirmed: Vec<Utxo> = match lock.state {
            EntryState::Included => vec![],
            _ => vec![escrow.utxo.clone()],
        };
        unconfirmed.extend(from.iter().filter(|utxo| wallet.unconfirmed.contains(utxo)).cloned());
        let wallet = Wallet { address: wallet.address, utxos: &from, reserved: &BTreeSet::new() };
        escrow_tx::build(planner, self.chain, vec![plan], &wallet, &unconfirmed, &[self.seller.key]).await
    }

    /// Records the transaction that spent the escrow's output `from`, if the chain shows one.
    async fn follow(&self, from: &TxRef) -> Result<(), PostError> {
        let tip = self.chain.tip().await?;
        let rollbacks = Some(self.database.fetch(rollbacks()).await?.0);
        let seller = Some(self.seller.key.enterprise_address());
        let steps = StepRecorder { database: self.database, chain: self.chain, tip, rollbacks, seller };
        steps.follow(from, &mut Recorded::default()).await?;
        Ok(())
    }
}

impl<D: Database, C: Chain + Evaluate> ResultIntent<'_, D, C> {
    /// Asks the chain which other transaction spent the escrow's output, and records that transaction. The next attempt
    /// then spends its output. Returns whether the chain was asked; it is asked at most once.
    async fn follow(&mut self) -> Result<bool, PostError> {
        match self.output {
            Some(output) if !self.has_followed && self.lock.state == EntryState::Included => {
                self.has_followed = true;
                self.poster.follow(&output).await?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    async fn next(&mut self, attempt: Attempt) -> Result<Next<Entry>, PostError> {
        match attempt.sent {
            None => {}
            Some(Sent::Submitted(entry)) => return Ok(Next::Done(entry)),
            Some(Sent::Rejected(..)) if self.follow().await? => return Ok(Next::Retry),
            Some(Sent::Rejected(_, reason)) => return Err(DraftError::Refused(reason).into()),
            Some(Sent::NotRecorded) => return Ok(Next::Retry),
        }
        let (poster, address) = (self.poster, self.poster.seller.key.enterprise_address());
        let reading = async {
            let tip_slot = poster.chain.shared_tip().await?.slot;
            let wallet =
                PlatformWallet::read_shared(poster.database, poster.chain, address, tip_slot, attempt.now).await?;
            Ok::<_, PostError>((tip_slot, wallet))
        };
        let (escrow, read) = join(poster.escrow(self.lock), reading).await;
        let (escrow, pending) = escrow?;
        if let Some(entry) = pending {
            return Ok(Next::Done(entry));
        }
        let output = *self.output.insert(escrow.utxo.reference);
        let (tip_slot, wallet) = read?;
        match poster.build(self.lock, &escrow, self.result, (&wallet, tip_slot), attempt.number).await {
            Ok(built) => {
                let new = NewEntry::built(Kind::Result, purpose(&output), address, &built);
                let new = NewEntry { acts_on: vec![self.lock.tx], ..new };
                Ok(Next::Send(Box::new(new), Box::new(wallet.snapshot)))
            }
            // Another result may have spent the wallet's output since it was read: the next attempt chooses another.
            Err(DraftError::Refused(_)) if !std::mem::replace(&mut self.was_refused, true) => {
                self.follow().await?;
                Ok(Next::Retry)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the outbox purpose that all actions on an escrow's output share. The outbox allows only one open entry per
/// purpose.
pub(crate) fn purpose(escrow: &TxRef) -> String {
    format!("escrow:{escrow}")
}

/// Builds the query that reads the outbox entry of a lock's result, if it is open or included.
pub(crate) fn live_result(lock: &TxHash) -> Read<Option<Entry>> {
    sql::read!(
        "SELECT {ENTRY} FROM outbox_purchases op JOIN outbox ON outbox.tx_id = op.tx_id WHERE op.purchase_id = ?1 \
           AND outbox.kind = 'result' AND outbox.phase <> 'given_up' \
         ORDER BY outbox.state = 'included' DESC, outbox.created_at_ms DESC LIMIT 1",
        lock
    )
}
