//! Signatures (rule 6, the ledger's phase 1; and "the payment credential ... controls the input named by the nonce").

use std::collections::BTreeSet;

use cardano::{
    Address,
    hash::KeyHash,
    keys::{self, VerifyEd25519},
};

use super::{InvalidInputs, PaymentContext, VerificationContext, inputs::resolved, nonce};
use crate::{Refusal, exact::Payment};

/// Maximum number of signatures of a payment from an external wallet. To pay for one listing, a wallet spends few
/// outputs, each of which needs one signature.
pub const MAX_SIGNATURES: usize = 32;

refusals! {
    /// Reason why the transaction's signatures are not acceptable.
    #[derive(Copy)]
    pub enum InvalidWitnesses {
        /// The transaction has no signature.
        #[error("the transaction is not signed: sign it, do not submit it, and send it whole")]
        Unsigned => "invalid_exact_cardano_payload_unsigned",
        /// The transaction has more signatures than a payment needs, and verifying each costs computing time.
        #[error("more than {MAX_SIGNATURES} signatures: spend outputs of fewer keys")]
        TooMany => "invalid_exact_cardano_payload_too_many_signatures",
        /// The signature by this key is invalid.
        #[error("the signature by key {0} does not verify: sign exactly the transaction that you send")]
        BadSignature(KeyHash) => "invalid_exact_cardano_payload_invalid_signature",
        /// This key, which owns an input or is a required signer, did not sign.
        #[error("the signature of key {0} is missing: every owner of an input and every required signer must sign")]
        MissingSignature(KeyHash) => "invalid_exact_cardano_payload_missing_signature",
    }
}

/// Checks that the transaction has at least one signature and at most [`MAX_SIGNATURES`].
pub fn exist(case: &PaymentContext<'_>) -> Result<(), Refusal> {
    match case.payment.tx.vkey_witnesses.len() {
        0 => Err(InvalidWitnesses::Unsigned.into()),
        1..=MAX_SIGNATURES => Ok(()),
        _ => Err(InvalidWitnesses::TooMany.into()),
    }
}

/// Checks that every key in the body's list of required signers signed.
pub fn required_signers_signed(case: &PaymentContext<'_>) -> Result<(), Refusal> {
    require(&signers(case.payment), &case.payment.tx.required_signers)
}

/// Checks that the payer's signature is present.
pub fn payer_signed(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    let payer = nonce::payer(context)?;
    require(&signers(context.case.payment), [payer.payment_key()])
}

/// Checks that the owner of every input signed.
pub fn owners_signed(context: &VerificationContext<'_>) -> Result<(), Refusal> {
    let signers = signers(context.case.payment);
    for (input, utxo) in resolved(context)? {
        let owner = utxo.address.parse::<Address>().map_err(|_| InvalidInputs::Address(input))?;
        require(&signers, [owner.payment_key()])?;
    }
    Ok(())
}

/// Verifies every signature, required or not, because the ledger rejects a transaction with an invalid one.
pub async fn verify(port: &impl VerifyEd25519, payment: &Payment) -> Result<(), Refusal> {
    for witness in &payment.tx.vkey_witnesses {
        keys::verify(port, &witness.key, payment.tx.id.as_bytes(), &witness.signature)
            .await
            .map_err(|_| InvalidWitnesses::BadSignature(witness.key_hash()))?;
    }
    Ok(())
}

fn signers(payment: &Payment) -> BTreeSet<KeyHash> {
    payment.tx.vkey_witnesses.iter().map(cardano::tx::VkeyWitness::key_hash).collect()
}

fn require<'k>(signers: &BTreeSet<KeyHash>, keys: impl IntoIterator<Item = &'k KeyHash>) -> Result<(), Refusal> {
    let absent = keys.into_iter().find(|key| !signers.contains(*key));
    absent.map_or(Ok(()), |key| Err(InvalidWitnesses::MissingSignature(*key).into()))
}
