//! The rules in their order, for every transfer method.
//!
//! Cheapest first: what the payment alone shows, then the signatures, then what one look at the payer's money and the
//! clock shows, then everything. A stranger who made up a transaction is found out before many calls are spent on him.
//! Some rules are implied by later ones (a TTL that has not passed is set, a signed input is unspent and a key's): they
//! stand here so that the refusal is theirs.

use cardano::{chain::Chain, keys::VerifyEd25519};

use super::{
    Facts, Moment, VerifiedPayment, VerifyError,
    rules::{
        Case, ChainRule, Rule, Situation, accepted, amount, fee, inputs, metadata, min_utxo, network, nonce, plain,
        recipient, size, ttl, value, witnesses,
    },
};
use crate::Refusal;

/// Rules that need nothing but the payment.
const RULES: &[Rule] = &[
    accepted::scheme,
    accepted::unchanged,
    inputs::are_few,
    network::network_id,
    network::output_addresses,
    plain::has_no_other_part,
    plain::is_marked_valid,
    metadata::has_no_scripts,
    metadata::matches_its_hash,
    nonce::is_an_input,
    recipient::is_paid,
    amount::is_enough,
    witnesses::exist,
    witnesses::required_signers_signed,
];

/// Rules that need the newest block and the output that the nonce names.
const PAYER_RULES: &[ChainRule] = &[
    ttl::is_set,
    ttl::has_not_passed,
    ttl::is_near_enough,
    ttl::has_begun,
    nonce::is_unspent,
    nonce::payer_is_not_payee,
    witnesses::payer_signed,
];

/// Rules that need every input.
const LEDGER_RULES: &[ChainRule] = &[
    inputs::are_unspent,
    inputs::are_key_locked,
    inputs::carry_no_script,
    witnesses::owners_signed,
    value::is_conserved,
    size::transaction_fits,
    size::values_fit,
    min_utxo::is_held,
    fee::covers_the_minimum,
];

/// A transfer method: the rules that it adds to those of all.
pub(super) struct Method(pub(super) &'static [Rule]);

impl Method {
    /// Verifies a payment, and hands back what was read for it.
    pub(super) async fn verify(
        &self,
        case: Case<'_>,
        chain: &impl Chain,
        signatures: &impl VerifyEd25519,
        moment: Moment,
    ) -> Result<(VerifiedPayment, Facts), VerifyError> {
        self.judge_alone(&case)?;
        witnesses::verify(signatures, case.offer).await?;
        let mut facts = Facts::of_payer(chain, case.offer).await?;
        judge(PAYER_RULES, &Situation { case, facts: &facts, moment })?;
        facts.complete(chain, case.offer).await?;
        let situation = Situation { case, facts: &facts, moment };
        judge(LEDGER_RULES, &situation)?;
        Ok((verified(&situation)?, facts))
    }

    /// The same with facts that were gathered before.
    pub(super) async fn verify_with_facts(
        &self,
        case: Case<'_>,
        facts: &Facts,
        signatures: &impl VerifyEd25519,
        moment: Moment,
    ) -> Result<VerifiedPayment, Refusal> {
        self.judge_alone(&case)?;
        witnesses::verify(signatures, case.offer).await?;
        let situation = Situation { case, facts, moment };
        judge(PAYER_RULES, &situation)?;
        judge(LEDGER_RULES, &situation)?;
        verified(&situation)
    }

    fn judge_alone(&self, case: &Case<'_>) -> Result<(), Refusal> {
        RULES.iter().chain(self.0).try_for_each(|rule| rule(case))
    }
}

fn judge(rules: &[ChainRule], situation: &Situation<'_>) -> Result<(), Refusal> {
    rules.iter().try_for_each(|rule| rule(situation))
}

fn verified(situation: &Situation<'_>) -> Result<VerifiedPayment, Refusal> {
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
