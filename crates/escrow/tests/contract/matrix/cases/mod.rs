//! The cases: each is an honest transaction, or one with a single change, and the expected verdict.

mod awards;
mod batches;
mod continuations;
mod grid;
mod payouts;
mod shapes;
mod signers;
mod terms;
mod times;

use escrow::{
    Action, Parameters, State,
    rules::{Effect, RULES, Rule},
};

use super::{
    judge::Broken,
    scene::{Spending, escrow},
    transaction::TxInfo,
};

/// Expectation of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// The transaction is permitted.
    Permitted,
    /// The transaction breaks exactly this rule.
    Forbidden(Broken),
    /// No expectation: one cell of a grid, or several broken rules at once.
    Cell,
}

/// A transaction under a deployment.
#[derive(Clone, Debug)]
pub struct MatrixCase {
    /// Subject that the group of cases varies.
    pub group: &'static str,
    pub name: String,
    pub parameters: Parameters,
    /// The transaction, with escrows at the placeholder script's address.
    pub transaction: TxInfo,
    pub shows: Shows,
}

/// Collects the cases.
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

    /// Adds a case that breaks this rule, or is permitted if there is none.
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

/// Name of a group and the function that adds its cases.
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

/// Returns each action from each state in which honest parties use it: name, spending and rule.
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
