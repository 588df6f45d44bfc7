//! Prints the results of the matrix: a grid of actions by states, the groups of cases, the cost of each action, and
//! every difference between rules and contract.

use cardano::fees::ExUnits;
use surety_escrow::{Action, State};

use super::{Comparison, JudgedCase, Shows, scene::LIVE};

/// Prints the results and returns the number of differences between rules and contract. `all` prints every case.
pub fn print(judged: &[JudgedCase], all: bool) -> usize {
    judged.iter().filter(|_| all).for_each(print_case);
    print_grid(judged);
    print_groups(judged);
    print_units(judged);
    let mut differences = 0;
    for judged in judged {
        match judged.comparison() {
            Comparison::Same => continue,
            Comparison::Unpromised => print!("accepted, though not by our own contract: "),
            difference => {
                differences += 1;
                print!("DIFFERENCE ({difference:?}): ");
            }
        }
        print_case(judged);
    }
    println!("{} cases, {differences} differences from the rules", judged.len());
    differences
}

fn print_case(JudgedCase { case, broken, accepted }: &JudgedCase) {
    let rules = if broken.is_empty() { "accept".to_owned() } else { format!("refuse {broken:?}") };
    let contract = accepted.map_or("refuse".to_owned(), |units| format!("accept {units:?}"));
    println!("{:<13} {:<90} rules {rules:<30} contract {contract}", case.group, case.name);
}

/// Prints whether the contract accepts each action in each state, with and without a result.
fn print_grid(judged: &[JudgedCase]) {
    print!("accepted (A) and refused (.), without and with a result:\n\n{:<20}", "");
    State::ALL.iter().for_each(|state| print!("{:<20}", state.name()));
    for action in Action::ALL {
        print!("\n{:<20}", action.name());
        for state in State::ALL {
            let prefix = format!("{} from {} with", action.name(), state.name());
            let cells =
                judged.iter().filter(|JudgedCase { case, .. }| case.group == "grid" && case.name.starts_with(&prefix));
            let cell: String = cells.map(|judged| if judged.accepted.is_some() { 'A' } else { '.' }).collect();
            print!("{cell:<20}");
        }
    }
    println!("\n");
}

fn print_groups(judged: &[JudgedCase]) {
    println!("{:<16}{:>8}{:>10}{:>9}", "cases about", "number", "accepted", "refused");
    for cases in judged.chunk_by(|a, b| a.case.group == b.case.group) {
        let accepted = cases.iter().filter(|judged| judged.accepted.is_some()).count();
        println!("{:<16}{:>8}{accepted:>10}{:>9}", cases[0].case.group, cases.len(), cases.len() - accepted);
    }
    println!();
}

/// Prints the maximum cost of each action, over the valid cases that spend one escrow.
fn print_units(judged: &[JudgedCase]) {
    println!("{:<22}{:>10}{:>14}   at most, and how often that fits a transaction", "units", "memory", "steps");
    for action in Action::ALL {
        let of_action = |JudgedCase { case, .. }: &&JudgedCase| {
            let named = case.name.starts_with(&format!("{} from ", action.name())) && case.group != "batches";
            let settles = action == Action::WithdrawDisputed && case.group == "awards";
            case.shows == Shows::Permitted && (named || settles)
        };
        let most = |a: ExUnits, b: ExUnits| ExUnits { mem: a.mem.max(b.mem), steps: a.steps.max(b.steps) };
        let used = judged.iter().filter(of_action).filter_map(|judged| judged.accepted).reduce(most);
        let Some(ExUnits { mem, steps }) = used else { continue };
        let fits = (LIVE.max_tx_ex_mem / mem).min(LIVE.max_tx_ex_steps / steps);
        println!("{:<22}{mem:>10}{steps:>14}   {fits}", action.name());
    }
    println!();
}
