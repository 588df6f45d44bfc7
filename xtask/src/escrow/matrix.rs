//! `cargo xtask escrow matrix`: a compiled contract against the rules, case by case, in the Plutus evaluator.
//!
//! ```text
//!   cases ──┬── rules (a pure function) ───────────┬── differences: must be none
//!           └── contract (CEK machine, V3 context) ┘
//! ```

pub mod cases;
mod cbor;
pub mod evaluator;
pub mod honest;
pub mod random;
pub mod report;
pub mod rules;
pub mod transaction;
pub mod votes;

use std::{error::Error, process::ExitCode};

use clap::Args;

use super::BlueprintArgument;
use cases::Case;
use evaluator::{Evaluator, EvaluatorError, Outcome};
use rules::Broken;

/// What to compare, and how much to print.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    blueprint: BlueprintArgument,
    /// Print every case, not only the summary and the differences.
    #[arg(long)]
    all: bool,
    /// Judge this many random cases, too.
    #[arg(long, default_value_t = 0)]
    random: usize,
    /// Where the random cases begin.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// One case, judged by the rules and by the contract.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The case.
    pub case: Case,
    /// The rules that it breaks.
    pub broken: Vec<Broken>,
    /// What the contract says.
    pub outcome: Outcome,
}

/// How a contract's answer compares with the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// As the rules say.
    Same,
    /// It accepts what only our own contract promises to refuse.
    Unpromised,
    /// It accepts what the rules forbid.
    Laxer,
    /// It refuses what the rules permit.
    Stricter,
}

impl Judged {
    /// How the contract's answer compares with the rules.
    #[must_use]
    pub fn comparison(&self) -> Comparison {
        match (&self.outcome, self.broken.is_empty()) {
            (Outcome::Accepts(_), true) | (Outcome::Refuses, false) => Comparison::Same,
            (Outcome::Refuses, true) => Comparison::Stricter,
            (Outcome::Accepts(_), false) if self.broken.iter().all(|rule| rule.is_ours_alone()) => {
                Comparison::Unpromised
            }
            (Outcome::Accepts(_), false) => Comparison::Laxer,
        }
    }
}

/// Runs every case.
///
/// # Errors
/// When a script cannot be made or a transaction cannot be read, which is a mistake here and no answer.
pub fn judge(evaluator: &Evaluator, cases: Vec<Case>) -> Result<Vec<Judged>, EvaluatorError> {
    cases
        .into_iter()
        .map(|case| {
            let script = evaluator.script(&case.parameters)?;
            let transaction = case.transaction.clone().under(honest::SCRIPT, script.hash);
            let broken = rules::broken(&case.parameters, &transaction);
            let outcome = evaluator.run(&case.parameters, &transaction)?;
            Ok(Judged { case, broken, outcome })
        })
        .collect()
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let evaluator = Evaluator::new(arguments.blueprint.load()?)?;
    let mut cases = cases::all();
    cases.extend(random::cases(arguments.random, arguments.seed));
    let judged = judge(&evaluator, cases)?;
    let differences = report::print(&judged, arguments.all);
    Ok(if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests;
