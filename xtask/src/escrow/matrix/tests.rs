use std::collections::HashSet;

use super::{
    cases::Shows,
    evaluator::{MAX_MEMORY, MAX_STEPS},
    rules::Broken,
    *,
};
use crate::escrow::blueprint::Blueprint;

const OURS: &str = include_str!("../../../../contracts/plutus.json");

#[test]
fn our_contract_differs_from_the_rules_in_no_case() {
    let judged = judge(&Evaluator::new(Blueprint::parse(OURS).unwrap()).unwrap(), cases::all()).unwrap();
    for judged in &judged {
        assert_eq!(
            judged.comparison(),
            Comparison::Same,
            "{}: {} {:?}",
            judged.case.group,
            judged.case.name,
            judged.broken
        );
    }
    let units = judged.iter().filter_map(|judged| match (&judged.outcome, judged.case.group) {
        (Outcome::Accepts(units), group) if group != "batches" => Some((units, &judged.case.name)),
        _ => None,
    });
    for (units, name) in units {
        assert!(units.memory < MAX_MEMORY / 5 && units.steps < MAX_STEPS / 5, "{name}: {units:?}");
    }
}

#[test]
fn our_contract_agrees_with_the_rules_on_what_nobody_thought_of() {
    let evaluator = Evaluator::new(Blueprint::parse(OURS).unwrap()).unwrap();
    let judged = judge(&evaluator, random::cases(1_000, 7)).unwrap();
    for judged in &judged {
        let (case, broken) = (&judged.case, &judged.broken);
        assert_eq!(judged.comparison(), Comparison::Same, "{} {broken:?} {:#?}", case.name, case.transaction);
    }
    let permitted = judged.iter().filter(|judged| judged.broken.is_empty()).count();
    assert!(permitted > 50, "{permitted} of {} are permitted: too few to show anything", judged.len());
}

#[test]
fn each_case_shows_what_it_was_made_to_show() {
    for case in cases::all() {
        let broken = rules::broken(&case.parameters, &case.transaction);
        match case.shows {
            Shows::Permitted => assert_eq!(broken, [], "{}: {}", case.group, case.name),
            Shows::Forbidden(rule) => assert_eq!(broken, [rule], "{}: {}", case.group, case.name),
            Shows::Cell => {}
        }
    }
}

#[test]
fn each_rule_alone_forbids_some_case() {
    let forbidding: HashSet<_> = cases::all()
        .into_iter()
        .filter_map(|case| match rules::broken(&case.parameters, &case.transaction)[..] {
            [rule] => Some(rule),
            _ => None,
        })
        .collect();
    let silent: Vec<_> = Broken::ALL.iter().filter(|rule| !forbidding.contains(rule)).collect();
    assert_eq!(silent, Vec::<&Broken>::new());
}

#[test]
fn cases_are_many_and_have_names_of_their_own() {
    let cases = cases::all();
    assert!(cases.len() >= 300);
    let names: HashSet<_> = cases.iter().map(|case| (case.group, &case.name)).collect();
    assert_eq!(names.len(), cases.len());
}

/// A contract under which anything goes differs wherever the rules forbid something, and nowhere else.
#[test]
fn a_contract_that_accepts_everything_is_found_out() {
    let judged = judge(&Evaluator::new(accepts_everything()).unwrap(), cases::all()).unwrap();
    for judged in judged {
        let permitted = judged.broken.is_empty();
        assert_eq!(judged.comparison() == Comparison::Same, permitted, "{}: {}", judged.case.group, judged.case.name);
    }
}

/// `\required admins cooldown context -> ()`, under our blueprint's name.
fn accepts_everything() -> Blueprint {
    let program = "(program 1.1.0 (lam a (lam b (lam c (lam d (con unit ()))))))";
    let program = uplc::parser::program(program).unwrap();
    let code = uplc::ast::Program::<uplc::ast::DeBruijn>::try_from(program).unwrap().to_cbor().unwrap();
    let hash = cardano::ScriptHash::new(cardano::hash::blake2b(&[&[3], code.as_slice()].concat()));
    let mut document: serde_json::Value = serde_json::from_str(OURS).unwrap();
    for validator in document["validators"].as_array_mut().unwrap() {
        validator["compiledCode"] = hex::encode(&code).into();
        validator["hash"] = hash.to_string().into();
    }
    Blueprint::parse(&document.to_string()).unwrap()
}
