//! The matrix for people: a grid of actions by states, the groups of cases, and every difference.

use escrow::{Action, datum::State};

use super::{
    Comparison, Judged,
    cases::Shows,
    evaluator::{MAX_MEMORY, MAX_STEPS, Outcome, Units},
};

/// Prints the matrix; answers how many differences there are.
#[must_use]
pub fn print(judged: &[Judged], all: bool) -> usize {
    if all {
        judged.iter().for_each(print_case);
        println!();
    }
    print_grid(judged);
    print_groups(judged);
    print_units(judged);
    let differs = |judged: &&Judged| matches!(judged.comparison(), Comparison::Laxer | Comparison::Stricter);
    let differences: Vec<_> = judged.iter().filter(differs).collect();
    for difference in &differences {
        println!("DIFFERENCE ({:?})", difference.comparison());
        print_case(difference);
    }
    let unpromised: Vec<_> = judged.iter().filter(|judged| judged.comparison() == Comparison::Unpromised).collect();
    for case in &unpromised {
        println!("accepted, though not by our own contract: {}: {} {:?}", case.case.group, case.case.name, case.broken);
    }
    println!("{} cases, {} differences from the rules", judged.len(), differences.len());
    differences.len()
}

fn print_case(judged: &Judged) {
    let rules = if judged.broken.is_empty() { "accept".to_owned() } else { format!("refuse {:?}", judged.broken) };
    let contract = match judged.outcome {
        Outcome::Accepts(units) => format!("accept {:>9} mem {:>11} steps", units.memory, units.steps),
        Outcome::Refuses => "refuse".to_owned(),
    };
    println!("{:<13} {:<90} rules {rules:<30} contract {contract}", judged.case.group, judged.case.name);
}

/// What the contract does with each action in each state: by honest results, and by the other ones.
fn print_grid(judged: &[Judged]) {
    println!("accepted (A) and refused (.), without and with a result:\n");
    print!("{:<20}", "");
    State::ALL.iter().for_each(|state| print!("{:<20}", state.name()));
    println!();
    for action in Action::ALL {
        print!("{:<20}", action.name());
        for state in State::ALL {
            let prefix = format!("{} from {} with", action.name(), state.name());
            let cells =
                judged.iter().filter(|judged| judged.case.group == "grid" && judged.case.name.starts_with(&prefix));
            let cell: String =
                cells.map(|judged| if matches!(judged.outcome, Outcome::Accepts(_)) { 'A' } else { '.' }).collect();
            print!("{cell:<20}");
        }
        println!();
    }
    println!();
}

fn print_groups(judged: &[Judged]) {
    let mut groups: Vec<_> = judged.iter().map(|judged| judged.case.group).collect();
    groups.dedup();
    println!("{:<16}{:>8}{:>10}{:>9}{:>13}", "cases about", "number", "accepted", "refused", "differences");
    for group in groups {
        let cases: Vec<_> = judged.iter().filter(|judged| judged.case.group == group).collect();
        let accepted = cases.iter().filter(|judged| matches!(judged.outcome, Outcome::Accepts(_))).count();
        let differs = |judged: &&&Judged| matches!(judged.comparison(), Comparison::Laxer | Comparison::Stricter);
        let differences = cases.iter().filter(differs).count();
        let refused = cases.len().saturating_sub(accepted);
        println!("{group:<16}{:>8}{accepted:>10}{refused:>9}{differences:>13}", cases.len());
    }
    println!();
}

/// What each action costs at the most, over the cases that spend one escrow and keep every rule.
fn print_units(judged: &[Judged]) {
    println!("{:<22}{:>10}{:>14}   at most, and how often that fits a transaction", "units", "memory", "steps");
    for action in Action::ALL {
        let of_action = |judged: &&Judged| {
            let group = judged.case.group;
            let named = judged.case.name.starts_with(&format!("{} from ", action.name())) && group != "batches";
            let settles = action == Action::WithdrawDisputed && group == "settlements";
            judged.case.shows == Shows::Permitted && (named || settles)
        };
        let units = judged.iter().filter(of_action).filter_map(|judged| match judged.outcome {
            Outcome::Accepts(units) => Some(units),
            Outcome::Refuses => None,
        });
        let most = units.reduce(|a, b| Units { memory: a.memory.max(b.memory), steps: a.steps.max(b.steps) });
        let Some(Units { memory, steps }) = most else { continue };
        let fits = [MAX_MEMORY.checked_div(memory), MAX_STEPS.checked_div(steps)].into_iter().flatten().min();
        println!("{:<22}{memory:>10}{steps:>14}   {}", action.name(), fits.unwrap_or_default());
    }
    println!();
}
