//! The transfer method of the escrow (`escrow`, or `masumi` in the scheme document): the buyer locks the price in the
//! `vested_pay` contract.
//!
//! A lock is a payment like any other, to the escrow's address, whose one output there carries an inline datum; on top
//! of the rules for all payments come those of [`crate::escrow::verify_lock`]. The requirements must be a quote that
//! was recognised before: `requirements` and `terms` are made from it, never from what the buyer sent.

use cardano::{chain::Chain, keys::VerifyEd25519};

use super::{
    Moment, Offer, VerifiedPayment, VerifyError,
    judge::Method,
    rules::{Case, plain},
};
use crate::{
    Refusal,
    escrow::{AuthorizedTerms, LockFacts, NotOurQuote, Quote, VerifiedLock, verify_lock},
    wire::PaymentRequirements,
};

const METHOD_RULES: Method = Method(&[plain::other_outputs_are_plain]);

/// A quote as an entry of `accepts`.
///
/// # Errors
/// Never in practice: a quote's fields are all of these types.
pub fn requirements(quote: &Quote) -> Result<PaymentRequirements, Refusal> {
    let entry = quote.to_json().and_then(serde_json::from_value);
    entry.map_err(|_| Refusal::Requirements("the quote is not an entry of accepts"))
}

/// The quote of ours that the offer says to have accepted, as `recognise` finds it in the entry's JSON.
///
/// # Errors
/// It is none.
pub fn quoted(
    offer: &Offer,
    recognise: impl FnOnce(&serde_json::Value) -> Result<Quote, NotOurQuote>,
) -> Result<Quote, Refusal> {
    let entry = serde_json::to_value(&offer.accepted).map_err(|_| Refusal::AcceptedDiffers("extra"))?;
    Ok(recognise(&entry)?)
}

/// Verifies a lock: every rule but the last, that it is confirmed, which is settlement's.
///
/// # Errors
/// The first rule that it breaks, or a chain that cannot be asked.
pub async fn verify(
    requirements: &PaymentRequirements,
    terms: &AuthorizedTerms,
    offer: &Offer,
    chain: &impl Chain,
    signatures: &impl VerifyEd25519,
    moment: Moment,
) -> Result<(VerifiedPayment, VerifiedLock), VerifyError> {
    let (payment, facts) = METHOD_RULES.verify(Case { requirements, offer }, chain, signatures, moment).await?;
    let lock = verify_lock(LockFacts {
        tx: &offer.tx,
        terms,
        payer: &payment.payer,
        parameters: &facts.parameters,
        slots: &moment.slots,
    })
    .map_err(Refusal::Lock)?;
    Ok((payment, lock))
}
