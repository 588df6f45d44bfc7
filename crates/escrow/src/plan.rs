//! One transaction plan for each action: what is spent, made and signed, and when, ready for
//! [`cardano::tx::build::build`].
//!
//! ```text
//! Escrow (output and datum) + Step + ChainTime ──plan──> TxPlan ──build──> draft ──evaluate──> units
//!                                                          └── with_units(units and a margin) ──build──> sign, submit
//! ```
//!
//! The contract's "now" is the end of a transaction's validity, so the end is kept close, and inside every deadline.
//! The beginning is where the action opens. It is never after the newest block, for a node refuses what is not valid
//! yet.

use std::collections::BTreeMap;

use cardano::{
    Address, ContentHash, KeyHash, Lovelace, TxRef,
    address::AddressError,
    chain::{Utxo, Value},
    fees::ExUnits,
    params::ProtocolParameters,
    slots::{Millis, SlotConfig},
    tx::build::{BuildError, NewOutput, ReferenceInput, ScriptInput, TxPlan, Validity},
};

use crate::{
    address::PlutusAddress,
    codec::{InvalidDatum, to_cbor},
    datum::{Datum, MIN_REFERENCE_SIGNATURE_BYTES},
    deployment::Deployment,
    dispute::{DisputeWithdrawal, output_reference},
    redeemer::{Action, AdminSignature, AssetValue, Redeemer},
    rules::{ContractRefusal, Effect, PayoutRule, Rule, ValidityRange},
};

mod draft;
mod time;
mod together;

pub use draft::DraftError;
pub use time::{ChainTime, LEAST_WINDOW_MS};

/// Of the units that an evaluation says, how much more is asked for: a tenth. The evaluation is of a draft whose fee,
/// and so whose context, differs a little from the final transaction's.
const MARGIN_DIVISOR: u64 = 10;

/// An escrow on the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Escrow {
    /// The output that holds it.
    pub utxo: Utxo,
    /// Its datum.
    pub datum: Datum,
}

/// What to do with an escrow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The seller posts a result.
    SubmitResult(ContentHash),
    /// The buyer asks for a refund.
    SetRefundRequested,
    /// The buyer gives the money free.
    AuthorizeWithdrawal,
    /// The seller gives the money back.
    AuthorizeRefund,
    /// The seller collects, and pays creators in the same transaction.
    Withdraw {
        /// Who is paid how much out of it.
        payouts: Vec<(Address, Lovelace)>,
    },
    /// The buyer takes the money back.
    WithdrawRefund,
    /// Anyone settles the dispute as the arbiters signed.
    WithdrawDisputed {
        /// What they signed.
        intent: DisputeWithdrawal,
        /// Their signatures.
        signatures: Vec<AdminSignature>,
    },
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The contract would refuse it, now or permanently.
    #[error(transparent)]
    Refused(#[from] ContractRefusal),
    /// Possible from this time on, or from the first block after it.
    #[error("too early: possible from {0} on")]
    NotYet(Millis),
    /// What the arbiters signed is about another output.
    #[error("the award is about another output")]
    OtherOutput,
    /// More is paid out than the escrow holds.
    #[error("more is paid out than the escrow holds")]
    PayoutTooHigh,
    /// An address that no transaction can pay to.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The ledger's limits.
    #[error(transparent)]
    Ledger(#[from] BuildError),
    /// A time or an amount beyond what the ledger counts.
    #[error("a time or an amount is out of range")]
    OutOfRange,
}

/// Where and by which parameters escrows are spent.
#[derive(Clone, Copy, Debug)]
pub struct Planner<'a> {
    /// The contract.
    pub deployment: &'a Deployment,
    /// The protocol parameters of the current epoch.
    pub parameters: &'a ProtocolParameters,
    /// How slots map to time.
    pub slots: &'a SlotConfig,
}

impl Escrow {
    /// The escrow that this output is.
    ///
    /// # Errors
    /// [`InvalidDatum`] for an output elsewhere, without the contract's datum, or that can never be spent.
    pub fn read(utxo: Utxo, deployment: &Deployment) -> Result<Self, InvalidDatum> {
        if utxo.address != deployment.address().to_string() {
            return Err(InvalidDatum::Shape("address"));
        }
        Self::of(utxo)
    }

