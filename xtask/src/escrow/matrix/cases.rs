//! The cases: each an honest transaction, or one with a single thing changed, and what must become of it.

mod batches;
mod continuations;
mod grid;
mod payouts;
mod settlements;
mod shapes;
mod signers;
mod terms;
mod times;

use escrow::{Action, Parameters, datum::State, rules::Effect};

use super::{
    honest::{Spending, nearest_rule},
    rules::Broken,
    transaction::Transaction,
};

/// What a case was made to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// This is permitted.
    Permitted,
    /// Exactly this rule forbids it.
    Forbidden(Broken),
    /// Whatever the rules say: one cell of the grid of everything with everything.
    Cell,
}

/// One transaction under one deployment.
#[derive(Clone, Debug)]
pub struct Case {
    /// What the case varies.
    pub group: &'static str,
    /// What it does, in a few words.
    pub name: String,
    /// The script's parameters.
    pub parameters: Parameters,
    /// The transaction, at the placeholder's address.
    pub transaction: Transaction,
    /// What it was made to show.
    pub shows: Shows,
}

/// Cases of one group, as they are made.
struct Group {
    name: &'static str,
    cases: Vec<Case>,
}

impl Group {
    const fn new(name: &'static str) -> Self {
        Self { name, cases: vec![] }
    }

    fn add(&mut self, name: String, spending: &Spending, transaction: Transaction, shows: Shows) {
        let parameters = spending.parameters.clone();
        self.cases.push(Case { group: self.name, name, parameters, transaction, shows });
    }

    fn permitted(&mut self, name: String, spending: &Spending, change: impl FnOnce(&mut Transaction)) {
        let mut transaction = spending.transaction();
        change(&mut transaction);
        self.add(name, spending, transaction, Shows::Permitted);
    }

    fn forbidden(&mut self, rule: Broken, name: String, spending: &Spending, change: impl FnOnce(&mut Transaction)) {
        let mut transaction = spending.transaction();
        change(&mut transaction);
        self.add(name, spending, transaction, Shows::Forbidden(rule));
    }
}

/// Every case, in the order of the report.
#[must_use]
pub fn all() -> Vec<Case> {
    [
        grid::cases(),
        times::cases(),
        signers::cases(),
        terms::cases(),
        continuations::cases(),
        shapes::cases(),
        batches::cases(),
        payouts::cases(),
        settlements::cases(),
    ]
    .concat()
}

/// Each action from each state in which honest people use it.
fn honest_pairs() -> impl Iterator<Item = (Action, State)> {
    escrow::rules::RULES
        .iter()
        .flat_map(|rule| rule.from.iter().map(|state| (rule.action, *state)))
        .filter(|(action, state)| {
            let spending = Spending::new(*action, *state);
            escrow::rules::Rule::find(*action, &spending.datum).is_some()
        })
        .fold(Vec::new(), |mut pairs: Vec<(Action, State)>, pair| {
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
            pairs
        })
        .into_iter()
}

/// Those of [`honest_pairs`] after which the escrow goes on.
fn continuing_pairs() -> impl Iterator<Item = (Action, State)> {
    honest_pairs().filter(|(action, state)| {
        let spending = Spending::new(*action, *state);
        matches!(nearest_rule(*action, &spending.datum).map(|rule| rule.effect), Some(Effect::Continue { .. }))
    })
}

/// `SubmitResult from FundsLocked`.
fn named(action: Action, state: State) -> String {
    format!("{} from {}", action.name(), state.name())
}
