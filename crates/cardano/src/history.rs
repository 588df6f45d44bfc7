//! The port to the chain's past: which transactions touched an address, what they spent and made, which blocks there are.

use crate::{
    chain::{ChainError, Tip, Utxo},
    hash::{TxHash, TxRef},
    slots::Millis,
};

/// A transaction's place on the chain, in the chain's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The number of its block.
    pub height: u64,
    /// Its place in that block.
    pub position: u64,
}

/// A transaction that touched an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The transaction.
    pub tx: TxHash,
    /// Where it is.
    pub place: Place,
    /// Its block's time, POSIX ms.
    pub time_ms: Millis,
}

/// What a transaction did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// What it spent.
    pub spent: Vec<TxRef>,
    /// What it made, in order.
    pub made: Vec<Utxo>,
}

/// The chain's past, as a provider tells it.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait History {
    /// The block at this height; `None` where the provider has none yet.
    async fn block_at(&self, height: u64) -> Result<Option<Tip>, ChainError>;
    /// The first `count` transactions of an address (bech32) from a place on, in the chain's order.
    async fn touches(&self, address: &str, from: Option<Place>, count: usize) -> Result<Vec<Touch>, ChainError>;
    /// What a transaction in a block spent and made, if its scripts succeeded (which [`Inclusion`] tells); `None` where
    /// the provider does not know it.
    ///
    /// [`Inclusion`]: crate::chain::Inclusion
    async fn effects_of(&self, tx: &TxHash) -> Result<Option<Effects>, ChainError>;
}
