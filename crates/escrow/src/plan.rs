//! Plans the transaction for each action on an escrow: inputs, outputs, signers and validity interval, ready for
//! [`tx::build::build`](cardano::tx::build::build).
//!
//! ```text
//! Escrow (output and datum) + Step + ChainTime ──plan──> TxPlan ──build──> draft ──evaluate──> units
//!                                                          └── with_units(units and a margin) ──build──> sign, submit
//! ```
//!
//! The contract takes the end of the validity interval as the current time. The interval therefore ends soon, and
//! before every deadline. It begins when the action becomes possible, and never after the newest block, because nodes
//! reject transactions that are not valid yet.

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

/// Divisor that makes the margin one tenth of the evaluated execution units. The final transaction differs slightly
/// from the evaluated draft, for example in its fee, so the script may need slightly more units.
const MARGIN_DIVISOR: u64 = 10;

/// An escrow on the chain: an output with its decoded datum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Escrow {
    /// Output that holds the escrow.
    pub utxo: Utxo,
    /// Datum of that output.
    pub datum: Datum,
}

/// An action on an escrow, with its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The seller submits a result.
    SubmitResult(ContentHash),
    /// The buyer requests a refund.
    SetRefundRequested,
    /// The buyer releases the money to the seller.
    AuthorizeWithdrawal,
    /// The seller agrees to a refund.
    AuthorizeRefund,
    /// The seller collects the money and pays creators in the same transaction.
    Withdraw {
        /// Recipients and amounts, paid out of the money that the seller collects.
        payouts: Vec<(Address, Lovelace)>,
    },
    /// The buyer takes the money back.
    WithdrawRefund,
    /// Anyone pays out a disputed escrow according to the award that the arbiters signed.
    WithdrawDisputed {
        /// The signed award.
        intent: DisputeWithdrawal,
        /// The arbiters' signatures.
        signatures: Vec<AdminSignature>,
    },
}

/// Reason why no transaction can be planned for an action.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The contract would reject the action.
    #[error(transparent)]
    Refused(#[from] ContractRefusal),
    /// The action is possible only once a block has reached this time, in POSIX milliseconds.
    #[error("too early: possible from {0} on")]
    NotYet(Millis),
    /// The arbiters signed an award for an output that is not this escrow's.
    #[error("the award is for another output")]
    OtherOutput,
    /// The payouts exceed the amount that the seller collects.
    #[error("more is paid out than the escrow holds")]
    PayoutTooHigh,
    /// A payout address is invalid.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The transaction would break a limit of the ledger.
    #[error(transparent)]
    Ledger(#[from] BuildError),
    /// A time or an amount is out of range.
    #[error("a time or an amount is out of range")]
    OutOfRange,
}

/// Plans transactions for the escrows of one deployment.
#[derive(Clone, Copy, Debug)]
pub struct Planner<'a> {
    /// Deployed contract.
    pub deployment: &'a Deployment,
    /// Protocol parameters of the current epoch.
    pub parameters: &'a ProtocolParameters,
    /// Conversion between slots and time.
    pub slots: &'a SlotConfig,
}

impl Escrow {
    /// Reads the escrow in an output at this deployment's address.
    ///
    /// # Errors
    /// [`InvalidDatum`] if the output is at another address, has no datum of the contract, or can never be spent.
    pub fn read(utxo: Utxo, deployment: &Deployment) -> Result<Self, InvalidDatum> {
        if utxo.address != deployment.address().to_string() {
            return Err(InvalidDatum::Shape("address"));
        }
        Self::of(utxo)
    }

    /// Reads the escrow in an output at any address.
    ///
    /// # Errors
    /// [`InvalidDatum`] if the output has no datum of the contract, or can never be spent.
    pub fn of(utxo: Utxo) -> Result<Self, InvalidDatum> {
        let datum = Datum::from_cbor(utxo.inline_datum.as_deref().ok_or(InvalidDatum::Shape("datum"))?)?;
        if datum.reference_signature.len() < MIN_REFERENCE_SIGNATURE_BYTES {
            return Err(InvalidDatum::Shape("reference_signature"));
        }
        Ok(Self { utxo, datum })
    }
}

impl Step {
    /// Returns the contract's action for this step.
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
    /// Plans the transaction for a step at the given time. The plan grants the script the maximum execution units;
    /// build and evaluate it, and pass the result to [`Self::with_units`].
    ///
    /// # Errors
    /// [`PlanError::NotYet`] if the step becomes possible later; [`PlanError::Refused`] if the contract rejects it.
    pub fn plan(&self, escrow: &Escrow, step: &Step, time: ChainTime) -> Result<TxPlan, PlanError> {
        let rule = Rule::find(step.action(), &escrow.datum).ok_or(ContractRefusal::State)?;
        let validity = time.validity(rule.window(&escrow.datum), self.slots)?;
        let signatories: Vec<KeyHash> = rule.signer(&escrow.datum)?.into_iter().collect();
        let seen = self.seen(validity)?;
        Rule::permit(step.action(), &escrow.datum, escrow.utxo.value.lovelace, seen, &signatories)?;
        self.plan_within(escrow, step, validity)
    }

    /// Plans the transaction for a step with a given validity interval, without checking whether the contract permits
    /// the step in that interval.
    ///
    /// # Errors
    /// [`PlanError::Refused`] if no rule allows the step in the escrow's state; other errors if an output cannot be
    /// made.
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

    /// Replaces the execution units in a plan by those that an evaluation found, plus a margin, up to a transaction's
    /// maximum. An escrow input that is missing in `evaluated` keeps its units.
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

    /// Converts a validity interval in slots to the POSIX times that the contract sees.
    fn seen(&self, validity: Validity) -> Result<ValidityRange, PlanError> {
        let begins = |slot| self.slots.slot_begins_at(slot).ok_or(PlanError::OutOfRange);
        let from = validity.from.map(begins).transpose()?;
        Ok(ValidityRange { from, until: Some(begins(validity.until)?) })
    }

    /// Builds the output in which the escrow continues. The output holds the escrow's whole value, and more lovelace if
    /// the ledger requires it.
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

    /// Builds an output that the contract counts as a payout from this escrow: the inline datum is the escrow's output
    /// reference. Returns `None` if `value` is empty.
    fn tagged(&self, escrow: &Escrow, to: PlutusAddress, value: Value) -> Result<Option<NewOutput>, PlanError> {
        if value == Value::default() {
            return Ok(None);
        }
        let tag = to_cbor(&output_reference(&escrow.utxo.reference));
        self.at_least(NewOutput { to, value, inline_datum: Some(tag), script: None }).map(Some)
    }

    /// Raises an output's lovelace to the ledger's minimum. The difference is paid by the wallet that pays the fee.
    fn at_least(&self, mut output: NewOutput) -> Result<NewOutput, PlanError> {
        let least = output.min_lovelace(self.parameters)?;
        output.value.lovelace = output.value.lovelace.max(least);
        Ok(output)
    }
}

/// Converts the share that an award grants to a party into the value of an output.
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
