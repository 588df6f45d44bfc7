//! The Plutus evaluator: which transactions a compiled contract accepts, and at what cost.

use std::{cell::RefCell, collections::BTreeMap};

use cardano::slots::SlotConfig;
use escrow::Parameters;
use pallas_codec::minicbor;
use uplc::tx::eval_phase_two_raw_with_protocol;

use super::{cbor, transaction::Transaction};
use crate::escrow::blueprint::{Blueprint, BlueprintError, Script};

/// Memory units that the scripts of one transaction may use on preprod and mainnet.
pub const MAX_MEMORY: u64 = 14_000_000;
/// CPU steps that the scripts of one transaction may use on preprod and mainnet.
pub const MAX_STEPS: u64 = 10_000_000_000;
/// Conway after the Plomin hard fork, which preprod and mainnet run.
const PROTOCOL_VERSION: u16 = 10;

/// Protocol parameters of preprod as the local ledger has them; of them, the costs of Plutus V3.
const PARAMETERS: &str = include_str!("../../../../devnet/parameters.json");
/// Plutus V3 among the cost models of a transaction's protocol parameters (`conway.cddl`, `cost_models`).
const PLUTUS_V3: u8 = 2;

/// What one transaction's scripts used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Units {
    /// Memory units.
    pub memory: u64,
    /// CPU steps.
    pub steps: u64,
}

/// What the evaluator says of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All scripts succeed within the limits.
    Accepts(Units),
    /// A script fails.
    Refuses,
}

/// Why the evaluator has no answer: never a script's doing.
#[derive(Debug, thiserror::Error)]
pub enum EvaluatorError {
    /// The script cannot be made.
    #[error(transparent)]
    Blueprint(#[from] BlueprintError),
    /// The costs are not there.
    #[error("devnet/parameters.json has no costs of Plutus V3: {0}")]
    NoCosts(String),
    /// The transaction is not one: a mistake of the case.
    #[error("the evaluator cannot read the transaction: {0}")]
    Unreadable(String),
}

/// A contract, ready to be run under any parameters.
pub struct Evaluator {
    blueprint: Blueprint,
    /// Cost models, as CBOR.
    costs: Vec<u8>,
    /// Scripts by their parameters; the cases share a few.
    applied: RefCell<Vec<(Parameters, Script)>>,
}

impl Evaluator {
    /// An evaluator of this contract, at preprod's costs.
    ///
    /// # Errors
    /// When the ledger's parameters have no costs.
    pub fn new(blueprint: Blueprint) -> Result<Self, EvaluatorError> {
        Ok(Self { blueprint, costs: costs()?, applied: RefCell::new(Vec::new()) })
    }

    /// The script under these parameters, wise or not.
    ///
    /// # Errors
    /// When the blueprint's code is no program.
    pub fn script(&self, parameters: &Parameters) -> Result<Script, BlueprintError> {
        if let Some((_, script)) = self.applied.borrow().iter().find(|(applied, _)| applied == parameters) {
            return Ok(script.clone());
        }
        let script = self.blueprint.apply(parameters)?;
        self.applied.borrow_mut().push((parameters.clone(), script.clone()));
        Ok(script)
    }

    /// Runs every script of the transaction, each in its real script context.
    ///
    /// # Errors
    /// When the transaction cannot be read; a script that fails is an [`Outcome`].
    pub fn run(&self, parameters: &Parameters, transaction: &Transaction) -> Result<Outcome, EvaluatorError> {
        let unreadable = |error: &dyn std::fmt::Display| EvaluatorError::Unreadable(error.to_string());
        let script = self.script(parameters)?;
        let encoded = cbor::encode(transaction, &script.cbor).map_err(|error| unreadable(&error))?;
        let slots = SlotConfig::PREPROD;
        let evaluated = eval_phase_two_raw_with_protocol(
            &encoded.transaction,
            &encoded.resolved,
            Some(&self.costs),
            (MAX_STEPS, MAX_MEMORY),
            (slots.zero_time_ms, slots.zero_slot, slots.slot_length_ms),
            PROTOCOL_VERSION,
            true,
            |_| (),
        );
        match evaluated {
            Ok(redeemers) => {
                let mut units = Units::default();
                for (_, result) in redeemers {
                    let cost = result.cost();
                    units.memory = units.memory.saturating_add(cost.mem.unsigned_abs());
                    units.steps = units.steps.saturating_add(cost.cpu.unsigned_abs());
                }
                let within = units.memory <= MAX_MEMORY && units.steps <= MAX_STEPS;
                Ok(if within { Outcome::Accepts(units) } else { Outcome::Refuses })
            }
            Err(error) => match root(error) {
                uplc::tx::error::Error::Machine(..) => Ok(Outcome::Refuses),
                error => Err(unreadable(&error)),
            },
        }
    }
}

fn costs() -> Result<Vec<u8>, EvaluatorError> {
    let missing = |error: &dyn std::fmt::Display| EvaluatorError::NoCosts(error.to_string());
    let parameters: serde_json::Value = serde_json::from_str(PARAMETERS).map_err(|error| missing(&error))?;
    let list = parameters.pointer("/cost_models_raw/PlutusV3").cloned().unwrap_or_default();
    let costs: Vec<i64> = serde_json::from_value(list).map_err(|error| missing(&error))?;
    minicbor::to_vec(BTreeMap::from([(PLUTUS_V3, costs)])).map_err(|error| missing(&error))
}

/// The error inside the name of the redeemer that it happened to.
fn root(error: uplc::tx::error::Error) -> uplc::tx::error::Error {
    match error {
        uplc::tx::error::Error::RedeemerError { err, .. } => root(*err),
        error => error,
    }
}
