//! The port to the chain: a trait for reading the chain and submitting transactions.
//! [`blockfrost::Client`](crate::blockfrost::Client) implements it over any HTTP library.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    hash::{ScriptHash, TxHash, TxRef},
    money::Lovelace,
    params::ProtocolParameters,
    slots::Millis,
};

/// The newest block of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tip {
    /// Block hash.
    pub hash: TxHash,
    /// Block height.
    pub height: u64,
    /// Slot of the block.
    pub slot: u64,
    /// Time of the block, in POSIX milliseconds.
    pub time_ms: Millis,
}

/// Policy id and asset name in lowercase hex, joined without a separator (Blockfrost's `unit`).
pub type AssetUnit = String;

/// The value of a transaction output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Value {
    /// Amount of lovelace.
    pub lovelace: Lovelace,
    /// Quantities of native tokens by unit; never zero.
    pub assets: BTreeMap<AssetUnit, u64>,
}

/// A transaction output on the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Utxo {
    /// Reference of the output.
    pub reference: TxRef,
    /// Address in its usual text form: bech32, or base58 for Byron addresses.
    pub address: String,
    /// Value of the output.
    pub value: Value,
    /// CBOR of the inline datum; `None` if the output has none.
    pub inline_datum: Option<Vec<u8>>,
    /// Hash of the datum, whether it is inline or not; `None` if the output has no datum.
    pub datum_hash: Option<[u8; 32]>,
    /// Hash of the reference script; `None` if the output carries none.
    pub reference_script: Option<ScriptHash>,
}

impl Utxo {
    /// Returns `true` if the output holds no tokens and carries no reference script. Spending such an output adds only
    /// the cost of one input to the fee.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.value.assets.is_empty() && self.reference_script.is_none()
    }
}

/// An output of an included transaction, with its spending status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedOutput {
    /// The output.
    pub utxo: Utxo,
    /// Transaction that spent the output; `None` if it is unspent.
    pub spent_by: Option<TxHash>,
    /// `true` if the provider lists the output although it does not exist on the ledger. This happens to the collateral
    /// return if the transaction's scripts succeeded, and to regular outputs if they failed.
    pub not_on_ledger: bool,
}

/// Limit on the total number of tokens in a series of outputs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenLimit {
    most: usize,
    held: usize,
}

impl TokenLimit {
    pub const fn new(most: usize) -> Self {
        Self { most, held: 0 }
    }

    /// Removes the tokens beyond the limit, but keeps one of them so that the caller can see that the limit was
    /// exceeded.
    pub fn truncate(&mut self, mut output: TracedOutput) -> TracedOutput {
        let assets = &mut output.utxo.value.assets;
        let left = self.most.saturating_add(1).saturating_sub(self.held);
        if assets.len() > left {
            *assets = std::mem::take(assets).into_iter().take(left).collect();
        }
        self.held = self.held.saturating_add(assets.len());
        output
    }
}

/// The block that includes a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inclusion {
    /// Block hash.
    pub block: TxHash,
    /// Block height.
    pub height: u64,
    /// Slot of the block.
    pub slot: u64,
    /// Time of the block, in POSIX milliseconds.
    pub time_ms: Millis,
    /// `true` if the transaction's scripts succeeded. Otherwise the ledger took its collateral and the transaction had
    /// no other effect.
    pub valid: bool,
}

/// The provider's response to a submitted transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submission {
    /// A node accepted the transaction into its mempool, or already had it there.
    Accepted,
    /// The ledger rejected the transaction, with the node's reason (truncated). A retry with the same bytes can succeed
    /// only if an input did not exist yet.
    Refused(String),
}

/// Reason why the chain could not be read or used. The user is never at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// The provider did not answer in time, the connection broke, or the answer had an error status such as 500.
    #[error("the chain provider cannot be reached: {0}")]
    Unavailable(String),
    /// The provider throttles our requests.
    #[error("the chain provider limits our requests")]
    RateLimited,
    /// The provider rejects our credentials with this status, and will do so until they are replaced.
    #[error("the chain provider refuses our project id (status {0})")]
    Forbidden(u16),
    /// The provider's daily quota for our project is used up.
    #[error("the daily quota of our project at the chain provider is used up (status 402)")]
    QuotaUsedUp,
    /// The provider's response is too large or does not have the documented shape.
    #[error("the chain provider returned an unexpected answer: {0}")]
    Malformed(String),
    /// The newest block's time is so far ahead of our clock that the provider's data must be wrong.
    #[error("the chain provider's newest block is dated {ahead_s} s ahead")]
    FutureBlock {
        /// Seconds by which the block's time is ahead of the clock.
        ahead_s: u64,
    },
    /// The client that sent the request has reached its rate limit for calls to the provider.
    #[error("too many calls to the chain provider: try again in some seconds")]
    ClientRateLimited,
    /// The provider's response is longer than the limit for this request. Anyone can cause this by writing a lot of
    /// data to the chain.
    #[error("the chain provider's answer is too long to be read within this request")]
    TooLong,
    /// This request has made the maximum number of calls to the provider, so no further call was made.
    #[error("this request needs more calls to the chain provider than it may make")]
    BudgetExhausted,
    /// This request's deadline has passed, so the provider was not called.
    #[error("this request ran out of time")]
    TimeOver,
}

impl ChainError {
    /// Returns `true` if a submission that failed with this error certainly never reached a node.
    #[must_use]
    pub const fn was_not_sent(&self) -> bool {
        matches!(
            self,
            Self::RateLimited | Self::Forbidden(_) | Self::QuotaUsedUp | Self::BudgetExhausted | Self::TimeOver
        )
    }

