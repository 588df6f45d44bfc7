//! The transfer method `escrow` (`masumi` in the scheme document): the buyer locks the payment in the contract, under a
//! quote that the seller signed. Quotes are recognised when they come back, without having been stored.
//!
//! A quote depends only on the sale, the configuration, the time of issue and a random nonce, and signing is
//! deterministic (RFC 8032). An entry that claims to be a quote is therefore rebuilt from its own nonce and deadlines.
//! If every byte is equal, this server issued it, because only its key can produce the signature in it.
//!
//! The rules for every payment apply to the transaction, with one exception: the output at the escrow's address may
//! carry a datum. [`crate::escrow`] verifies that output.

use ::escrow::{Deadlines, Deployment};
use cardano::{
    Address, Lovelace,
    cip8::{self, DataSignature},
    keys::SigningKey,
    params::ProtocolParameters,
    slots::{Millis, SlotConfig},
};

use super::{
    CannotPay, InvalidQuote, MempoolPolicy, OfferDraft, OfferError, Offered, PaymentMethod, PaymentOutput, Sale,
    at_least_in_a_block, on_a_test_network,
};
use crate::{
    Refusal,
    escrow::{
        AgentIdentifier, AuthorizedTerms, DeploymentWire, EscrowExtra, InputCommitment, LockFacts, SellerTerms,
        TermsDigest, TransferMethod, VerifiedLock, verify_lock,
    },
    exact::{PaymentContext, VerificationContext, rules::plain},
    wire::{
        Accepted, Amount, Asset, ConfirmationPolicy, DefaultExtra, Extra, MAX_TIMEOUT_SECONDS, Network,
        PaymentRequirements, SCHEME_EXACT,
    },
};

/// Minimum price of a protected sale (service API, "Limits"). Below it, fees and minimum amounts would consume the
/// price.
pub const MIN_PROTECTED_PRICE: Lovelace = Lovelace::from_ada(5);

/// The payment method that pays into the escrow. In every escrow, the service that holds the signing key is the seller;
/// it pays the content's creator afterwards.
#[derive(Clone, Debug)]
pub struct EscrowMethod {
    network: Network,
    deployment: Deployment,
    seller: SigningKey,
    seller_address: Address,
    signatory: cip8::Signatory,
    name: TransferMethod,
    policy: ConfirmationPolicy,
    pay_to: String,
}

impl EscrowMethod {
    /// Creates the payment method for a deployment. `seller` signs the quotes. [`TransferMethod::check_deployment`]
    /// tells whether clients that know the method by `name` can pay into this deployment.
    ///
    /// # Errors
    /// [`MempoolPolicy`] if the policy does not wait for a block.
    pub fn new(
        network: Network,
        deployment: Deployment,
        seller: SigningKey,
        name: TransferMethod,
        policy: ConfirmationPolicy,
    ) -> Result<Self, MempoolPolicy> {
        Ok(Self {
            network,
            seller_address: seller.enterprise_address(),
            signatory: cip8::Signatory::own(&seller),
            pay_to: deployment.address().to_string(),
            policy: at_least_in_a_block(policy)?,
            deployment,
            seller,
            name,
        })
    }

    /// Returns the deployment of the escrow contract.
    #[must_use]
    pub const fn deployment(&self) -> &Deployment {
        &self.deployment
    }

    /// Returns the name of the transfer method.
    #[must_use]
    pub const fn transfer_method(&self) -> TransferMethod {
        self.name
    }

    /// Returns the address whose key signs the quotes.
    #[must_use]
    pub const fn seller_address(&self) -> &Address {
        &self.seller_address
    }

    fn terms(&self, sale: &Sale<'_>, now: Millis, seller_nonce: [u8; 32]) -> Result<EscrowExtra, OfferError> {
        let input_commitment = InputCommitment::of_listing(sale.listing_id, &sale.content_hash);
        let terms = SellerTerms {
            seller: self.seller_address,
            seller_return: None,
            seller_nonce,
            buyer_nonce: vec![],
            agent_identifier: AgentIdentifier::Omitted,
            input_hash: input_commitment.digest,
            deadlines: Deadlines::issue(now).ok_or(OfferError::Time)?,
        };
        Ok(EscrowExtra {
            asset_transfer_method: self.name,
            confirmation_policy: Some(self.policy),
            are_fees_sponsored: Some(false),
            input_commitment,
            terms,
            reference_key: vec![],
            reference_signature: vec![],
            blockchain_identifier: String::new(),
            deployment: Some(DeploymentWire::new(&self.deployment.parameters)),
        })
    }
}

/// A quote that still needs the seller's signature.
#[derive(Clone, Debug)]
pub struct UnsignedQuote<'m> {
    method: &'m EscrowMethod,
    price: Lovelace,
    extra: EscrowExtra,
    requirements: PaymentRequirements,
    digest: TermsDigest,
    unsigned: cip8::Unsigned,
}

