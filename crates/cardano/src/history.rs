//! The port to the chain's history: the blocks, and the transactions of an address. The effects of a transaction are
//! read from its bytes ([`Chain::transaction`], [`TransactionUtxos`]).
//!
//! [`Chain::transaction`]: crate::chain::Chain::transaction
//! [`TransactionUtxos`]: crate::tx::TransactionUtxos

use crate::{
    chain::{ChainError, Tip},
    hash::TxHash,
    slots::Millis,
};

/// Position of a transaction on the chain. Sorts in chain order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Height of the block.
    pub height: u64,
    /// Index in the block.
    pub position: u64,
}

/// A transaction that spent from an address or created an output there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressTransaction {
    /// Transaction id.
    pub tx: TxHash,
    /// Position on the chain.
    pub place: Place,
    /// Time of the block, in POSIX milliseconds.
    pub time_ms: Millis,
}

/// The chain's history as seen by a provider.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait History {
    /// Returns the block at this height, or `None` if the provider has none yet.
    async fn block_at(&self, height: u64) -> Result<Option<Tip>, ChainError>;
    /// Returns the first `count` transactions of an address (bech32) in chain order, starting at `from` (inclusive).
    async fn address_transactions(
        &self,
        address: &str,
        from: Option<Place>,
        count: usize,
    ) -> Result<Vec<AddressTransaction>, ChainError>;
}