    /// Returns `true` if the provider currently rejects all our calls, whatever they ask for.
    #[must_use]
    pub const fn rejects_all_calls(&self) -> bool {
        matches!(self, Self::RateLimited | Self::Forbidden(_) | Self::QuotaUsedUp)
    }
}

/// The chain as a provider shows it. Every call has a timeout. Implementations may retry reads, but not submissions.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait Chain {
    /// Returns the newest block.
    async fn tip(&self) -> Result<Tip, ChainError>;
    /// Returns the newest block, possibly from a cache that is at most two seconds old.
    async fn recent_tip(&self) -> Result<Tip, ChainError> {
        self.tip().await
    }
    /// Returns the newest block for a caller that waits for new blocks. Callers that wait at the same time may share
    /// one response of the provider, which is at most two seconds old.
    async fn shared_tip(&self) -> Result<Tip, ChainError> {
        self.recent_tip().await
    }
    /// Returns the newest block that this client has read so far, without calling the provider. `None` if it has read
    /// none.
    fn last_read_tip(&self) -> Option<Tip> {
        None
    }
    /// Looks a transaction up in the provider's list of a block's transactions, and returns whether the block includes
    /// it. Callers share a cached list. `None` if the provider gives no complete list.
    async fn block_includes(&self, _tx: &TxHash, _block: &Tip) -> Result<Option<bool>, ChainError> {
        Ok(None)
    }
    /// Returns the newest block that this client has read, if that block includes the transaction. Looks only at the
    /// list that [`Chain::block_includes`] has cached and makes no call to the provider, so `None` does not mean that
    /// no block includes the transaction.
    fn cached_tip_with(&self, _tx: &TxHash) -> Option<Tip> {
        None
    }
    /// Returns the protocol parameters of the current epoch. They may come from a cache that is at most ten minutes
    /// old.
    async fn protocol_parameters(&self) -> Result<ProtocolParameters, ChainError>;
    /// Returns the outputs of an included transaction, or `None` if the provider does not know the transaction.
    async fn outputs_of(&self, tx: &TxHash) -> Result<Option<Vec<TracedOutput>>, ChainError>;
    /// Returns the outputs of an included transaction that are in `named`, without holding its other outputs in memory.
    /// Beyond a total of `most_tokens` tokens, only one more token is returned, which tells the caller that there are
    /// too many. Returns `None` if the provider does not know the transaction.
    async fn outputs_among(
        &self,
        tx: &TxHash,
        named: &BTreeSet<TxRef>,
        most_tokens: usize,
    ) -> Result<Option<Vec<TracedOutput>>, ChainError> {
        let outputs = self.outputs_of(tx).await?;
        Ok(outputs.map(|outputs| {
            let mut few = TokenLimit::new(most_tokens);
            let named = outputs.into_iter().filter(|output| named.contains(&output.utxo.reference));
            named.map(|output| few.truncate(output)).collect()
        }))
    }
    /// Returns the bytes of an included transaction, checked against its id. `None` if the provider does not know it.
    async fn transaction(&self, tx: &TxHash) -> Result<Option<Vec<u8>>, ChainError>;
    /// Returns whether the provider's node has the transaction in its mempool. If not, another node may still have it.
    async fn in_mempool(&self, tx: &TxHash) -> Result<bool, ChainError>;
    /// Returns the block that includes a transaction, or `None` if no block does.
    async fn inclusion_of(&self, tx: &TxHash) -> Result<Option<Inclusion>, ChainError>;
    /// Returns the block that includes a valid transaction, with the number of newer blocks, or `None` if no block
    /// does. The newest block is read first, so the number is never too high.
    async fn depth_of(&self, tx: &TxHash) -> Result<Option<(Inclusion, u64)>, ChainError> {
        let tip = self.tip().await?;
        let shown = self.inclusion_of(tx).await?.filter(|block| block.valid);
        Ok(shown.map(|block| (block, tip.height.saturating_sub(block.height))))
    }
    /// Returns the unspent outputs at an address (bech32).
    ///
    /// Outputs are read from both ends of the list, oldest and newest, because strangers may fill one end. Reading
    /// stops when `enough` returns `true` for the outputs read so far, at the end of the list, or at the adapter's
    /// limit. Outputs with very many tokens and little lovelace may be missing.
    async fn utxos_at(&self, address: &str, enough: impl Fn(&[Utxo]) -> bool) -> Result<Vec<Utxo>, ChainError>;
    /// Returns the unspent outputs at an address like [`Chain::utxos_at`], possibly from a cache that callers share
    /// until there is a new block. Outputs that the newest transactions created may be missing, and outputs that they
    /// spent may still be returned.
    async fn shared_utxos_at(&self, address: &str, enough: impl Fn(&[Utxo]) -> bool) -> Result<Vec<Utxo>, ChainError> {
        self.utxos_at(address, enough).await
    }
    /// Returns one output with its spending status, or `None` if the provider does not know it.
    async fn output(&self, reference: &TxRef) -> Result<Option<TracedOutput>, ChainError> {
        let outputs = self.outputs_of(&reference.tx).await?.unwrap_or_default();
        Ok(outputs.into_iter().find(|output| output.utxo.reference == *reference))
    }
    /// Returns the total lovelace at an address (bech32). An implementation that adds up the outputs leaves out any
    /// outputs that [`Chain::utxos_at`] does not return.
    async fn balance_of(&self, address: &str) -> Result<Lovelace, ChainError>;
    /// Submits a signed transaction. The adapter does not retry if the outcome is unknown.
    async fn submit(&self, cbor: &[u8]) -> Result<Submission, ChainError>;
}
