//! Rule 5, for every input: unspent, at a key's address of our network, and free of what would change the fee.

use cardano::{Address, TxHash, TxRef, chain::Utxo};

use super::{PaymentContext, VerificationContext};
use crate::{
    Refusal,
    exact::{InputState, MAX_INPUT_TOKENS, MAX_INPUT_TRANSACTIONS},
};

refusals! {
    /// Inputs that a payment cannot spend.
    #[derive(Copy)]
    pub enum InvalidInputs {
        /// More transactions to look up than a request may.
        #[error("the inputs come from {found} transactions, at most {most} are looked up: spend fewer, larger outputs")]
        TooManyTransactions {
            /// Transactions that the inputs come from.
            found: usize,
            /// How many may.
            most: usize,
        } => "invalid_exact_cardano_payload_too_many_inputs",
        /// More native tokens in what is spent than a request may hold.
        #[error("the inputs hold more than {0} native tokens: spend outputs with fewer")]
        TooManyTokens(usize) => "invalid_exact_cardano_payload_too_many_inputs",
        /// An input that is in no block yet, or never was.
        #[error("input {0} is not on the chain: wait until the transaction that makes it is in a block")]
        Unknown(TxRef) => "invalid_exact_cardano_payload_input_not_available",
        /// An input that was spent.
        #[error("input {input} was already spent by {by}")]
        Spent {
            /// The spent output.
            input: TxRef,
            /// Spent by.
            by: TxHash,
        } => "invalid_exact_cardano_payload_input_not_available",
        /// An input that no key alone unlocks.
        #[error("input {0} is not at a preprod address with a payment key")]
        Address(TxRef) => "invalid_exact_cardano_payload_input_address",
        /// An input that carries a script, which would raise the fee.
        #[error("input {0} carries a reference script: spend another output")]
        ReferenceScript(TxRef) => "invalid_exact_cardano_payload_input_reference_script",
    }
}

/// They come from few enough transactions to look up.
pub fn are_few(case: &PaymentContext<'_>) -> Result<(), Refusal> {
    let found = case.payment.sources().len();
    if found <= MAX_INPUT_TRANSACTIONS {
        Ok(())
    } else {
        Err(InvalidInputs::TooManyTransactions { found, most: MAX_INPUT_TRANSACTIONS }.into())
    }
}

/// They hold few enough native tokens to be looked up.
pub fn hold_few_tokens(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    let few = context.facts.tokens() <= MAX_INPUT_TOKENS;
    if few { Ok(()) } else { Err(InvalidInputs::TooManyTokens(MAX_INPUT_TOKENS).into()) }
}

/// Every input is there to be spent.
pub fn are_unspent(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    Ok(resolved(context).map(|_| ())?)
}

/// Every input is at a preprod address with a payment key, so that a signature is all it takes.
pub fn are_key_locked(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    let stranger = resolved(context)?.into_iter().find(|(_, utxo)| utxo.address.parse::<Address>().is_err());
    stranger.map_or(Ok(()), |(input, _)| Err(InvalidInputs::Address(input).into()))
}

/// No input carries a reference script: the ledger charges for each, spent or referenced (Conway, `txNonDistinctRefScriptsSize`).
pub fn carry_no_script(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    let carrier = resolved(context)?.into_iter().find(|(_, utxo)| utxo.reference_script.is_some());
    carrier.map_or(Ok(()), |(input, _)| Err(InvalidInputs::ReferenceScript(input).into()))
}

/// Each input with the output that it spends.
///
/// # Errors
/// One is not there.
pub(super) fn resolved<'a>(context: &VerificationContext<'a>) -> Result<Vec<(TxRef, &'a Utxo)>, InvalidInputs> {
    let (facts, inputs) = (context.facts, &context.case.payment.tx.inputs);
    inputs
        .iter()
        .map(|input| match facts.inputs.get(input) {
            Some(InputState::Unspent(utxo) | InputState::SpentByPayment(utxo)) => Ok((*input, utxo)),
            Some(InputState::Spent(by)) => Err(InvalidInputs::Spent { input: *input, by: *by }),
            Some(InputState::Unknown) | None => Err(InvalidInputs::Unknown(*input)),
        })
        .collect()
}
