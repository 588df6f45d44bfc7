//! The port to the chain's past: which blocks there are, and which transactions an address was part of. What each did is
//! read from its bytes ([`Chain::transaction`], [`TransactionUtxos`]).
//!
//! [`Chain::transaction`]: crate::chain::Chain::transaction
//! [`TransactionUtxos`]: crate::tx::TransactionUtxos

use crate::{
    chain::{ChainError, Tip},
    hash::TxHash,
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

/// A transaction in a block that spent from an address, or made an output there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressTransaction {
    /// The transaction.
    pub tx: TxHash,
    /// Where it is.
    pub place: Place,
    /// Its block's time, POSIX ms.
    pub time_ms: Millis,
}

/// The chain's past, as a provider tells it.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait History {
    /// The block at this height; `None` where the provider has none yet.
    async fn block_at(&self, height: u64) -> Result<Option<Tip>, ChainError>;
    /// The first `count` transactions of an address (bech32) from a place on, in the chain's order.
    async fn address_transactions(
        &self,
        address: &str,
        from: Option<Place>,
        count: usize,
    ) -> Result<Vec<AddressTransaction>, ChainError>;
}
