//! Compares a compiled contract with the rules, case by case, in the Plutus evaluator.
//!
//! ```text
//!   cases ──┬── judge (our rules, a pure function) ──┬── differences: must be none
//!           └── contract (CEK machine, V3 context) ──┘
//! ```
//!
//! `ESCROW_MATRIX=all` prints every case instead of the summary and the differences. `RANDOM_CASES` sets the number of
//! random cases and `SEED` their seed.

mod cases;
mod evaluator;
mod judge;
mod random;
mod report;
mod scene;
mod transaction;

use std::{collections::HashSet, env, num::NonZero, sync::LazyLock, thread};

use blueprint::Blueprint;
use cardano::fees::ExUnits;

use crate::blueprint;
use cases::{MatrixCase, Shows};
use evaluator::Evaluator;
use judge::{Broken, broken};
use scene::LIVE;

/// Number of cases written by hand, which must be updated whenever one is added or removed.
const CASES: usize = 1_703;

/// A case, with the verdict of the rules and that of the contract.
struct JudgedCase {
    case: MatrixCase,
    broken: Vec<Broken>,
    /// Execution units that the contract used; `None` if it rejected the transaction.
    accepted: Option<ExUnits>,
}

/// Difference between the contract's verdict and that of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Same,
    /// The contract accepts a transaction that only our own contract must reject.
    Unpromised,
    /// The contract accepts a transaction that the rules forbid.
    Laxer,
    /// The contract rejects a transaction that the rules permit.
    Stricter,
}

impl JudgedCase {
    fn comparison(&self) -> Comparison {
        match (self.accepted.is_some(), self.broken.is_empty()) {
            (accepted, permitted) if accepted == permitted => Comparison::Same,
            (false, _) => Comparison::Stricter,
            _ if self.broken.iter().all(|rule| rule.is_ours_alone()) => Comparison::Unpromised,
            _ => Comparison::Laxer,
        }
    }
}

/// Computes both verdicts on each case, on all cores.
fn judge(contract: &Blueprint, mut cases: Vec<MatrixCase>) -> Vec<JudgedCase> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let share = cases.len().div_ceil(cores);
    thread::scope(|scope| {
        let judges: Vec<_> = (0..cores)
            .map(|_| {
                let cases: Vec<MatrixCase> = cases.drain(..share.min(cases.len())).collect();
                scope.spawn(move || judge_here(contract.clone(), cases))
            })
            .collect();
        judges.into_iter().flat_map(|judge| judge.join().unwrap()).collect()
    })
}

fn judge_here(contract: Blueprint, cases: Vec<MatrixCase>) -> Vec<JudgedCase> {
    let evaluator = Evaluator::new(contract);
    let judged = cases.into_iter().map(|case| {
        let transaction = case.transaction.clone().under(evaluator.script(&case.parameters).hash);
        let broken = broken(&case.parameters, &transaction);
        let accepted = evaluator.run(&case.parameters, &transaction);
        JudgedCase { case, broken, accepted }
    });
    judged.collect()
}

static JUDGED: LazyLock<Vec<JudgedCase>> = LazyLock::new(|| judge(&blueprint(), cases::all()));

fn number(name: &str, otherwise: usize) -> usize {
    env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

#[test]
fn the_contract_differs_from_the_rules_in_no_case() {
    let differences = report::print(&JUDGED, env::var("ESCROW_MATRIX").is_ok_and(|what| what == "all"));
    assert_eq!(differences, 0);
    assert_eq!(JUDGED.len(), CASES);
}

#[test]
fn five_escrows_fit_one_transaction() {
    for JudgedCase { case, accepted, .. } in JUDGED.iter().filter(|judged| judged.case.group != "batches") {
        let fits = accepted
            .is_none_or(|ExUnits { mem, steps }| mem < LIVE.max_tx_ex_mem / 5 && steps < LIVE.max_tx_ex_steps / 5);
        assert!(fits, "{}: {accepted:?}", case.name);
    }
}

#[test]
fn the_contract_agrees_with_the_rules_on_random_transactions() {
    let judged = judge(&blueprint(), random::cases(number("RANDOM_CASES", 1_000), number("SEED", 7)));
    for judged in &judged {
        let (case, broken) = (&judged.case, &judged.broken);
        let differs = matches!(judged.comparison(), Comparison::Laxer | Comparison::Stricter);
        assert!(!differs, "{} {broken:?} {:#?}", case.name, case.transaction);
    }
    let permitted = judged.iter().filter(|judged| judged.broken.is_empty()).count();
    assert!(permitted * 25 > judged.len(), "{permitted} of {} are permitted: too few to show anything", judged.len());
}

#[test]
fn each_case_has_its_intended_outcome() {
    for JudgedCase { case, broken, .. } in &*JUDGED {
        match case.shows {
            Shows::Permitted => assert_eq!(*broken, [], "{}: {}", case.group, case.name),
            Shows::Forbidden(rule) => assert_eq!(*broken, [rule], "{}: {}", case.group, case.name),
            Shows::Cell => {}
        }
    }
}

#[test]
fn each_rule_alone_forbids_some_case() {
    let alone = JUDGED.iter().filter(|judged| judged.broken.len() == 1).map(|judged| judged.broken[0]);
    let alone: HashSet<Broken> = alone.collect();
    let silent: Vec<_> = Broken::ALL.iter().filter(|rule| !alone.contains(rule)).collect();
    assert_eq!(silent, Vec::<&Broken>::new());
}

#[test]
fn each_case_has_a_name_of_its_own() {
    let names: HashSet<_> = JUDGED.iter().map(|judged| (judged.case.group, &judged.case.name)).collect();
    assert_eq!(names.len(), JUDGED.len());
}

/// A contract that accepts everything must differ from the rules in every case that they forbid, and in no other.
#[test]
fn the_matrix_detects_a_contract_that_accepts_everything() {
    for judged in judge(&accepts_everything(), cases::all()) {
        let permitted = judged.broken.is_empty();
        assert_eq!(judged.comparison() == Comparison::Same, permitted, "{}: {}", judged.case.group, judged.case.name);
    }
}

/// Returns a blueprint of the program `\required admins cooldown context -> ()`, under the title of our validator.
fn accepts_everything() -> Blueprint {
    let program = uplc::parser::program("(program 1.1.0 (lam a (lam b (lam c (lam d (con unit ()))))))").unwrap();
    let code = uplc::ast::Program::<uplc::ast::DeBruijn>::try_from(program).unwrap().to_cbor().unwrap();
    let hash = cardano::ScriptHash::new(cardano::hash::blake2b(&[&[3], code.as_slice()].concat()));
    let ours = include_str!("../../../../../contracts/plutus.json");
    let mut document: serde_json::Value = serde_json::from_str(ours).unwrap();
    for validator in document["validators"].as_array_mut().unwrap() {
        validator["compiledCode"] = hex::encode(&code).into();
        validator["hash"] = hash.to_string().into();
    }
    Blueprint::parse(&document.to_string()).unwrap()
}
