//! Cases of every action from every state, with a result hash and without one.

use surety_escrow::{Action, Datum, State};

use super::{super::scene::AT_SCRIPT, MatrixCases, Spending, escrow, named};

pub(super) fn cases(cases: &mut MatrixCases) {
    for action in Action::ALL {
        for state in State::ALL {
            for (result_hash, text) in [(vec![], "no result"), (vec![0x99; 32], "a result")] {
                let spending = Spending::of(action, Datum { result_hash, ..escrow(state) });
                let name = format!("{} with {text}", named(action, state));
                cases.cell(&name, &spending, |_| ());
                for next in could_follow(action) {
                    cases.cell(format!("{name} on to {}", next.name()), &spending, |tx| {
                        tx.each_to(AT_SCRIPT, |output| output.edit(|datum| datum.state = *next));
                    });
                }
            }
        }
    }
}

/// Returns the states that an action can lead to, depending on the escrow's state. A refund request must lead to none
/// of them if the result hash contradicts the state, which happens only in a forged lock.
const fn could_follow(action: Action) -> &'static [State] {
    match action {
        Action::SetRefundRequested => &[State::RefundRequested, State::Disputed],
        Action::SubmitResult => &[State::ResultSubmitted, State::Disputed],
        _ => &[],
    }
}
