//! The configured payment methods.

use edge::{
    keys::KeyStore,
    settings::{self, Lookup, SettingError},
};
use escrow::Deployment;
use market::{DeliveryMode, catalogue::ListingTerms, checkout::PaymentOption};
use x402_cardano::{
    method::{DefaultMethod, EscrowMethod, MempoolPolicy},
    wire::ConfirmationPolicy,
};

/// The configured payment methods.
pub struct Methods {
    instant: DefaultMethod,
    protected: Option<EscrowMethod>,
    /// Whether protected sales are offered. If not, escrows that exist are still served.
    sells_protected: bool,
    /// Confirmations that a payment needs.
    pub confirmations: u64,
}

impl Methods {
    /// Reads the configuration.
    ///
    /// # Errors
    /// A setting is invalid.
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

    /// Returns the escrow contract's deployment, if configured.
    pub fn deployment(&self) -> Option<&Deployment> {
        self.protected.as_ref().map(EscrowMethod::deployment)
    }

    /// Returns the method of protected sales, if they are offered.
    fn sold_protected(&self) -> Option<&EscrowMethod> {
        self.protected.as_ref().filter(|_| self.sells_protected)
    }

    /// Whether a listing with these modes is sold with protection, so that each 402 has a newly signed quote.
    pub fn quotes(&self, modes: &[DeliveryMode]) -> bool {
        self.sold_protected().is_some() && modes.contains(&DeliveryMode::Protected)
    }

    /// Returns the payment methods, cheapest first.
    pub fn options(&self) -> Vec<PaymentOption<'_>> {
        let protected = self.sold_protected().map(|method| (DeliveryMode::Protected, method as _));
        std::iter::once((DeliveryMode::Instant, &self.instant as _)).chain(protected).collect()
    }

    /// Returns the payment methods for a listing; none if it is hidden.
    pub fn options_for(&self, terms: &ListingTerms) -> Vec<PaymentOption<'_>> {
        if terms.hidden { vec![] } else { self.options() }
    }
}
