//! Drafts the transaction for a step: builds it, has the provider evaluate it, and builds it again with the evaluated
//! units.

use std::collections::BTreeMap;

use cardano::{
    chain::{ChainError, Utxo},
    evaluation::{Evaluate, Evaluation},
    tx::build::{BuildError, ScriptInput, TxPlan, UnsignedTx, Wallet, build},
};

use super::{ChainTime, Escrow, PlanError, Planner, Step};

/// Reason why no transaction could be drafted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// The step cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The wallet cannot pay for the transaction, or the transaction breaks a limit of the ledger.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The contract rejects the transaction although the plan follows its rules. Contains the provider's reason,
    /// truncated.
    #[error("the contract refuses the transaction: {0}")]
    Refused(String),
    /// The provider did not answer.
    #[error(transparent)]
    Chain(#[from] ChainError),
}

impl DraftError {
    /// Returns `true` if the wallet's unreserved outputs hold too little lovelace.
    #[must_use]
    pub const fn lacks_funds(&self) -> bool {
        matches!(self, Self::Build(BuildError::Insufficient { .. } | BuildError::CollateralMissing { .. }))
    }

    /// Returns `true` if a retry with more of the wallet's outputs may succeed, because the given outputs hold too
    /// little lovelace, or are so small or so full of tokens and scripts that the transaction becomes too large.
    #[must_use]
    pub const fn may_succeed_with_more_utxos(&self) -> bool {
        self.lacks_funds()
            || matches!(self, Self::Build(BuildError::TooLarge { .. } | BuildError::ScriptsTooLarge { .. }))
    }
}

impl Planner<'_> {
    /// Drafts the transaction for a step at the given time, paid for by `wallet`.
    ///
    /// # Errors
    /// See [`DraftError`]. Nothing is reserved or submitted.
    pub async fn draft(
        &self,
        provider: &impl Evaluate,
        escrow: &Escrow,
        step: &Step,
        time: ChainTime,
        wallet: &Wallet<'_>,
    ) -> Result<UnsignedTx, DraftError> {
        let plan = self.plan(escrow, step, time)?;
        self.draft_of(provider, plan, wallet).await
    }

    /// Drafts the transaction for a plan.
    ///
    /// # Errors
    /// See [`Planner::draft`].
    pub async fn draft_of(
        &self,
        provider: &impl Evaluate,
        plan: TxPlan,
        wallet: &Wallet<'_>,
    ) -> Result<UnsignedTx, DraftError> {
        self.draft_chained(provider, plan, wallet, &[]).await
    }

    /// Drafts the transaction for a plan that spends outputs of unconfirmed transactions. `unconfirmed` contains these
    /// outputs, because the provider may not know them.
    ///
    /// # Errors
    /// See [`Planner::draft`].
    pub async fn draft_chained(
        &self,
        provider: &impl Evaluate,
        plan: TxPlan,
        wallet: &Wallet<'_>,
        unconfirmed: &[Utxo],
    ) -> Result<UnsignedTx, DraftError> {
        let first = build(&plan, wallet, self.parameters)?;
        let units = match provider.evaluate_chained(&first.unsigned_cbor()?, unconfirmed).await? {
            Evaluation::Refused(reason) => return Err(DraftError::Refused(reason)),
            Evaluation::Accepted(units) => units,
        };
        let mut evaluated = BTreeMap::new();
        for ScriptInput { utxo, .. } in &plan.script_inputs {
            let found = first.input_index(&utxo.reference).and_then(|index| units.get(&index));
            let found = found.ok_or_else(|| ChainError::Malformed("an evaluation of something else".to_owned()))?;
            evaluated.insert(utxo.reference, *found);
        }
        Ok(build(&self.with_units(plan, &evaluated), wallet, self.parameters)?)
    }
}
