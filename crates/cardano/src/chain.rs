//! The port to the chain. `edge` implements it over Blockfrost's HTTP API; tests over the local ledger.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    hash::{ScriptHash, TxHash, TxRef},
    money::Lovelace,
    params::ProtocolParameters,
    slots::Millis,
};

/// The newest block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tip {
    /// Its hash.
    pub hash: TxHash,
    /// Its number.
    pub height: u64,
    /// Its slot.
    pub slot: u64,
    /// Its time, POSIX ms.
    pub time_ms: Millis,
}

/// Policy id and asset name, both lowercase hex, joined without a separator (Blockfrost's `unit`).
pub type AssetUnit = String;

/// What an output holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Value {
    /// Lovelace.
    pub lovelace: Lovelace,
    /// Native tokens; never with a quantity of zero.
    pub assets: BTreeMap<AssetUnit, u64>,
}

/// An output as the chain has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Utxo {
    /// Its name.
    pub reference: TxRef,
    /// Its address, in the chain's own text form: not only ours.
    pub address: String,
    /// What it holds.
    pub value: Value,
    /// Its inline datum's CBOR, if it has one.
    pub inline_datum: Option<Vec<u8>>,
    /// The hash of its datum, if it has one (inline or not).
    pub datum_hash: Option<[u8; 32]>,
    /// The hash of the script it carries, if it does.
    pub reference_script: Option<ScriptHash>,
}

impl Utxo {
    /// Whether it holds lovelace alone and carries no script: to spend it costs its input and nothing more.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.value.assets.is_empty() && self.reference_script.is_none()
    }
}

/// An output of a known transaction, and whether it is still there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedOutput {
    /// The output.
    pub utxo: Utxo,
    /// The transaction that spent it, if one did.
    pub spent_by: Option<TxHash>,
    /// A collateral return output of a transaction whose scripts failed, or the plain outputs of one: not real.
    pub collateral: bool,
}

/// Keeps the tokens of one output after another, as long as they are not too many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FewTokens {
    most: usize,
    held: usize,
}

impl FewTokens {
    pub const fn new(most: usize) -> Self {
        Self { most, held: 0 }
    }

    /// The output; without the tokens that come after the first one too many.
    pub fn of(&mut self, mut output: TracedOutput) -> TracedOutput {
        let assets = &mut output.utxo.value.assets;
        let left = self.most.saturating_add(1).saturating_sub(self.held);
        if assets.len() > left {
            *assets = std::mem::take(assets).into_iter().take(left).collect();
        }
        self.held = self.held.saturating_add(assets.len());
        output
    }
}

/// A transaction in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inclusion {
    /// The block's hash.
    pub block: TxHash,
    /// The block's number.
    pub height: u64,
    /// The block's slot.
    pub slot: u64,
    /// The block's time, POSIX ms.
    pub time_ms: Millis,
    /// Whether its scripts succeeded. A failed one took its collateral and did nothing else.
    pub valid: bool,
}

/// What the provider said to a transaction that we submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submission {
    /// The node took it into its mempool, or already had it.
    Accepted,
    /// The ledger refuses it, with the node's reason (bounded). Resending the same bytes later may still succeed only
    /// if the reason was an input that is not there yet.
    Refused(String),
}

/// Why the chain could not be asked. Never the user's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// No answer in time, a broken connection, or a status of the 5xx kind, after the bounded retries.
    #[error("the chain provider cannot be reached: {0}")]
    Unavailable(String),
    /// The provider limits our rate.
    #[error("the chain provider limits our requests")]
    RateLimited,
    /// An answer that is not of the documented shape, or too large.
    #[error("the chain provider answered nonsense: {0}")]
    Malformed(String),
    /// The newest block is dated so far ahead of the clock that the provider is wrong or lies.
    #[error("the chain provider's newest block is dated {ahead_s} s ahead")]
    FutureBlock {
        /// Seconds between the clock and the block's time.
        ahead_s: u64,
    },
    /// The client used up its share of the provider's calls for now.
    #[error("asked for too often")]
    TooMany,
    /// The answer is longer than this request's remaining budget, because of what others wrote into it. Other answers may
    /// be shorter.
    #[error("an answer is too long for what is left of this request")]
    TooLong,
    /// This request's budget of outside calls is used up.
    #[error("this request needs more outside calls than it may make")]
    BudgetExhausted,
    /// This request's time is over: the provider was not asked.
    #[error("this request's time is over")]
    TimeOver,
}

/// The chain, as a provider tells it. Every call is bounded in time and retried where that is safe.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait Chain {
    /// The newest block.
    async fn tip(&self) -> Result<Tip, ChainError>;
    /// The newest block, or the one that was the newest at most two seconds ago: for what a block more or less does not
    /// change.
    async fn recent_tip(&self) -> Result<Tip, ChainError> {
        self.tip().await
    }
    /// The parameters of the current epoch; those that are read anew every ten minutes, and in every epoch.
    async fn protocol_parameters(&self) -> Result<ProtocolParameters, ChainError>;
    /// The outputs of a transaction that is in a block; `None` where the provider does not know it.
    async fn outputs_of(&self, tx: &TxHash) -> Result<Option<Vec<TracedOutput>>, ChainError>;
    /// Those of its outputs that are named: what the others hold is not kept. From where the tokens of these are more than
    /// `most_tokens` on, tokens are missing.
    async fn outputs_among(
        &self,
        tx: &TxHash,
        named: &BTreeSet<TxRef>,
        most_tokens: usize,
    ) -> Result<Option<Vec<TracedOutput>>, ChainError> {
        let outputs = self.outputs_of(tx).await?;
        Ok(outputs.map(|outputs| {
            let mut few = FewTokens::new(most_tokens);
            let named = outputs.into_iter().filter(|output| named.contains(&output.utxo.reference));
            named.map(|output| few.of(output)).collect()
        }))
    }
    /// The bytes of a transaction that is in a block, of which the id is the hash of the body; `None` where the provider
    /// does not know it.
    async fn transaction(&self, tx: &TxHash) -> Result<Option<Vec<u8>>, ChainError>;
    /// Whether the provider's node has a transaction in its mempool. `false` says little: others may have it.
    async fn in_mempool(&self, tx: &TxHash) -> Result<bool, ChainError>;
    /// Where a transaction is on the chain; `None` where it is in no block.
    async fn inclusion_of(&self, tx: &TxHash) -> Result<Option<Inclusion>, ChainError>;
    /// The unspent outputs at an address (bech32), read from both ends, oldest and newest, as strangers may fill one.
    /// Reading stops when `enough` says so, at the end, or at the adapter's bound. Of outputs with very many tokens
    /// those that hold the least beside them may be missing.
    async fn utxos_at(&self, address: &str, enough: impl Fn(&[Utxo]) -> bool) -> Result<Vec<Utxo>, ChainError>;
    /// One output, and what spent it; `None` where the provider knows of none such.
    async fn output(&self, reference: &TxRef) -> Result<Option<TracedOutput>, ChainError> {
        let outputs = self.outputs_of(&reference.tx).await?.unwrap_or_default();
        Ok(outputs.into_iter().find(|output| output.utxo.reference == *reference))
    }
    /// What an address (bech32) holds in lovelace, in one call.
    async fn balance_of(&self, address: &str) -> Result<Lovelace, ChainError>;
    /// Hands a signed transaction to the network. Not retried by the adapter after an unknown outcome.
    async fn submit(&self, cbor: &[u8]) -> Result<Submission, ChainError>;
}
