//! Everything that judging a payment needs from the chain, read before anything is judged.

use std::collections::{BTreeMap, BTreeSet};

use cardano::{
    TxHash, TxRef,
    chain::{Chain, ChainError, Tip, TracedOutput, Utxo},
    params::ProtocolParameters,
};
use futures_util::future::{try_join_all, try_join3};
use serde::{Deserialize, Serialize};

use super::VerifyError;
use crate::Refusal;

/// Transactions whose outputs are looked up for one payment. With the newest block, the protocol parameters, the
/// submission and the watching after it, a request stays under 40 calls to the outside.
pub const MAX_INPUT_TRANSACTIONS: usize = 16;

/// The chain around a transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The state of each output that the transaction spends.
    pub inputs: BTreeMap<TxRef, InputState>,
    /// The protocol parameters.
    pub parameters: ProtocolParameters,
    /// The newest block.
    pub tip: Tip,
}

/// An output that a transaction wants to spend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InputState {
    /// There to be spent.
    Unspent(Utxo),
    /// Spent by this transaction.
    Spent(TxHash),
    /// In no block that the provider knows: not made yet, or never.
    Unknown,
}

impl Facts {
    /// Asks the chain about everything that these inputs need, at once.
    ///
    /// # Errors
    /// More transactions to look up than allowed, or a chain that cannot be asked. An error is never taken for an
    /// absence.
    pub async fn gather(chain: &impl Chain, inputs: &[TxRef]) -> Result<Self, VerifyError> {
        let sources: BTreeSet<TxHash> = inputs.iter().map(|input| input.tx).collect();
        if sources.len() > MAX_INPUT_TRANSACTIONS {
            let refusal = Refusal::TooManyInputTransactions { found: sources.len(), most: MAX_INPUT_TRANSACTIONS };
            return Err(refusal.into());
        }
        let lookups = sources.iter().map(|tx| async move {
            let outputs = chain.outputs_of(tx).await?;
            Ok::<_, ChainError>((*tx, outputs.unwrap_or_default()))
        });
        let (outputs, parameters, tip) =
            try_join3(try_join_all(lookups), chain.protocol_parameters(), chain.tip()).await?;
        let outputs: BTreeMap<TxHash, Vec<TracedOutput>> = outputs.into_iter().collect();
        let inputs = inputs
            .iter()
            .map(|input| (*input, state(outputs.get(&input.tx).map_or(&[], Vec::as_slice), input)))
            .collect();
        Ok(Self { inputs, parameters, tip })
    }
}

/// Outputs that the provider lists but that are not real (see [`TracedOutput::collateral`]) count as absent.
fn state(outputs: &[TracedOutput], input: &TxRef) -> InputState {
    let found = outputs.iter().find(|output| output.utxo.reference == *input && !output.collateral);
    match found {
        None => InputState::Unknown,
        Some(TracedOutput { spent_by: Some(by), .. }) => InputState::Spent(*by),
        Some(output) => InputState::Unspent(output.utxo.clone()),
    }
}
