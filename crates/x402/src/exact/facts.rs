//! Everything that judging a payment needs from the chain, read before anything is judged.

use std::collections::BTreeMap;

use cardano::{
    TxHash, TxRef,
    chain::{Chain, ChainError, Tip, TracedOutput, Utxo},
    params::ProtocolParameters,
};
use futures_util::{
    future::try_join3,
    stream::{self, StreamExt, TryStreamExt},
};
use serde::{Deserialize, Serialize};

use super::Payment;

/// Transactions whose outputs are looked up for one payment. With the newest block, the protocol parameters, the
/// submission and the watching after it, a request stays under 40 calls to the outside.
pub const MAX_INPUT_TRANSACTIONS: usize = 16;

/// Native tokens of all outputs that a payment from outside spends. They are held until the payment is verified, beside
/// those of other payments. The ledger lets an output have a few hundred of common names, and 1,600 of the shortest.
pub const MAX_INPUT_TOKENS: usize = 1_000;

/// Transactions whose outputs are looked up at once: each may have made three outputs full of tokens.
const LOOKUPS_AT_ONCE: usize = 2;

/// The chain around a transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The state of each output that the transaction spends.
    pub inputs: BTreeMap<TxRef, InputState>,
    /// The protocol parameters.
    pub parameters: ProtocolParameters,
    /// The newest block.
    pub tip: Tip,
    /// Whether the provider's mempool had the payment before its inputs were looked at.
    #[serde(default)]
    pub in_mempool: bool,
}

/// An output that a transaction wants to spend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InputState {
    /// There to be spent.
    Unspent(Utxo),
    /// Spent by another transaction.
    Spent(TxHash),
    /// Spent by the very transaction that is judged, which is in a block.
    SpentByPayment(Utxo),
    /// In no block that the provider knows: not made yet, or never.
    Unknown,
}

impl Facts {
    /// What is needed to know the payer and the time: the transaction that the nonce comes from, the newest block, the
    /// protocol parameters. Asked first and alone, so that inputs made up by a stranger cost four calls.
    ///
    /// The mempool is asked before the blocks: what left it meanwhile is seen where it went.
    ///
    /// # Errors
    /// A chain that cannot be asked. An error is never taken for an absence.
    pub async fn of_payer(chain: &impl Chain, payment: &Payment) -> Result<Self, ChainError> {
        let (in_mempool, parameters, tip) =
            try_join3(chain.in_mempool(&payment.tx.id), chain.protocol_parameters(), chain.tip()).await?;
        let outputs = looked_up(chain, &payment.nonce.tx, payment).await?;
        let mut facts = Self { inputs: BTreeMap::new(), parameters, tip, in_mempool };
        facts.note(&payment.nonce.tx, outputs, payment);
        Ok(facts)
    }

    /// Adds every other input's state, or as many until these have more tokens than a payment may spend.
    ///
    /// # Errors
    /// As [`Facts::of_payer`].
    pub async fn complete(&mut self, chain: &impl Chain, payment: &Payment) -> Result<(), ChainError> {
        let sources = payment.sources();
        let others = sources.iter().filter(|tx| **tx != payment.nonce.tx);
        let lookups = others.map(|tx| async move { Ok((tx, looked_up(chain, tx, payment).await?)) });
        let mut found = stream::iter(lookups).buffered(LOOKUPS_AT_ONCE);
        while self.tokens() <= MAX_INPUT_TOKENS
            && let Some((tx, outputs)) = found.try_next().await?
        {
            self.note(tx, outputs, payment);
        }
        Ok(())
    }

    /// How many native tokens the outputs hold that are known so far.
    pub(super) fn tokens(&self) -> usize {
        let held = self.inputs.values().map(|state| match state {
            InputState::Unspent(utxo) | InputState::SpentByPayment(utxo) => utxo.value.assets.len(),
            InputState::Spent(_) | InputState::Unknown => 0,
        });
        held.sum()
    }

    fn note(&mut self, tx: &TxHash, mut outputs: Vec<TracedOutput>, payment: &Payment) {
        let from_it = payment.tx.inputs.iter().filter(|input| input.tx == *tx);
        self.inputs.extend(from_it.map(|input| (*input, state(&mut outputs, input, &payment.tx.id))));
    }

    /// Whether a block or the mempool had the payment already.
    #[must_use]
    pub fn has_payment(&self) -> bool {
        self.in_mempool || self.inputs.values().any(|state| matches!(state, InputState::SpentByPayment(_)))
    }
}

/// What a payment spends of what a transaction made.
async fn looked_up(chain: &impl Chain, tx: &TxHash, payment: &Payment) -> Result<Vec<TracedOutput>, ChainError> {
    let named = payment.tx.inputs.iter().filter(|input| input.tx == *tx).copied().collect();
    Ok(chain.outputs_among(tx, &named, MAX_INPUT_TOKENS).await?.unwrap_or_default())
}

/// Outputs that the provider lists but that are not real (see [`TracedOutput::collateral`]) count as absent.
fn state(outputs: &mut Vec<TracedOutput>, input: &TxRef, payment: &TxHash) -> InputState {
    let found = outputs.iter().position(|output| output.utxo.reference == *input && !output.collateral);
    match found.map(|found| outputs.swap_remove(found)) {
        None => InputState::Unknown,
        Some(TracedOutput { spent_by: Some(by), utxo, .. }) if by == *payment => InputState::SpentByPayment(utxo),
        Some(TracedOutput { spent_by: Some(by), .. }) => InputState::Spent(by),
        Some(output) => InputState::Unspent(output.utxo),
    }
}