impl UnsignedQuote<'_> {
    /// Returns the seller's key, which must sign the quote.
    #[must_use]
    pub const fn key(&self) -> &SigningKey {
        &self.method.seller
    }

    /// Returns the digest of the terms, which is the payload of the signature.
    #[must_use]
    pub const fn terms_digest(&self) -> &TermsDigest {
        &self.digest
    }

    /// Returns the bytes over which the Ed25519 signature must be made.
    #[must_use]
    pub fn to_sign(&self) -> &[u8] {
        self.unsigned.to_sign()
    }

    /// Completes the quote with the seller's signature.
    #[must_use]
    pub fn signed(self, signature: [u8; 64]) -> Offered {
        let Self { method, price, mut extra, mut requirements, digest, unsigned } = self;
        let DataSignature { key, signature } = unsigned.signed(signature);
        (extra.reference_key, extra.reference_signature) = (key, signature);
        extra.blockchain_identifier = extra.identifier(&method.pay_to).encode();
        let terms = AuthorizedTerms::signed(&extra, digest, price, method.deployment.address());
        requirements.extra = Extra::Escrow(Box::new(extra));
        Offered { requirements, terms: Some(terms) }
    }
}

impl PaymentMethod for EscrowMethod {
    fn name(&self) -> &'static str {
        self.name.name()
    }

    fn network(&self) -> Network {
        self.network
    }

    /// Drafts a quote, which needs one signature by the seller.
    fn draft(&self, sale: &Sale<'_>, clock: Millis, nonce: [u8; 32]) -> Result<OfferDraft<'_>, OfferError> {
        if sale.price < MIN_PROTECTED_PRICE {
            return Err(OfferError::PriceTooLow);
        }
        let extra = self.terms(sale, clock, nonce)?;
        let requirements = PaymentRequirements {
            scheme: SCHEME_EXACT.to_owned(),
            network: on_a_test_network(self.network)?,
            amount: Amount::new(sale.price.get()).ok_or(OfferError::Free)?,
            asset: Asset::Lovelace,
            pay_to: self.pay_to.clone(),
            max_timeout_seconds: MAX_TIMEOUT_SECONDS,
            extra: Extra::default(),
        };
        let digest = extra.terms_digest(&requirements).ok_or(OfferError::Time)?;
        let unsigned = self.signatory.unsigned(digest.0.as_bytes());
        let quote = UnsignedQuote { method: self, price: sale.price, extra, requirements, digest, unsigned };
        Ok(OfferDraft::Unsigned(Box::new(quote)))
    }

    fn listed(&self, sale: &Sale<'_>) -> Result<PaymentRequirements<DefaultExtra>, OfferError> {
        if sale.price < MIN_PROTECTED_PRICE {
            return Err(OfferError::PriceTooLow);
        }
        Ok(PaymentRequirements {
            scheme: SCHEME_EXACT.to_owned(),
            network: on_a_test_network(self.network)?,
            amount: Amount::new(sale.price.get()).ok_or(OfferError::Free)?,
            asset: Asset::Lovelace,
            pay_to: self.pay_to.clone(),
            max_timeout_seconds: MAX_TIMEOUT_SECONDS,
            extra: DefaultExtra {
                asset_transfer_method: Some(self.name.name().to_owned()),
                are_fees_sponsored: Some(false),
                confirmation_policy: Some(self.policy),
            },
        })
    }

    fn recognise(&self, sale: &Sale<'_>, accepted: &Accepted) -> Result<Offered, Refusal> {
        let claimed = accepted.escrow_extra().map_err(|_| InvalidQuote::Unknown)?.terms;
        let issued = claimed.deadlines.issued_at().ok_or(InvalidQuote::Unknown)?;
        let offered = self.offer(sale, issued, claimed.seller_nonce).map_err(|_| InvalidQuote::Unknown)?;
        if accepted.matches(&offered.requirements) { Ok(offered) } else { Err(InvalidQuote::Unknown.into()) }
    }

    fn check(&self, case: &PaymentContext<'_>) -> Result<(), Refusal> {
        plain::other_outputs_are_plain(case)
    }

    fn check_on_chain(
        &self,
        context: &VerificationContext<'_>,
        payer: &Address,
    ) -> Result<Option<VerifiedLock>, Refusal> {
        let VerificationContext { case, facts, moment } = context;
        let terms = case.offered.terms.as_ref().ok_or(Refusal::Requirements("there are no signed terms"))?;
        let (tx, parameters) = (&case.payment.tx, &facts.parameters);
        Ok(Some(verify_lock(LockFacts { tx, terms, payer, parameters, slots: &moment.slots })?))
    }

    fn output(
        &self,
        offered: &Offered,
        buyer: &Address,
        return_address: Option<&Address>,
        parameters: &ProtocolParameters,
        slots: &SlotConfig,
    ) -> Result<PaymentOutput, CannotPay> {
        let terms = offered.terms.as_ref().ok_or(CannotPay::OtherMethod)?;
        terms.lock_for(buyer, return_address, parameters, slots)
    }
}

#[cfg(test)]
mod payments;
#[cfg(test)]
mod tests;
