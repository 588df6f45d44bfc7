//! Rule 5, for the nonce: it must be an unspent input of the transaction, whose owner is the payer.

use cardano::{Address, TxRef};

use super::{InvalidInputs, PaymentContext, VerificationContext};
use crate::{Refusal, exact::InputState};

refusals! {
    /// Reason why the nonce does not identify a payer.
    #[derive(Copy)]
    pub enum InvalidNonce {
        /// The nonce is not an input of the transaction.
        #[error("payload.nonce {0} is not an input of the transaction")]
        NotInput(TxRef) => "invalid_exact_cardano_payload_nonce_not_in_inputs",
        /// The output that the nonce names does not exist, or another transaction spent it.
        #[error("payload.nonce {0} is not an unspent output on the chain")]
        NotUnspent(TxRef) => "invalid_exact_cardano_payload_nonce_not_on_chain",
        /// Payer and payee have the same payment key.
        #[error("the payer and payTo are the same key: no money would move")]
        SelfPayment => "invalid_exact_cardano_payload_self_payment",
    }
}

/// Checks that the nonce names one of the transaction's inputs.
pub fn is_an_input(case: &PaymentContext<'_>) -> Result<(), Refusal> {
    let nonce = case.payment.nonce;
    if case.payment.tx.inputs.contains(&nonce) { Ok(()) } else { Err(InvalidNonce::NotInput(nonce).into()) }
}

/// Checks that the output that the nonce names is unspent, or that this very transaction has spent it. In the latter
/// case, [`crate::exact::VerifiedPayment::public`] is set.
pub fn is_unspent(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    let nonce = context.case.payment.nonce;
    match context.facts.inputs.get(&nonce) {
        Some(InputState::Unspent(_) | InputState::SpentByPayment(_)) => Ok(()),
        _ => Err(InvalidNonce::NotUnspent(nonce).into()),
    }
}

/// Returns the address of the payer, who owns the output that the nonce names.
///
/// # Errors
/// Returns an error if the nonce does not name an unspent output at an address with a payment key.
pub fn payer(context: &VerificationContext<'_>) -> Result<Address, Refusal> {
    let nonce = context.case.payment.nonce;
    match context.facts.inputs.get(&nonce) {
        Some(InputState::Unspent(utxo) | InputState::SpentByPayment(utxo)) => {
            Ok(utxo.address.parse().map_err(|_| InvalidInputs::Address(nonce))?)
        }
        _ => Err(InvalidNonce::NotUnspent(nonce).into()),
    }
}

/// Checks that the payer's payment credential differs from that of `payTo`.
pub fn payer_is_not_payee(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    let payer = payer(context)?;
    let same = context.case.pay_to.payment_key() == Some(payer.payment_key());
    if same { Err(InvalidNonce::SelfPayment.into()) } else { Ok(()) }
}
