//! The transfer method `default`: the buyer pays the seller's address directly.
//!
//! The accepted transactions are deliberately limited. They spend only preprod outputs at key addresses, each with its
//! owner's valid signature. They contain no mint, certificates, withdrawals, votes, proposals, donation, collateral,
//! reference inputs, scripts, redeemers, datums or Byron signatures, and no Byron or mainnet addresses. Tokens may pass
//! through if they are conserved exactly, and metadata is allowed if the body contains its hash. One output at `payTo`
//! holds at least the amount. For such transactions the rules here are complete: the ledger rejects none that they
//! accept.

use cardano::{
    Address, Lovelace,
    params::ProtocolParameters,
    slots::{Millis, SlotConfig},
    tx::build::NewOutput,
};

use super::{
    CannotPay, MempoolPolicy, OfferDraft, OfferError, Offered, PaymentMethod, PaymentOutput, Sale, at_least_in_a_block,
    on_a_test_network,
};
use crate::{
    Refusal,
    escrow::VerifiedLock,
    exact::{PaymentContext, VerificationContext, rules::plain},
    wire::{
        Accepted, Amount, Asset, ConfirmationPolicy, DefaultExtra, Extra, MAX_TIMEOUT_SECONDS, Network,
        PaymentRequirements, SCHEME_EXACT,
    },
};

const NAME: &str = "default";

/// The payment method `default`, which pays the seller directly.
#[derive(Clone, Copy, Debug)]
pub struct DefaultMethod {
    network: Network,
    policy: ConfirmationPolicy,
}

impl DefaultMethod {
    /// Creates the payment method `default` for a network and a confirmation policy.
    ///
    /// # Errors
    /// [`MempoolPolicy`] if the policy does not wait for a block.
    pub fn new(network: Network, policy: ConfirmationPolicy) -> Result<Self, MempoolPolicy> {
        Ok(Self { network, policy: at_least_in_a_block(policy)? })
    }

    fn offered(&self, sale: &Sale<'_>) -> Result<Offered, OfferError> {
        let entry = self.listed(sale)?;
        let PaymentRequirements { scheme, network, amount, asset, pay_to, max_timeout_seconds, extra } = entry;
        let extra = Extra::Default(extra);
        let requirements = PaymentRequirements { scheme, network, amount, asset, pay_to, max_timeout_seconds, extra };
        Ok(Offered { requirements, terms: None })
    }
}

impl PaymentMethod for DefaultMethod {
    fn name(&self) -> &'static str {
        NAME
    }

    fn network(&self) -> Network {
        self.network
    }

    fn draft(&self, sale: &Sale<'_>, _: Millis, _: [u8; 32]) -> Result<OfferDraft<'_>, OfferError> {
        Ok(OfferDraft::Ready(Box::new(self.offered(sale)?)))
    }

    fn listed(&self, sale: &Sale<'_>) -> Result<PaymentRequirements<DefaultExtra>, OfferError> {
        Ok(PaymentRequirements {
            scheme: SCHEME_EXACT.to_owned(),
            network: on_a_test_network(self.network)?,
            amount: Amount::new(sale.price.get()).ok_or(OfferError::Free)?,
            asset: Asset::Lovelace,
            pay_to: sale.seller.to_string(),
            max_timeout_seconds: MAX_TIMEOUT_SECONDS,
            extra: DefaultExtra {
                asset_transfer_method: Some(NAME.to_owned()),
                are_fees_sponsored: Some(false),
                confirmation_policy: Some(self.policy),
            },
        })
    }

    fn recognise(&self, sale: &Sale<'_>, accepted: &Accepted) -> Result<Offered, Refusal> {
        let offered = self.offered(sale).map_err(|_| Refusal::Requirements("the sale cannot be offered"))?;
        accepted.check(&offered.requirements)?;
        Ok(offered)
    }

    fn check(&self, case: &PaymentContext<'_>) -> Result<(), Refusal> {
        plain::outputs_are_plain(case)
    }

    fn check_on_chain(&self, _: &VerificationContext<'_>, _: &Address) -> Result<Option<VerifiedLock>, Refusal> {
        Ok(None)
    }

    fn output(
        &self,
        offered: &Offered,
        _: &Address,
        _: Option<&Address>,
        _: &ProtocolParameters,
        _: &SlotConfig,
    ) -> Result<PaymentOutput, CannotPay> {
        let PaymentRequirements { amount, asset, pay_to, extra, .. } = &offered.requirements;
        if extra.method() != NAME || *asset != Asset::Lovelace {
            return Err(CannotPay::OtherMethod);
        }
        let lovelace = Lovelace::new(amount.get()).ok_or(CannotPay::OutOfRange)?;
        let to: cardano::address::PaymentAddress = pay_to.parse()?;
        Ok(PaymentOutput { output: NewOutput::pay(to, lovelace), latest_end_slot: u64::MAX })
    }
}
