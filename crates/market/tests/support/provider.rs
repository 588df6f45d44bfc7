//! A provider on the chain in memory whose index has no mempool, lags, and treats submissions as told.

use std::{cell::Cell, future::pending};

use cardano::{
    Lovelace, TxHash,
    chain::{Chain, ChainError, Inclusion, Submission, Tip, TracedOutput, Utxo},
    evaluation::{Evaluate, Evaluation},
    params::ProtocolParameters,
};
use outbox::Sleep;

use super::ledger::Ledger;

/// The outcome of a submission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SubmitOutcome {
    /// The node's answer arrives.
    Answered,
    /// The provider rejects it temporarily, and no node sees it.
    Limited,
    /// The request times out, and no node sees it.
    Late,
    /// The answer is lost.
    Lost,
    /// The provider rejects it, but relays it.
    Denied,
    /// The answer never arrives.
    Outstanding,
    /// The process is killed before anything is sent.
    Unsent,
}

/// A provider whose index has no mempool.
pub struct Provider {
    pub ledger: Ledger,
    pub submit_outcome: Cell<SubmitOutcome>,
    /// Whether the provider does not show recent blocks, except for the newest one.
    pub lags: Cell<bool>,
    /// Whether the provider shows the transactions in the mempool.
    pub shows_mempool: Cell<bool>,
    /// Whether looking up blocks exceeds the client's rate limit.
    pub used_up: Cell<bool>,
    /// Number of calls that looked up the block of a transaction.
    pub lookups: Cell<u32>,
    /// Whether the provider lists the transactions in a block.
    pub lists: Cell<bool>,
    /// Newest block that was read.
    newest: Cell<Option<Tip>>,
}

impl Provider {
    pub const fn new(ledger: Ledger) -> Self {
        let (lags, shows_mempool, used_up) = (Cell::new(false), Cell::new(false), Cell::new(false));
        let (submit_outcome, lookups) = (Cell::new(SubmitOutcome::Answered), Cell::new(0));
        let (lists, newest) = (Cell::new(false), Cell::new(None));
        Self { ledger, submit_outcome, lags, shows_mempool, used_up, lookups, lists, newest }
    }

    fn is_in(&self, tx: &TxHash, block: &Tip) -> bool {
        let blocks = self.ledger.blocks.borrow();
        blocks.iter().filter(|known| known.tip == *block).any(|known| known.txs.iter().any(|known| known.id == *tx))
    }
}

impl Chain for Provider {
    async fn tip(&self) -> Result<Tip, ChainError> {
        let tip = Chain::tip(&self.ledger).await?;
        self.newest.set(Some(tip));
        Ok(tip)
    }
    fn last_read_tip(&self) -> Option<Tip> {
        self.newest.get()
    }
    async fn block_includes(&self, tx: &TxHash, block: &Tip) -> Result<Option<bool>, ChainError> {
        Ok(self.lists.get().then(|| self.is_in(tx, block)))
    }
    fn cached_tip_with(&self, tx: &TxHash) -> Option<Tip> {
        self.newest.get().filter(|tip| self.lists.get() && self.is_in(tx, tip))
    }
    async fn protocol_parameters(&self) -> Result<ProtocolParameters, ChainError> {
        self.ledger.protocol_parameters().await
    }
    async fn outputs_of(&self, tx: &TxHash) -> Result<Option<Vec<TracedOutput>>, ChainError> {
        self.ledger.outputs_of(tx).await
    }
    async fn transaction(&self, tx: &TxHash) -> Result<Option<Vec<u8>>, ChainError> {
        self.ledger.transaction(tx).await
    }
    async fn in_mempool(&self, tx: &TxHash) -> Result<bool, ChainError> {
        Ok(self.shows_mempool.get() && self.ledger.in_mempool(tx).await?)
    }
    async fn inclusion_of(&self, tx: &TxHash) -> Result<Option<Inclusion>, ChainError> {
        self.lookups.set(self.lookups.get().saturating_add(1));
        if self.used_up.get() {
            return Err(ChainError::ClientRateLimited);
        }
        self.ledger.inclusion_of(tx).await.map(|found| found.filter(|_| !self.lags.get()))
    }
    async fn utxos_at(&self, address: &str, enough: impl Fn(&[Utxo]) -> bool) -> Result<Vec<Utxo>, ChainError> {
        self.ledger.utxos_at(address, enough).await
    }
    async fn balance_of(&self, address: &str) -> Result<Lovelace, ChainError> {
        self.ledger.balance_of(address).await
    }
    async fn submit(&self, cbor: &[u8]) -> Result<Submission, ChainError> {
        match self.submit_outcome.get() {
            SubmitOutcome::Limited => return Err(ChainError::RateLimited),
            SubmitOutcome::Late => return Err(ChainError::TimeOver),
            SubmitOutcome::Unsent => pending().await,
            SubmitOutcome::Answered | SubmitOutcome::Lost | SubmitOutcome::Denied | SubmitOutcome::Outstanding => {}
        }
        let answer = self.ledger.submit(cbor).await;
        match self.submit_outcome.get() {
            SubmitOutcome::Lost => Err(ChainError::Unavailable("no answer".into())),
            SubmitOutcome::Denied => Ok(Submission::Refused("no".into())),
            // Until the test lets it arrive.
            SubmitOutcome::Outstanding => {
                futures_lite::future::poll_fn(|_| match self.submit_outcome.get() {
                    SubmitOutcome::Outstanding => std::task::Poll::Pending,
                    _ => std::task::Poll::Ready(()),
                })
                .await;
                answer
            }
            _ => answer,
        }
    }
}

impl Evaluate for Provider {
    async fn evaluate_chained(&self, cbor: &[u8], unconfirmed: &[Utxo]) -> Result<Evaluation, ChainError> {
        self.ledger.evaluate_chained(cbor, unconfirmed).await
    }
}

/// Events while a request waits.
pub struct Meanwhile<'a>(pub &'a dyn Fn());

impl Sleep for Meanwhile<'_> {
    async fn sleep(&self, _: u64) {
        (self.0)();
    }
}
