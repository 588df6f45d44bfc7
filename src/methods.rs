//! The ways to pay that are configured.

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

/// The ways to pay that the operator configured.
pub struct Methods {
    instant: DefaultMethod,
    protected: Option<EscrowMethod>,
    /// Whether anything more is sold protected: a party with money in the contract can still act on it.
    sells_protected: bool,
    /// Newer blocks that a payment waits for.
    pub confirmations: u64,
}

impl Methods {
    /// What the operator configured.
    ///
    /// # Errors
    /// A setting that is there and unusable.
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

    /// The contract that protected payments are locked in, if there is one.
    pub fn deployment(&self) -> Option<&Deployment> {
        self.protected.as_ref().map(EscrowMethod::deployment)
    }

    /// How payments into it are sold, if they are.
    fn sold_protected(&self) -> Option<&EscrowMethod> {
        self.protected.as_ref().filter(|_| self.sells_protected)
    }

    /// Whether a listing with these modes is sold protected, so that each 402 carries a freshly signed quote.
    pub fn quotes(&self, modes: &[DeliveryMode]) -> bool {
        self.sold_protected().is_some() && modes.contains(&DeliveryMode::Protected)
    }

    /// The ways to pay, cheapest first.
    pub fn options(&self) -> Vec<PaymentOption<'_>> {
        let protected = self.sold_protected().map(|method| (DeliveryMode::Protected, method as _));
        std::iter::once((DeliveryMode::Instant, &self.instant as _)).chain(protected).collect()
    }

    /// The options for a listing: none where the operator hid it, for that has no new buyers.
    pub fn options_for(&self, terms: &ListingTerms) -> Vec<PaymentOption<'_>> {
        if terms.hidden { vec![] } else { self.options() }
    }
}
