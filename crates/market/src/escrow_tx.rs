//! Builds a transaction that performs a step on one or several escrows. Used by requests, which post a result as soon
//! as its lock is accepted, and by the watcher.

use cardano::{
    chain::Utxo,
    evaluation::Evaluate,
    keys::SigningKey,
    tx::build::{BuiltTx, NewOutput, TxPlan, Wallet},
};
use escrow::plan::{ChainTime, DraftError, Escrow, PlanError, Planner, Step};

/// Plans one step of an escrow. A refund pays the whole escrow to the buyer even if the datum names no refund address.
/// Otherwise the platform's wallet, which pays the fee, would receive the rest as change.
pub(crate) fn plan(planner: Planner<'_>, escrow: &Escrow, step: &Step, time: ChainTime) -> Result<TxPlan, PlanError> {
    let mut plan = planner.plan(escrow, step, time)?;
    if *step == Step::WithdrawRefund
        && escrow.datum.buyer_return_address.is_none()
        && let Some(buyer) = escrow.datum.buyer.key_address()
    {
        let mut output = NewOutput::pay(buyer, escrow.utxo.value.lovelace);
        output.value = escrow.utxo.value.clone();
        plan.outputs.push(output);
    }
    Ok(plan)
}

/// Combines plans into one transaction and signs it. `unconfirmed` contains outputs that the transaction spends
/// although no block includes them yet.
pub(crate) async fn build(
    planner: Planner<'_>,
    provider: &impl Evaluate,
    plans: Vec<TxPlan>,
    wallet: &Wallet<'_>,
    unconfirmed: &[Utxo],
    keys: &[&SigningKey],
) -> Result<BuiltTx, DraftError> {
    let plan = planner.together(plans).ok_or(PlanError::OutOfRange)?;
    Ok(planner.draft_chained(provider, plan, wallet, unconfirmed).await?.sign(keys)?)
}
