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
    rules::{
        Case, ChainRule, Rule, Situation, accepted, amount, fee, inputs, metadata, min_utxo, network, nonce, plain,
        recipient, size, ttl, value, witnesses,
    },
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

/// The rules that need nothing but the payment, cheapest first.
const RULES: [Rule; 15] = [
    accepted::scheme,
    accepted::unchanged,
    method_is_default,
    network::network_id,
    network::output_addresses,
    plain::has_no_other_part,
    plain::outputs_are_plain,
    plain::is_marked_valid,
    metadata::has_no_scripts,
    metadata::matches_its_hash,
    nonce::is_an_input,
    recipient::is_paid,
    amount::is_enough,
    witnesses::exist,
    witnesses::required_signers_signed,
];

/// The rules that need the chain.
const CHAIN_RULES: [ChainRule; 15] = [
    ttl::is_set,
    ttl::has_not_passed,
    ttl::is_near_enough,
    ttl::has_begun,
    nonce::is_unspent,
    inputs::are_unspent,
    inputs::are_key_locked,
    inputs::carry_no_script,
    nonce::payer_is_not_payee,
    witnesses::owners_signed,
    value::is_conserved,
    size::transaction_fits,
    size::values_fit,
    min_utxo::is_held,
    fee::covers_the_minimum,
];

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
    let case = Case { requirements, offer };
    judge_alone(&case)?;
    witnesses::verify(signatures, offer).await?;
    let facts = Facts::gather(chain, &offer.tx.inputs).await?;
    Ok(judge(&Situation { case, facts: &facts, moment })?)
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
    let case = Case { requirements, offer };
    judge_alone(&case)?;
    witnesses::verify(signatures, offer).await?;
    judge(&Situation { case, facts, moment })
}

fn judge_alone(case: &Case<'_>) -> Result<(), Refusal> {
    RULES.iter().try_for_each(|rule| rule(case))
}

fn judge(situation: &Situation<'_>) -> Result<VerifiedPayment, Refusal> {
    CHAIN_RULES.iter().try_for_each(|rule| rule(situation))?;
    let Case { requirements, offer } = situation.case;
    Ok(VerifiedPayment {
        tx_id: offer.tx.id,
        payer: nonce::payer(situation)?,
        inputs: offer.tx.inputs.clone(),
        valid_until: offer.tx.ttl.ok_or(Refusal::TtlMissing)?,
        amount: requirements.amount,
        cbor: offer.tx.cbor().to_vec(),
    })
}

fn method_is_default(case: &Case<'_>) -> Result<(), Refusal> {
    if case.requirements.asset_transfer_method() == METHOD {
        Ok(())
    } else {
        Err(Refusal::Requirements("assetTransferMethod is not default"))
    }
}
