//! The transfer method `default`: the buyer pays the seller's address directly.
//!
//! What a payment may be is deliberately narrow. It spends preprod outputs of keys, each with its owner's valid
//! signature, and has none of: mint, certificates, withdrawals, votes, proposals, donation, collateral, reference
//! inputs, scripts, redeemers, datums, Byron signatures, Byron or mainnet addresses. Tokens may pass through,
//! conserved exactly; metadata is welcome when it is what the body hashes. One output at `payTo` holds at least the
//! amount. For such a transaction the rules here are complete: the ledger refuses none that they accept.

use cardano::{Address, chain::Chain, keys::VerifyEd25519};
use serde_json::{Map, json};

use super::{
    Facts, Moment, Offer, VerifiedPayment, VerifyError,
    judge::Method,
    rules::{Case, plain},
};
use crate::{
    Refusal,
    wire::{Amount, Asset, ConfirmationPolicy, Network, PaymentRequirements, SCHEME_EXACT},
};

/// The name of this method.
pub const METHOD: &str = "default";

/// The requirements of a payment in lovelace to an address on preprod.
#[must_use]
pub fn requirements(
    pay_to: &Address,
    amount: Amount,
    max_timeout_seconds: u32,
    policy: ConfirmationPolicy,
) -> PaymentRequirements {
    let mut extra = Map::new();
    extra.insert("assetTransferMethod".into(), json!(METHOD));
    extra.insert("areFeesSponsored".into(), json!(false));
    extra.insert("confirmationPolicy".into(), json!({ "l1Confirmations": policy.l1_confirmations() }));
    PaymentRequirements {
        scheme: SCHEME_EXACT.into(),
        network: Network::Preprod,
        amount,
        asset: Asset::Lovelace,
        pay_to: pay_to.to_string(),
        max_timeout_seconds,
        extra,
    }
}

const METHOD_RULES: Method = Method(&[method_is_default, plain::outputs_are_plain]);

/// Verifies a payment: every rule but the last, that it is confirmed, which is settlement's.
///
/// # Errors
/// The first rule that it breaks, or a chain that cannot be asked.
pub async fn verify(
    requirements: &PaymentRequirements,
    offer: &Offer,
    chain: &impl Chain,
    signatures: &impl VerifyEd25519,
    moment: Moment,
) -> Result<VerifiedPayment, VerifyError> {
    let (payment, _) = METHOD_RULES.verify(Case { requirements, offer }, chain, signatures, moment).await?;
    Ok(payment)
}

/// As [`verify`], with facts that were gathered before.
///
/// # Errors
/// The first rule that the payment breaks.
pub async fn verify_with_facts(
    requirements: &PaymentRequirements,
    offer: &Offer,
    facts: &Facts,
    signatures: &impl VerifyEd25519,
    moment: Moment,
) -> Result<VerifiedPayment, Refusal> {
    METHOD_RULES.verify_with_facts(Case { requirements, offer }, facts, signatures, moment).await
}

fn method_is_default(case: &Case<'_>) -> Result<(), Refusal> {
    if case.requirements.asset_transfer_method() == METHOD {
        Ok(())
    } else {
        Err(Refusal::Requirements("assetTransferMethod is not default"))
    }
}
