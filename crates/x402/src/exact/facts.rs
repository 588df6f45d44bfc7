//! Reads everything that verifying a payment needs from the chain, before any rule is checked.

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

/// Maximum number of earlier transactions whose outputs one payment may spend. Looking up each of them takes a call to
/// the provider. A request may make about 40 outgoing calls in total, some of which are needed to submit the payment
/// and wait for its block.
pub const MAX_INPUT_TRANSACTIONS: usize = 16;

/// Maximum number of native tokens in the outputs that a payment from an external wallet spends. The outputs stay in
/// memory until the payment is verified. One output holds a few hundred tokens with names of usual length, and at most
/// 1,600.
pub const MAX_INPUT_TOKENS: usize = 1_000;

/// Maximum number of concurrent lookups for one payment. The limit bounds memory, because each lookup may return
/// outputs with [`MAX_INPUT_TOKENS`] tokens.
const LOOKUPS_AT_ONCE: usize = 2;

/// The state of the chain that is needed to verify a payment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// State of each output that the transaction spends.
    pub inputs: BTreeMap<TxRef, InputState>,
    /// Protocol parameters of the current epoch.
    pub parameters: ProtocolParameters,
    /// Newest block.
    pub tip: Tip,
    /// `true` if the provider's mempool contained the payment before its inputs were looked up.
    #[serde(default)]
    pub in_mempool: bool,
}

/// State of an output that a transaction spends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InputState {
    /// The output is unspent.
    Unspent(Utxo),
    /// Another transaction spent the output.
    Spent(TxHash),
    /// The transaction under verification has spent the output, because a block already includes it.
    SpentByPayment(Utxo),
    /// No block known to the provider contains the output.
    Unknown,
}

impl Facts {
    /// Reads the facts that identify the payer and the time: the transaction that created the output named by the
    /// nonce, the newest block, and the protocol parameters. They are read before all other facts, so that a
    /// transaction with made-up inputs costs only four calls.
    ///
    /// The mempool is read before the blocks. A transaction that leaves the mempool in between is then found in a
    /// block.
    ///
    /// # Errors
    /// [`ChainError`] if the chain cannot be read. An error never counts as absence.
    pub async fn of_payer(chain: &impl Chain, payment: &Payment) -> Result<Self, ChainError> {
        let (in_mempool, parameters, tip) =
            try_join3(chain.in_mempool(&payment.tx.id), chain.protocol_parameters(), chain.recent_tip()).await?;
        let outputs = looked_up(chain, &payment.nonce.tx, payment).await?;
        let mut facts = Self { inputs: BTreeMap::new(), parameters, tip, in_mempool };
        facts.note(&payment.nonce.tx, outputs, payment);
        Ok(facts)
    }

    /// Adds the states of the remaining inputs. Stops early once the inputs hold more tokens than a payment may spend.
    ///
    /// # Errors
    /// See [`Facts::of_payer`].
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

    /// Returns the number of native tokens in the inputs that have been read so far.
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

    /// Returns `true` if a block includes the payment, or the mempool contains it.
    #[must_use]
    pub fn has_payment(&self) -> bool {
        self.in_mempool || self.inputs.values().any(|state| matches!(state, InputState::SpentByPayment(_)))
    }
}

/// Reads the outputs of `tx` that the payment spends.
async fn looked_up(chain: &impl Chain, tx: &TxHash, payment: &Payment) -> Result<Vec<TracedOutput>, ChainError> {
    let named = payment.tx.inputs.iter().filter(|input| input.tx == *tx).copied().collect();
    Ok(chain.outputs_among(tx, &named, MAX_INPUT_TOKENS).await?.unwrap_or_default())
}

/// Determines the state of an input. An output that the provider lists although it does not exist (see
/// [`TracedOutput::not_on_ledger`]) is treated as absent.
fn state(outputs: &mut Vec<TracedOutput>, input: &TxRef, payment: &TxHash) -> InputState {
    let found = outputs.iter().position(|output| output.utxo.reference == *input && !output.not_on_ledger);
    match found.map(|found| outputs.swap_remove(found)) {
        None => InputState::Unknown,
        Some(TracedOutput { spent_by: Some(by), utxo, .. }) if by == *payment => InputState::SpentByPayment(utxo),
        Some(TracedOutput { spent_by: Some(by), .. }) => InputState::Spent(by),
        Some(output) => InputState::Unspent(output.utxo),
    }
}
