//! Applies the rules in order, for every transfer method.
//!
//! The cheapest checks come first: the payment alone, then the signatures, then the payer's output and the time, then
//! all inputs. A made-up transaction is rejected before it causes many calls. Some rules are implied by later ones (a
//! TTL that has not passed must be set); they exist to give the rejection a more precise code.

use cardano::{chain::Chain, keys::VerifyEd25519};

use super::{
    Facts, Moment, Payment, PaymentContext, VerificationContext, VerifiedPayment, VerifyError,
    rules::{
        ChainRule, PaymentRule, datum, inputs, limits, metadata, network, nonce, payee, plain, validity, value,
        witnesses,
    },
};
use crate::{
    Refusal,
    method::{InvalidQuote, Offered, PaymentMethod},
    wire::SCHEME_EXACT,
};

/// Rules that need only the payment, in the order in which they are checked.
const RULES: &[PaymentRule] = &[
    network::network_id,
    network::output_addresses,
    plain::has_no_other_part,
    plain::is_marked_valid,
    metadata::has_no_scripts,
    metadata::matches_its_hash,
    nonce::is_an_input,
    payee::is_paid,
    payee::is_paid_enough,
    witnesses::exist,
    witnesses::required_signers_signed,
];

/// Rules that need the newest block and the output whose reference is the payment's nonce, in the order in which they
/// are checked.
const PAYER_RULES: &[ChainRule] = &[
    validity::has_an_end,
    validity::has_not_ended,
    validity::ends_soon_enough,
    validity::has_begun,
    nonce::is_unspent,
    nonce::payer_is_not_payee,
    witnesses::payer_signed,
];

/// Rules that need every output that the payment spends, in the order in which they are checked.
const LEDGER_RULES: &[ChainRule] = &[
    inputs::are_unspent,
    inputs::are_key_locked,
    inputs::carry_no_script,
    witnesses::owners_signed,
    value::is_conserved,
    limits::transaction_fits,
    limits::values_fit,
    limits::outputs_hold_their_minimum,
    limits::fee_covers_the_minimum,
];

/// Verifies a payment against the offer. Checks every rule of the scheme except confirmation, which belongs to
/// settlement.
///
/// # Errors
/// Returns the first rule that the payment breaks, or an error if the chain cannot be read.
pub async fn verify(
    method: &dyn PaymentMethod,
    offered: &Offered,
    payment: &Payment,
    chain: &impl Chain,
    signatures: &impl VerifyEd25519,
    moment: Moment,
) -> Result<VerifiedPayment, VerifyError> {
    let case = PaymentContext::new(offered, payment)?;
    // [`verify_with_facts`] omits this check, because it does not look up the inputs.
    inputs::are_few(&case)?;
    judge_alone(method, &case, moment)?;
    witnesses::verify(signatures, payment).await?;
    let mut facts = Facts::of_payer(chain, payment).await?;
    judge(PAYER_RULES, &VerificationContext { case: &case, facts: &facts, moment })?;
    facts.complete(chain, payment).await?;
    let context = VerificationContext { case: &case, facts: &facts, moment };
    // If the inputs hold too many tokens, the lookup stopped early, so this check comes before the other rules.
    inputs::hold_few_tokens(&context)?;
    Ok(judge_whole(method, &context)?)
}

/// Verifies a payment like [`verify`], with a state of the chain that the caller has read before.
///
/// # Errors
/// Returns the first rule that the payment breaks.
pub async fn verify_with_facts(
    method: &dyn PaymentMethod,
    offered: &Offered,
    payment: &Payment,
    facts: &Facts,
    signatures: &impl VerifyEd25519,
    moment: Moment,
) -> Result<VerifiedPayment, Refusal> {
    let case = PaymentContext::new(offered, payment)?;
    judge_alone(method, &case, moment)?;
    witnesses::verify(signatures, payment).await?;
    let context = VerificationContext { case: &case, facts, moment };
    judge(PAYER_RULES, &context)?;
    judge_whole(method, &context)
}

fn judge_alone(method: &dyn PaymentMethod, case: &PaymentContext<'_>, moment: Moment) -> Result<(), Refusal> {
    if case.offered.requirements.scheme != SCHEME_EXACT {
        return Err(Refusal::Requirements("scheme is not exact"));
    }
    if case.offered.requirements.extra.method() != method.name() {
        return Err(Refusal::Requirements("assetTransferMethod is another method's"));
    }
    if case.offered.open_until().is_some_and(|end| moment.now_ms >= end) {
        return Err(InvalidQuote::Expired.into());
    }
    RULES.iter().try_for_each(|rule| rule(case))?;
    method.check(case)?;
    datum::byte_strings_are_short(case)
}

fn judge(rules: &[ChainRule], context: &VerificationContext<'_>) -> Result<(), Refusal> {
    rules.iter().try_for_each(|rule| rule(context))
}

fn judge_whole(method: &dyn PaymentMethod, context: &VerificationContext<'_>) -> Result<VerifiedPayment, Refusal> {
    judge(LEDGER_RULES, context)?;
    let payer = nonce::payer(context)?;
    let lock = method.check_on_chain(context, &payer)?;
    let PaymentContext { offered, payment, .. } = context.case;
    Ok(VerifiedPayment {
        tx_id: payment.tx.id,
        payer: lock.as_ref().map_or(payer, |lock| lock.buyer),
        inputs: payment.tx.inputs.clone(),
        valid_until: validity::end(context)?,
        amount: offered.requirements.amount,
        lock,
        public: context.facts.has_payment(),
        newest_height: context.facts.tip.height,
        cbor: payment.tx.cbor().to_vec(),
    })
}
