//! Every action from every state, with a result and without one.

use escrow::{Action, Datum, datum::State};

use super::{Case, Group, Shows, named};
use crate::escrow::matrix::honest::{Spending, escrow};

pub(super) fn cases() -> Vec<Case> {
    let mut group = Group::new("grid");
    for action in Action::ALL {
        for state in State::ALL {
            for (result, text) in [(vec![], "no result"), (vec![0x99; 32], "a result")] {
                let spending = Spending::of(action, Datum { result_hash: result, ..escrow(state) });
                let name = format!("{} with {text}", named(action, state));
                group.add(name, &spending, spending.transaction(), Shows::Cell);
            }
        }
    }
    group.cases
}
