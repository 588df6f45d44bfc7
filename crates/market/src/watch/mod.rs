//! The watcher: brings every escrow to its end.
//!
//! ```text
//! tick:  what is stored ─> newest block ─> rollback? undo ─> new transactions of the escrow address ─> steps
//!        ─> our own transactions: confirmed, sent again, expired ─> escrows that are due: decide, act
//! ```
//!
//! Every change of a purchase follows from what the chain shows; every action is written down before it is sent. A tick
//! may be killed at any point, and two may run at once: what one leaves undone the next one does.

pub mod act;
mod confirm;
pub mod decide;
mod due;
mod housekeeping;
mod index;
mod payments;
mod reading;
mod rollback;
mod watched;

use cardano::{
    ContentHash, TxRef,
    chain::{Chain, ChainError},
    evaluation::Evaluate,
    history::History,
    slots::Millis,
};
use escrow::Deployment;
use sql::{Database, DatabaseError};

use crate::chain_state;
use act::Keys;
pub use due::Holder;
use reading::Reading;

/// Outside calls that reading the chain leaves for confirming and acting.
const CALLS_KEPT: u32 = 16;
/// Outside calls that are left for acting, whatever else there is to ask: for an action on two escrows.
const CALLS_TO_ACT: u32 = 8;

/// Why a tick ended early. What it wrote stays; the next goes on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TickError {
    /// The database cannot be asked, or another tick was first.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The chain cannot be asked.
    #[error(transparent)]
    Chain(#[from] ChainError),
}

/// What one tick did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Transactions of the escrow address that were read.
    pub read: usize,
    /// Steps of escrows that they made.
    pub steps: usize,
    /// Whether a rollback was undone.
    pub rolled_back: bool,
    /// Transactions of ours that were found in a block.
    pub confirmed: usize,
    /// Actions that were sent: what, and for which purchase.
    pub acted: Vec<String>,
    /// What else is worth knowing, in words, for the log.
    pub notes: Vec<String>,
}

/// A dispute to be settled.
#[derive(Clone, Copy, Debug)]
pub struct Dispute<'a> {
    /// The disputed escrow.
    pub escrow: TxRef,
    /// What was sold.
    pub listing_id: &'a str,
    /// The listing's content hash.
    pub content_hash: ContentHash,
    /// What was delivered.
    pub output: &'a str,
}

/// The port to the arbiter.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait Arbiter {
    /// Asks for a settlement. What the arbiter said, in words for the log; the chain tells what came of it.
    ///
    /// # Errors
    /// In words for the log.
    async fn resolve(&self, dispute: &Dispute<'_>) -> Result<String, String>;
}

/// One tick's view of the world.
pub struct Watch<'a, D, C> {
    /// The database.
    pub database: &'a D,
    /// The chain.
    pub chain: &'a C,
    /// The escrow of protected sales, where one is deployed.
    pub deployment: Option<&'a Deployment>,
    /// Whether to act as the seller of record: to post results and to collect.
    pub sells: bool,
    /// The wall clock, POSIX ms.
    pub now: Millis,
    /// How many outside calls are left.
    pub calls_left: &'a dyn Fn() -> u32,
}

impl<D: Database, C: Chain + History + Evaluate> Watch<'_, D, C> {
    /// Reads what is new and does what is due, as far as the calls reach.
    ///
    /// # Errors
    /// What could not be asked.
    pub async fn tick(&self, keys: &impl Keys, arbiter: &impl Arbiter) -> Result<Report, TickError> {
        let mut report = Report::default();
        let mut reading = Reading::load(self.database).await?;
        let tip = self.chain.tip().await?;
        if !self.still_there(&mut reading, &tip, &mut report).await? {
            return Ok(report);
        }
        self.doubt_unseen(&mut reading, &tip, &mut report).await?;
        self.ask_again(&reading).await?;
        let news = reading.behind || reading.newest.is_none_or(|known| known.hash != tip.hash);
        let behind = match self.deployment {
            Some(deployment) if news => !self.read_new(deployment, &tip, &mut reading, &mut report).await?,
            _ => false,
        };
        self.confirm(&reading, &tip, &mut report).await?;
        let clock = self.now.max(tip.time_ms);
        let seller = keys.seller().filter(|_| self.sells).map(|key| key.enterprise_address().to_string());
        let [again, noted] = due::acts_as(&seller.unwrap_or_default());
        let mut last = vec![
            again,
            noted,
            due::due(clock, (self.calls_left)()),
            due::owed(),
            chain_state::note(&tip),
            reading::note_block(&tip),
        ];
        if behind != reading.behind {
            last.push(reading.note_behind(behind));
        }
        last.extend(housekeeping::statements(self.now, &tip));
        let done = self.database.batch(last).await?;
        let [_, _, due, owed, ..] = done.as_slice() else {
            return Err(DatabaseError("a batch answered too little".into()).into());
        };
        if let Some(deployment) = self.deployment {
            let work = (due.all_json()?, owed.all_json()?);
            self.act(deployment, keys, arbiter, &tip, work, &mut report).await?;
        }
        Ok(report)
    }
}
