//! The port to the chain's history: a trait for reading blocks by height, and the transactions of an address. The
//! effects of a transaction are read from its bytes ([`Chain::transaction`], [`TransactionUtxos`]).
//!
//! [`Chain::transaction`]: crate::chain::Chain::transaction
//! [`TransactionUtxos`]: crate::tx::TransactionUtxos

use crate::{
    chain::{ChainError, Tip},
    hash::TxHash,
    slots::Millis,
};

/// Position of a transaction on the chain. Positions compare in chain order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Height of the block that includes the transaction.
    pub height: u64,
    /// Index of the transaction in its block.
    pub position: u64,
}

/// A transaction that spent an output at an address or created one there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressTransaction {
    /// Transaction id.
    pub tx: TxHash,
    /// Position of the transaction on the chain.
    pub place: Place,
    /// Time of the including block, in POSIX milliseconds.
    pub time_ms: Millis,
}

/// Maximum number of blocks that one call of [`History::blocks_before`] can request: Blockfrost's limit.
pub const MAX_BLOCKS: usize = 100;

/// The chain's history as a provider shows it.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait History {
    /// Returns the block at this height, or `None` if the provider knows no block at this height yet.
    async fn block_at(&self, height: u64) -> Result<Option<Tip>, ChainError>;
    /// Returns the `count` blocks (at most [`MAX_BLOCKS`]) that precede a block on its chain, or `None` if the provider
    /// does not know that block. The order is unspecified, and a provider may omit blocks.
    async fn blocks_before(&self, block: &TxHash, count: usize) -> Result<Option<Vec<Tip>>, ChainError>;
    /// Returns up to `count` transactions of an address (bech32) in chain order, beginning at the position `from`
    /// (inclusive), or at the first transaction if `from` is `None`.
    async fn address_transactions(
        &self,
        address: &str,
        from: Option<Place>,
        count: usize,
    ) -> Result<Vec<AddressTransaction>, ChainError>;
}
