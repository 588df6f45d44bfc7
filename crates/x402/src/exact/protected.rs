//! The transfer method `escrow` (the scheme document's `masumi`): the buyer locks the payment in the contract.
//!
//! The transaction keeps the rules of any payment here, with one exception: the output at the escrow's address, and no
//! other, carries a datum. That output is judged by [`crate::escrow`].

use ::escrow::Datum;
use cardano::{
    ScriptHash,
    chain::Chain,
    keys::VerifyEd25519,
    tx::{AddressKind, OutputDatum, SignedTx},
};

use super::{
    Facts, Moment, Offer, VerifiedPayment, VerifyError,
    judge::Method,
    rules::{Case, plain},
};
use crate::{
    Refusal,
    escrow::{AuthorizedTerms, Issuer, LockFacts, Quote, Sale, TermsDigest, VerifiedLock, verify_lock},
    wire::PaymentRequirements,
};

const METHOD_RULES: Method = Method(&[plain::other_outputs_are_plain]);

/// A lock that passed every rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedProtected {
    /// The payment.
    pub payment: VerifiedPayment,
    /// The escrow that it makes.
    pub lock: VerifiedLock,
}

/// A quote of ours that a buyer took, with the terms to judge the lock by.
#[derive(Clone, Debug)]
pub struct Taken {
    quote: Quote,
    requirements: PaymentRequirements,
    terms: AuthorizedTerms,
}

impl Taken {
    /// The quote that this offer takes: one of ours, for this sale. Nothing of it was stored.
    ///
    /// # Errors
    /// We never signed it.
    pub fn recognise(issuer: &Issuer<'_>, sale: &Sale<'_>, offer: &Offer) -> Result<Self, Refusal> {
        let accepted = serde_json::to_value(&offer.accepted).map_err(|_| Refusal::QuoteUnknown)?;
        let quote = issuer.recognise(sale, &accepted).map_err(|_| Refusal::QuoteUnknown)?;
        let terms = quote.authorized(issuer);
        let requirements = requirements(&quote)?;
        Ok(Self { quote, requirements, terms })
    }

    /// The logical replay key of the terms.
    #[must_use]
    pub const fn terms_digest(&self) -> TermsDigest {
        self.quote.terms_digest
    }

    /// Verifies a lock by every rule but that it is confirmed, which is settlement's.
    ///
    /// # Errors
    /// The first rule that it breaks, or a chain that cannot be asked.
    pub async fn verify(
        &self,
        offer: &Offer,
        chain: &impl Chain,
        signatures: &impl VerifyEd25519,
        moment: Moment,
    ) -> Result<VerifiedProtected, VerifyError> {
        self.is_open(moment)?;
        let (payment, lock) = verify(&self.requirements, &self.terms, offer, chain, signatures, moment).await?;
        Ok(VerifiedProtected { payment, lock })
    }

    /// As [`Taken::verify`], with facts that were gathered before.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub async fn verify_with_facts(
        &self,
        offer: &Offer,
        facts: &Facts,
        signatures: &impl VerifyEd25519,
        moment: Moment,
    ) -> Result<VerifiedProtected, Refusal> {
        self.is_open(moment)?;
        let (payment, lock) =
            verify_with_facts(&self.requirements, &self.terms, offer, facts, signatures, moment).await?;
        Ok(VerifiedProtected { payment, lock })
    }

    /// The quote must still be open: a payment that was claimed in time is resumed without this.
    const fn is_open(&self, moment: Moment) -> Result<(), Refusal> {
        if self.quote.is_open_at(moment.now_ms) { Ok(()) } else { Err(Refusal::QuoteOver) }
    }
}

/// Verifies a lock under terms that are known to be ours: every rule but that it is confirmed.
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
    Ok(judge_lock(terms, offer, payment, &facts, moment)?)
}

/// As [`verify`], with facts that were gathered before.
///
/// # Errors
/// The first rule that it breaks.
pub async fn verify_with_facts(
    requirements: &PaymentRequirements,
    terms: &AuthorizedTerms,
    offer: &Offer,
    facts: &Facts,
    signatures: &impl VerifyEd25519,
    moment: Moment,
) -> Result<(VerifiedPayment, VerifiedLock), Refusal> {
    let payment = METHOD_RULES.verify_with_facts(Case { requirements, offer }, facts, signatures, moment).await?;
    judge_lock(terms, offer, payment, facts, moment)
}

fn judge_lock(
    terms: &AuthorizedTerms,
    offer: &Offer,
    payment: VerifiedPayment,
    facts: &Facts,
    moment: Moment,
) -> Result<(VerifiedPayment, VerifiedLock), Refusal> {
    let (tx, payer, parameters) = (&offer.tx, &payment.payer, &facts.parameters);
    let lock = verify_lock(LockFacts { tx, terms, payer, parameters, slots: &moment.slots }).map_err(Refusal::Lock)?;
    // The buyer of the escrow: the same key as the nonce's owner, at the address that the buyer chose.
    Ok((VerifiedPayment { payer: lock.buyer, ..payment }, lock))
}

/// A quote as an entry of `accepts`.
///
/// # Errors
/// Never in practice: a quote of ours is of the wire's shape.
pub fn requirements(quote: &Quote) -> Result<PaymentRequirements, Refusal> {
    let json = quote.to_json().map_err(|_| Refusal::Requirements("the quote has no JSON form"))?;
    serde_json::from_value(json).map_err(|_| Refusal::Requirements("the quote is not of the wire's shape"))
}

/// The escrow that a lock made, read from a transaction that was verified: its output's place, address and datum.
#[must_use]
pub fn escrow_of(tx: &SignedTx) -> Option<(u16, ScriptHash, Datum)> {
    (0u16..).zip(&tx.outputs).find_map(|(index, output)| {
        let AddressKind::Script(script) = output.owner else { return None };
        let Some(OutputDatum::Inline(cbor)) = &output.datum else { return None };
        Some((index, script, Datum::from_cbor(cbor).ok()?))
    })
}

#[cfg(test)]
mod tests;
