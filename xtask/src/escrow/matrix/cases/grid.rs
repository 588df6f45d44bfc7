//! Every action from every state, with a result and without one.

use escrow::{Action, Datum, datum::State};

use super::{Case, Group, Shows, named};
use crate::escrow::matrix::{
    honest::{Spending, escrow},
    transaction::{Attached, Transaction},
};

pub(super) fn cases() -> Vec<Case> {
    let mut group = Group::new("grid");
    for action in Action::ALL {
        for state in State::ALL {
            for (result, text) in [(vec![], "no result"), (vec![0x99; 32], "a result")] {
                let spending = Spending::of(action, Datum { result_hash: result, ..escrow(state) });
                let name = format!("{} with {text}", named(action, state));
                group.add(name.clone(), &spending, spending.transaction(), Shows::Cell);
                for next in could_follow(action) {
                    let mut transaction = spending.transaction();
                    if goes_on_as(&mut transaction, *next) {
                        group.add(format!("{name} on to {}", next.name()), &spending, transaction, Shows::Cell);
                    }
                }
            }
        }
    }
    group.cases
}

/// The states that an action leads to, depending on where the escrow stands: it must be the right one of them, and where a
/// forged lock's result contradicts its state, a refund request must lead to none.
const fn could_follow(action: Action) -> &'static [State] {
    match action {
        Action::SetRefundRequested => &[State::RefundRequested, State::Disputed],
        Action::SubmitResult => &[State::ResultSubmitted, State::Disputed],
        _ => &[],
    }
}

/// Lets the escrow go on in this state, if it goes on.
fn goes_on_as(transaction: &mut Transaction, state: State) -> bool {
    let next = transaction.outputs.iter_mut().find_map(|output| match &mut output.attached {
        Attached::Escrow(datum) => Some(datum),
        _ => None,
    });
    next.map(|datum| datum.state = state).is_some()
}
