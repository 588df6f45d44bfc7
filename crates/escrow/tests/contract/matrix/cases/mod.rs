//! The cases of the matrix. Each is an honest transaction or one with a single change, and the verdict that is
//! expected.

mod awards;
mod batches;
mod continuations;
mod grid;
mod payouts;
mod shapes;
mod signers;
mod terms;
mod times;

use surety_escrow::{
    Action, Parameters, State,
    rules::{Effect, RULES, Rule},
};

use super::{
    judge::Broken,
    scene::{Spending, escrow},
    transaction::TxInfo,
};

/// Verdict that is expected for a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// The contract accepts the transaction.
    Permitted,
    /// The transaction breaks exactly this rule.
    Forbidden(Broken),
    /// No particular verdict, except that rules and contract agree: one cell of a grid, or several broken rules at
    /// once.
    Cell,
}

/// A test transaction, with the parameters of the contract that it runs.
#[derive(Clone, Debug)]
pub struct MatrixCase {
    /// Name of the group of cases to which this one belongs.
    pub group: &'static str,
    pub name: String,
    pub parameters: Parameters,
    /// The transaction, in which the script's hash is still the placeholder.
    pub transaction: TxInfo,
    pub shows: Shows,
}

/// The cases that have been added so far.
struct MatrixCases {
    group: &'static str,
    all: Vec<MatrixCase>,
}

impl MatrixCases {
    fn add(&mut self, shows: Shows, name: impl Into<String>, spending: &Spending, change: impl FnOnce(&mut TxInfo)) {
        let mut transaction = spending.transaction();
        change(&mut transaction);
        let (group, parameters) = (self.group, spending.parameters.clone());
        self.all.push(MatrixCase { group, name: name.into(), parameters, transaction, shows });
    }

    fn permitted(&mut self, name: impl Into<String>, spending: &Spending, change: impl FnOnce(&mut TxInfo)) {
        self.add(Shows::Permitted, name, spending, change);
    }

    fn cell(&mut self, name: impl Into<String>, spending: &Spending, change: impl FnOnce(&mut TxInfo)) {
        self.add(Shows::Cell, name, spending, change);
    }

    fn forbidden(
        &mut self,
        rule: Broken,
        name: impl Into<String>,
        spending: &Spending,
        change: impl FnOnce(&mut TxInfo),
    ) {
        self.add(Shows::Forbidden(rule), name, spending, change);
    }

    /// Adds a case whose transaction breaks exactly `rule`, or none if `rule` is `None`.
    fn decided(
        &mut self,
        rule: Option<Broken>,
        name: impl Into<String>,
        spending: &Spending,
        change: impl FnOnce(&mut TxInfo),
    ) {
        self.add(rule.map_or(Shows::Permitted, Shows::Forbidden), name, spending, change);
    }
}

/// The name of a group of cases, and the function that adds them.
type Group = (&'static str, fn(&mut MatrixCases));

/// Returns every case, in the order of the report.
pub fn all() -> Vec<MatrixCase> {
    let groups: [Group; 9] = [
        ("grid", grid::cases),
        ("times", times::cases),
        ("signers", signers::cases),
        ("terms", terms::cases),
        ("continuations", continuations::cases),
        ("shapes", shapes::cases),
        ("batches", batches::cases),
        ("payouts", payouts::cases),
        ("awards", awards::cases),
    ];
    let mut cases = MatrixCases { group: "", all: vec![] };
    for (group, make) in groups {
        cases.group = group;
        make(&mut cases);
    }
    cases.all
}

/// Returns each action from each state in which honest parties take it: a name, the action, and its rule.
fn honest() -> Vec<(String, Spending, &'static Rule)> {
    let mut pairs: Vec<(Action, State)> = vec![];
    for pair in RULES.iter().flat_map(|rule| rule.from.iter().map(|state| (rule.action, *state))) {
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    let found = |(action, state)| {
        let rule = Rule::find(action, &escrow(state))?;
        Some((named(action, state), Spending::new(action, state), rule))
    };
    pairs.into_iter().filter_map(found).collect()
}

/// Returns the entries of [`honest`] after which the escrow continues.
fn continuing() -> impl Iterator<Item = (String, Spending, &'static Rule)> {
    honest().into_iter().filter(|(.., rule)| matches!(rule.effect, Effect::Continue { .. }))
}

fn named(action: Action, state: State) -> String {
    format!("{} from {}", action.name(), state.name())
}
