//! Rule 5, for the nonce: an input of the transaction, unspent, whose owner is the payer.

use cardano::Address;

use super::{Case, Situation};
use crate::{Refusal, exact::InputState};

/// The nonce is one of the inputs.
pub fn is_an_input(case: &Case<'_>) -> Result<(), Refusal> {
    let nonce = case.offer.nonce;
    if case.offer.tx.inputs.contains(&nonce) { Ok(()) } else { Err(Refusal::NonceNotInput(nonce)) }
}

/// The nonce is there to be spent. Spent by this very transaction counts as spent: whoever broadcast it first made it
/// public, and a public transaction proves nothing about who sends it to us.
pub fn is_unspent(situation: &Situation<'_>) -> Result<(), Refusal> {
    let nonce = situation.case.offer.nonce;
    match situation.facts.inputs.get(&nonce) {
        Some(InputState::Unspent(_)) => Ok(()),
        _ => Err(Refusal::NonceNotUnspent(nonce)),
    }
}

/// The owner of the nonce.
///
/// # Errors
/// The nonce is not an unspent output at a key's address.
pub fn payer(situation: &Situation<'_>) -> Result<Address, Refusal> {
    let nonce = situation.case.offer.nonce;
    match situation.facts.inputs.get(&nonce) {
        Some(InputState::Unspent(utxo)) => utxo.address.parse().map_err(|_| Refusal::InputAddress(nonce)),
        _ => Err(Refusal::NonceNotUnspent(nonce)),
    }
}

/// The payer is somebody else than `payTo`: the payment credentials differ.
pub fn payer_is_not_payee(situation: &Situation<'_>) -> Result<(), Refusal> {
    let payer = payer(situation)?;
    match situation.case.requirements.pay_to.parse::<Address>() {
        Ok(payee) if payee.payment_key() == payer.payment_key() => Err(Refusal::SelfPayment),
        _ => Ok(()),
    }
}
