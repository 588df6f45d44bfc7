//! Rule 5, for every input: it must be unspent, at an address of this network with a payment key, and must not carry a
//! script, which would raise the fee.

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
        /// The payment spends outputs of more transactions than one request may look up.
        #[error("the inputs come from {found} transactions, at most {most} are looked up: spend fewer, larger outputs")]
        TooManyTransactions {
            /// Number of transactions whose outputs the payment spends.
            found: usize,
            /// Maximum number of transactions whose outputs a payment may spend.
            most: usize,
        } => "invalid_exact_cardano_payload_too_many_inputs",
        /// The inputs hold more native tokens than one request may keep in memory.
        #[error("the inputs hold more than {0} native tokens: spend outputs with fewer")]
        TooManyTokens(usize) => "invalid_exact_cardano_payload_too_many_inputs",
        /// No block known to the provider contains the output that the payment spends.
        #[error("input {0} is not on the chain: wait until the transaction that makes it is in a block")]
        Unknown(TxRef) => "invalid_exact_cardano_payload_input_not_available",
        /// Another transaction has already spent an input of the payment.
        #[error("input {input} was already spent by {by}")]
        Spent {
            /// Reference of the spent output.
            input: TxRef,
            /// Id of the transaction that spent it.
            by: TxHash,
        } => "invalid_exact_cardano_payload_input_not_available",
        /// The input is not at an address with a payment key.
        #[error("input {0} is not at a preprod address with a payment key")]
        Address(TxRef) => "invalid_exact_cardano_payload_input_address",
        /// The input carries a reference script, which would raise the fee.
        #[error("input {0} carries a reference script: spend another output")]
        ReferenceScript(TxRef) => "invalid_exact_cardano_payload_input_reference_script",
    }
}

/// Checks that the payment does not spend outputs of more transactions than one request may look up.
pub fn are_few(case: &PaymentContext<'_>) -> Result<(), Refusal> {
    let found = case.payment.sources().len();
    if found <= MAX_INPUT_TRANSACTIONS {
        Ok(())
    } else {
        Err(InvalidInputs::TooManyTransactions { found, most: MAX_INPUT_TRANSACTIONS }.into())
    }
}

/// Checks that the payment's inputs do not hold more native tokens than one request may keep in memory.
pub fn hold_few_tokens(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    let few = context.facts.tokens() <= MAX_INPUT_TOKENS;
    if few { Ok(()) } else { Err(InvalidInputs::TooManyTokens(MAX_INPUT_TOKENS).into()) }
}

/// Checks that no other transaction has spent an input of the payment.
pub fn are_unspent(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    Ok(resolved(context).map(|_| ())?)
}

/// Checks that every input is at a preprod address with a payment key, so that a signature is enough to spend it.
pub fn are_key_locked(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    let stranger = resolved(context)?.into_iter().find(|(_, utxo)| utxo.address.parse::<Address>().is_err());
    stranger.map_or(Ok(()), |(input, _)| Err(InvalidInputs::Address(input).into()))
}

/// Checks that no input carries a reference script, because the ledger charges for each, spent or referenced (Conway,
/// `txNonDistinctRefScriptsSize`).
pub fn carry_no_script(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    let carrier = resolved(context)?.into_iter().find(|(_, utxo)| utxo.reference_script.is_some());
    carrier.map_or(Ok(()), |(input, _)| Err(InvalidInputs::ReferenceScript(input).into()))
}

/// Returns the reference of each input, with the output that the input spends.
///
/// # Errors
/// [`InvalidInputs`] if an input does not exist or is already spent.
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