    /// The escrow that this output is, at any address.
    ///
    /// # Errors
    /// [`InvalidDatum`] for an output without the contract's datum, or that can never be spent.
    pub fn of(utxo: Utxo) -> Result<Self, InvalidDatum> {
        let datum = Datum::from_cbor(utxo.inline_datum.as_deref().ok_or(InvalidDatum::Shape("datum"))?)?;
        if datum.reference_signature.len() < MIN_REFERENCE_SIGNATURE_BYTES {
            return Err(InvalidDatum::Shape("reference_signature"));
        }
        Ok(Self { utxo, datum })
    }
}

impl Step {
    /// The contract's name for it.
    #[must_use]
    pub const fn action(&self) -> Action {
        match self {
            Self::SubmitResult(_) => Action::SubmitResult,
            Self::SetRefundRequested => Action::SetRefundRequested,
            Self::AuthorizeWithdrawal => Action::AuthorizeWithdrawal,
            Self::AuthorizeRefund => Action::AuthorizeRefund,
            Self::Withdraw { .. } => Action::Withdraw,
            Self::WithdrawRefund => Action::WithdrawRefund,
            Self::WithdrawDisputed { .. } => Action::WithdrawDisputed,
        }
    }

    fn redeemer(&self) -> Option<Redeemer> {
        match self {
            Self::WithdrawDisputed { intent, signatures } => Some(Redeemer::WithdrawDisputed {
                buyer_value: intent.buyer_value.clone(),
                seller_value: intent.seller_value.clone(),
                admin_signatures: signatures.clone(),
            }),
            other => Redeemer::plain(other.action()),
        }
    }
}

