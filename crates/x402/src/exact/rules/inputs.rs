//! Rule 5, for every input: unspent, at a key's address of our network, and free of what would change the fee.

use cardano::{Address, TxRef, chain::Utxo};

use super::{Case, Situation};
use crate::{
    Refusal,
    exact::{InputState, MAX_INPUT_TRANSACTIONS},
};

/// They come from few enough transactions to look up.
pub fn are_few(case: &Case<'_>) -> Result<(), Refusal> {
    let found = case.offer.sources().len();
    if found <= MAX_INPUT_TRANSACTIONS {
        Ok(())
    } else {
        Err(Refusal::TooManyInputTransactions { found, most: MAX_INPUT_TRANSACTIONS })
    }
}

/// Every input is there to be spent.
pub fn are_unspent(situation: &Situation<'_>) -> Result<(), Refusal> {
    resolved(situation).map(|_| ())
}

/// Every input is at a preprod address with a payment key, so that a signature is all it takes.
pub fn are_key_locked(situation: &Situation<'_>) -> Result<(), Refusal> {
    let stranger = resolved(situation)?.into_iter().find(|(_, utxo)| utxo.address.parse::<Address>().is_err());
    stranger.map_or(Ok(()), |(input, _)| Err(Refusal::InputAddress(input)))
}

/// No input carries a reference script: the ledger charges for each, spent or referenced (Conway, `txNonDistinctRefScriptsSize`).
pub fn carry_no_script(situation: &Situation<'_>) -> Result<(), Refusal> {
    let carrier = resolved(situation)?.into_iter().find(|(_, utxo)| utxo.reference_script.is_some());
    carrier.map_or(Ok(()), |(input, _)| Err(Refusal::InputScript(input)))
}

/// Each input with the output that it spends.
///
/// # Errors
/// One is not there.
pub(super) fn resolved<'a>(situation: &Situation<'a>) -> Result<Vec<(TxRef, &'a Utxo)>, Refusal> {
    let (facts, inputs) = (situation.facts, &situation.case.offer.tx.inputs);
    inputs
        .iter()
        .map(|input| match facts.inputs.get(input) {
            Some(InputState::Unspent(utxo)) => Ok((*input, utxo)),
            Some(InputState::Spent(by)) => Err(Refusal::InputSpent { input: *input, by: *by }),
            Some(InputState::Unknown) | None => Err(Refusal::InputUnknown(*input)),
        })
        .collect()
}
