//! The configured payment methods.

use edge::{
    keys::KeyStore,
    settings::{self, Lookup, SettingError},
};
use escrow::Deployment;
use market::{
    DeliveryMode,
    catalogue::ListingTerms,
    checkout::{PaymentOption, Presented},
};
use x402_cardano::{
    method::{DefaultMethod, EscrowMethod, MempoolPolicy, PaymentMethod},
    wire::ConfirmationPolicy,
};

/// The configured payment methods.
pub struct Methods {
    instant: DefaultMethod,
    protected: Option<EscrowMethod>,
    /// Whether new protected sales are offered. If `false`, existing escrows are still served.
    sells_protected: bool,
    /// Number of newer blocks that a payment's block needs before the payment counts as confirmed.
    pub confirmations: u64,
}

impl Methods {
    /// Reads the payment methods from the settings.
    ///
    /// # Errors
    /// Returns an error if a setting is invalid.
    pub fn configured(lookup: &Lookup<'_>, keys: &KeyStore) -> Result<Self, SettingError> {
        const CONFIRMATIONS: &str = "L1_CONFIRMATIONS";
        const PROBLEM: &str = "must be a whole number from 0 to 20";
        let unusable = || SettingError { name: CONFIRMATIONS.into(), problem: PROBLEM };
        let confirmations = settings::whole_number(lookup, CONFIRMATIONS, 0, 0..=20, PROBLEM)?;
        let policy = i8::try_from(confirmations).ok().and_then(ConfirmationPolicy::new).ok_or_else(unusable)?;
        let instant = DefaultMethod::new(api_types::NETWORK, policy).map_err(|MempoolPolicy| unusable())?;
        let protected = match settings::deployment(lookup)? {
            None => None,
            Some(deployment) => {
                let name = settings::transfer_method(lookup, &deployment)?;
                let seller = keys.required_seller()?.clone();
                Some(
                    EscrowMethod::new(api_types::NETWORK, deployment, seller, name, policy)
                        .map_err(|MempoolPolicy| unusable())?,
                )
            }
        };
        let sells_protected = settings::switch(lookup, "PROTECTED_SALES", true)?;
        Ok(Self { instant, protected, sells_protected, confirmations })
    }

    /// Returns the escrow contract's deployment, or `None` if the operator has configured none.
    pub fn deployment(&self) -> Option<&Deployment> {
        self.protected.as_ref().map(EscrowMethod::deployment)
    }

    /// Returns the payment method of protected sales, or `None` if they are not offered.
    fn sold_protected(&self) -> Option<&EscrowMethod> {
        self.protected.as_ref().filter(|_| self.sells_protected)
    }

    /// Returns the payment methods that the facilitator offers to other servers: direct payment, and payment into the
    /// escrow.
    pub fn facilitator(&self) -> (&dyn PaymentMethod, Option<facilitator::Escrow<'_>>) {
        let escrow = self.protected.as_ref().map(|method| facilitator::Escrow {
            method,
            deployment: method.deployment(),
            name: method.transfer_method(),
            own_seller: *method.seller_address(),
        });
        (&self.instant, escrow)
    }

    /// Returns whether a listing with these delivery modes is offered with protection. Each 402 answer for such a
    /// listing contains a newly signed quote.
    pub fn quotes(&self, modes: &[DeliveryMode]) -> bool {
        self.sold_protected().is_some() && modes.contains(&DeliveryMode::Protected)
    }

    /// Returns the payment methods, cheapest first.
    pub fn options(&self) -> Vec<PaymentOption<'_>> {
        let protected = self.sold_protected().map(|method| (DeliveryMode::Protected, method as _));
        std::iter::once((DeliveryMode::Instant, &self.instant as _)).chain(protected).collect()
    }

    /// Returns the delivery mode that a payment names, or `None` if this service does not offer that mode.
    pub fn mode_of(&self, presented: &Presented<'_>) -> Option<DeliveryMode> {
        let accepted = presented.accepted().ok()?;
        let known = self.options().into_iter().find(|(_, method)| method.name() == accepted.extra.method());
        known.map(|(mode, _)| mode)
    }

    /// Returns the payment methods for a listing; an empty list if the listing is hidden.
    pub fn options_for(&self, terms: &ListingTerms) -> Vec<PaymentOption<'_>> {
        if terms.hidden { vec![] } else { self.options() }
    }
}
