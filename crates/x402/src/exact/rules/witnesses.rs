//! Signatures (rule 6, the ledger's phase 1; and "the payment credential ... controls the input named by the nonce").

use std::collections::BTreeSet;

use cardano::{
    Address,
    hash::KeyHash,
    keys::{self, VerifyEd25519},
};

use super::{Case, Situation, inputs::resolved, nonce};
use crate::{Refusal, exact::Offer};

/// There is at least one signature.
pub fn exist(case: &Case<'_>) -> Result<(), Refusal> {
    if case.offer.tx.vkey_witnesses.is_empty() { Err(Refusal::Unsigned) } else { Ok(()) }
}

/// Every required signer signed.
pub fn required_signers_signed(case: &Case<'_>) -> Result<(), Refusal> {
    let signers = signers(case.offer);
    let absent = case.offer.tx.required_signers.iter().find(|key| !signers.contains(*key));
    absent.map_or(Ok(()), |key| Err(Refusal::MissingSignature(*key)))
}

/// The payer signed.
pub fn payer_signed(situation: &Situation<'_>) -> Result<(), Refusal> {
    let payer = nonce::payer(situation)?;
    if signers(situation.case.offer).contains(payer.payment_key()) {
        Ok(())
    } else {
        Err(Refusal::MissingSignature(*payer.payment_key()))
    }
}

/// Every owner of an input signed.
pub fn owners_signed(situation: &Situation<'_>) -> Result<(), Refusal> {
    let signers = signers(situation.case.offer);
    for (input, utxo) in resolved(situation)? {
        let owner = utxo.address.parse::<Address>().map_err(|_| Refusal::InputAddress(input))?;
        if !signers.contains(owner.payment_key()) {
            return Err(Refusal::MissingSignature(*owner.payment_key()));
        }
    }
    Ok(())
}

/// Every signature verifies, needed or not: the ledger refuses a transaction with a bad one.
pub async fn verify(port: &impl VerifyEd25519, offer: &Offer) -> Result<(), Refusal> {
    for witness in &offer.tx.vkey_witnesses {
        keys::verify(port, &witness.key, offer.tx.id.as_bytes(), &witness.signature)
            .await
            .map_err(|_| Refusal::InvalidSignature(witness.key_hash()))?;
    }
    Ok(())
}

fn signers(offer: &Offer) -> BTreeSet<KeyHash> {
    offer.tx.vkey_witnesses.iter().map(cardano::tx::VkeyWitness::key_hash).collect()
}