impl Planner<'_> {
    /// The plan for a step at this time, with the most units that a transaction may use: for the draft that is
    /// evaluated.
    ///
    /// # Errors
    /// [`PlanError::NotYet`] where waiting helps; [`PlanError::Refused`] where it does not.
    pub fn plan(&self, escrow: &Escrow, step: &Step, time: ChainTime) -> Result<TxPlan, PlanError> {
        let rule = Rule::find(step.action(), &escrow.datum).ok_or(ContractRefusal::State)?;
        let validity = time.validity(rule.window(&escrow.datum), self.slots)?;
        let signatories: Vec<KeyHash> = rule.signer(&escrow.datum)?.into_iter().collect();
        let seen = self.seen(validity)?;
        Rule::permit(step.action(), &escrow.datum, escrow.utxo.value.lovelace, seen, &signatories)?;
        self.plan_within(escrow, step, validity)
    }

    /// The plan for a step in this validity, whatever the contract will say to it.
    ///
    /// # Errors
    /// A step that no rule knows in the escrow's state, and outputs that cannot be made.
    pub fn plan_within(&self, escrow: &Escrow, step: &Step, validity: Validity) -> Result<TxPlan, PlanError> {
        let rule = Rule::find(step.action(), &escrow.datum).ok_or(ContractRefusal::State)?;
        let outputs = match rule.effect {
            Effect::Continue { .. } => vec![self.continuation(rule, escrow, step, validity)?],
            Effect::End(payout) => self.payouts(payout, escrow, step)?,
        };
        let units = ExUnits { mem: self.parameters.max_tx_ex_mem, steps: self.parameters.max_tx_ex_steps };
        Ok(TxPlan {
            outputs,
            script_inputs: vec![ScriptInput {
                utxo: escrow.utxo.clone(),
                redeemer: step.redeemer().ok_or(ContractRefusal::State)?.to_cbor(),
                ex_units: units,
            }],
            reference_inputs: vec![ReferenceInput {
                reference: self.deployment.reference_script,
                script_bytes: self.deployment.reference_script_bytes.into(),
            }],
            required_signers: rule.signer(&escrow.datum)?.into_iter().collect(),
            validity,
            ..TxPlan::default()
        })
    }

    /// This plan with the units that an evaluation found for each escrow, and a margin, but never more than a
    /// transaction may use. An escrow without any keeps what it has.
    #[must_use]
    pub fn with_units(&self, mut plan: TxPlan, evaluated: &BTreeMap<TxRef, ExUnits>) -> TxPlan {
        let more = |units: u64| units.saturating_add(units.checked_div(MARGIN_DIVISOR).unwrap_or(0)).saturating_add(1);
        for input in &mut plan.script_inputs {
            let Some(evaluated) = evaluated.get(&input.utxo.reference) else { continue };
            input.ex_units = ExUnits {
                mem: more(evaluated.mem).min(self.parameters.max_tx_ex_mem),
                steps: more(evaluated.steps).min(self.parameters.max_tx_ex_steps),
            };
        }
        plan
    }

    /// A validity as the contract sees it.
    fn seen(&self, validity: Validity) -> Result<ValidityRange, PlanError> {
        let begins = |slot| self.slots.slot_begins_at(slot).ok_or(PlanError::OutOfRange);
        let from = validity.from.map(begins).transpose()?;
        Ok(ValidityRange { from, until: Some(begins(validity.until)?) })
    }

    /// The escrow after the step: all its value, and what the ledger asks for beyond that.
    fn continuation(
        &self,
        rule: &Rule,
        escrow: &Escrow,
        step: &Step,
        validity: Validity,
    ) -> Result<NewOutput, PlanError> {
        let now = self.slots.slot_begins_at(validity.until).ok_or(PlanError::OutOfRange)?;
        let result = match step {
            Step::SubmitResult(result) => Some(result),
            _ => None,
        };
        let period = self.deployment.parameters.cooldown_period;
        let datum = rule.next(&escrow.datum, now, period, result).ok_or(PlanError::OutOfRange)?;
        self.at_least(NewOutput {
            to: PlutusAddress::script(self.deployment.script_hash),
            value: escrow.utxo.value.clone(),
            inline_datum: Some(datum.to_cbor()),
            script: None,
        })
    }

    fn payouts(&self, payout: PayoutRule, escrow: &Escrow, step: &Step) -> Result<Vec<NewOutput>, PlanError> {
        let datum = &escrow.datum;
        let held = &escrow.utxo.value;
        let mut outputs = Vec::new();
        match (payout, step) {
            (PayoutRule::SellerCollects, Step::Withdraw { payouts }) => {
                let rest = held.lovelace.checked_sub(datum.collateral_return).ok_or(ContractRefusal::Collateral)?;
                let paid = Lovelace::checked_sum(payouts.iter().map(|(_, amount)| *amount));
                if paid.is_none_or(|paid| paid > rest) {
                    return Err(PlanError::PayoutTooHigh);
                }
                let collateral = Value { lovelace: datum.collateral_return, ..Value::default() };
                outputs.extend(self.tagged(escrow, datum.buyer_payout_address(), collateral)?);
                if let Some(seller) = datum.seller_return_address {
                    outputs.extend(self.tagged(escrow, seller, Value { lovelace: rest, ..held.clone() })?);
                }
                outputs.extend(payouts.iter().map(|(to, amount)| NewOutput::pay(*to, *amount)));
            }
            (PayoutRule::BuyerRefunded, _) => {
                if let Some(buyer) = datum.buyer_return_address {
                    outputs.extend(self.tagged(escrow, buyer, held.clone())?);
                }
            }
            (PayoutRule::AsSigned, Step::WithdrawDisputed { intent, .. }) => {
                if intent.own_ref != escrow.utxo.reference {
                    return Err(PlanError::OtherOutput);
                }
                outputs.extend(self.tagged(escrow, datum.buyer_payout_address(), value_of(&intent.buyer_value)?)?);
                outputs.extend(self.tagged(escrow, datum.seller_payout_address(), value_of(&intent.seller_value)?)?);
            }
            (PayoutRule::SellerCollects | PayoutRule::AsSigned, _) => return Err(ContractRefusal::State.into()),
        }
        Ok(outputs)
    }

    /// An output that the contract counts as paid for this escrow: its inline datum is the escrow's name. Nothing
    /// needs no output.
    fn tagged(&self, escrow: &Escrow, to: PlutusAddress, value: Value) -> Result<Option<NewOutput>, PlanError> {
        if value == Value::default() {
            return Ok(None);
        }
        let tag = to_cbor(&output_reference(&escrow.utxo.reference));
        self.at_least(NewOutput { to, value, inline_datum: Some(tag), script: None }).map(Some)
    }

    /// Raises an output to the least that the ledger allows, at the expense of the wallet that pays the fee.
    fn at_least(&self, mut output: NewOutput) -> Result<NewOutput, PlanError> {
        let least = output.min_lovelace(self.parameters)?;
        output.value.lovelace = output.value.lovelace.max(least);
        Ok(output)
    }
}

/// A signed value as an output's.
fn value_of(signed: &AssetValue) -> Result<Value, PlanError> {
    let mut value = Value { lovelace: signed.lovelace_of(), ..Value::default() };
    for (policy, names) in signed.0.iter().filter(|(policy, _)| !policy.is_empty()) {
        for (name, quantity) in names {
            let unit = hex::encode(policy) + &hex::encode(name);
            if value.assets.insert(unit, *quantity).is_some() {
                return Err(PlanError::OutOfRange);
            }
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests;
