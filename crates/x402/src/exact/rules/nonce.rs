//! Rule 5, for the nonce: an input of the transaction, unspent, whose owner is the payer.

use cardano::{Address, TxRef};

use super::{InvalidInputs, PaymentContext, VerificationContext};
use crate::{Refusal, exact::InputState};

refusals! {
    /// The nonce does not name a payer.
    #[derive(Copy)]
    pub enum InvalidNonce {
        /// The nonce is not spent by the transaction.
        #[error("payload.nonce {0} is not an input of the transaction")]
        NotInput(TxRef) => "invalid_exact_cardano_payload_nonce_not_in_inputs",
        /// The nonce does not exist, or was spent.
        #[error("payload.nonce {0} is not an unspent output on the chain")]
        NotUnspent(TxRef) => "invalid_exact_cardano_payload_nonce_not_on_chain",
        /// The payer is the payee.
        #[error("the payer and payTo are the same key: no money would move")]
        SelfPayment => "invalid_exact_cardano_payload_self_payment",
    }
}

/// The nonce is one of the inputs.
pub fn is_an_input(case: &PaymentContext<'_>) -> Result<(), Refusal> {
    let nonce = case.payment.nonce;
    if case.payment.tx.inputs.contains(&nonce) { Ok(()) } else { Err(InvalidNonce::NotInput(nonce).into()) }
}

/// The nonce is unspent, or this very transaction spent it. [`crate::exact::VerifiedPayment::public`] says what a
/// public transaction proves about its sender.
pub fn is_unspent(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    let nonce = context.case.payment.nonce;
    match context.facts.inputs.get(&nonce) {
        Some(InputState::Unspent(_) | InputState::SpentByPayment(_)) => Ok(()),
        _ => Err(InvalidNonce::NotUnspent(nonce).into()),
    }
}

/// The owner of the nonce.
///
/// # Errors
/// The nonce is not an unspent output at a key's address.
pub fn payer(context: &VerificationContext<'_>) -> Result<Address, Refusal> {
    let nonce = context.case.payment.nonce;
    match context.facts.inputs.get(&nonce) {
        Some(InputState::Unspent(utxo) | InputState::SpentByPayment(utxo)) => {
            Ok(utxo.address.parse().map_err(|_| InvalidInputs::Address(nonce))?)
        }
        _ => Err(InvalidNonce::NotUnspent(nonce).into()),
    }
}

/// The payer is not `payTo`: the payment credentials differ.
pub fn payer_is_not_payee(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    let payer = payer(context)?;
    let same = context.case.pay_to.payment_key() == Some(payer.payment_key());
    if same { Err(InvalidNonce::SelfPayment.into()) } else { Ok(()) }
}
