//! Combines plans for several escrows into one transaction, which pays one fee and refers to the script once.
//!
//! The contract tells the escrows in a transaction apart by their reference signatures. For each escrow it counts only
//! outputs whose datum is that escrow's output reference, so no payment counts twice.

use std::collections::BTreeSet;

use cardano::{
    fees::ExUnits,
    tx::build::{TxPlan, Validity},
};

use super::Planner;

impl Planner<'_> {
    /// Combines plans into one plan, whose validity interval is the intersection of the plans' intervals. Returns
    /// `None` if the intersection or `plans` is empty.
    ///
    /// The scripts share a transaction's maximum execution units equally, so that the draft can be evaluated.
    #[must_use]
    pub fn together(&self, plans: Vec<TxPlan>) -> Option<TxPlan> {
        let count = u64::try_from(plans.len()).ok()?;
        let share = |units: u64| units.checked_div(count);
        let units =
            ExUnits { mem: share(self.parameters.max_tx_ex_mem)?, steps: share(self.parameters.max_tx_ex_steps)? };
        let from = plans.iter().map(|plan| plan.validity.from).max()?;
        let until = plans.iter().map(|plan| plan.validity.until).min()?;
        if from.is_some_and(|from| from >= until) {
            return None;
        }
        let mut whole = TxPlan { validity: Validity { from, until }, ..TxPlan::default() };
        let (mut references, mut signers) = (BTreeSet::new(), BTreeSet::new());
        for plan in plans {
            whole.outputs.extend(plan.outputs);
            whole.inputs.extend(plan.inputs);
            whole.script_inputs.extend(plan.script_inputs.into_iter().map(|mut input| {
                input.ex_units = units;
                input
            }));
            let new = plan.reference_inputs.into_iter().filter(|input| references.insert(input.reference));
            whole.reference_inputs.extend(new);
            whole.required_signers.extend(plan.required_signers.into_iter().filter(|key| signers.insert(*key)));
        }
        Some(whole)
    }
}
