//! From a step to a transaction that its keys can sign: built, evaluated by the provider, built again.

use std::collections::BTreeMap;

use cardano::{
    TxRef,
    chain::{ChainError, Utxo},
    evaluation::{Evaluate, Evaluation},
    tx::build::{BuildError, ScriptInput, TxPlan, UnsignedTx, Wallet, build},
};

use super::{ChainTime, Escrow, PlanError, Planner, Step};

/// Why there is no transaction for a step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// It cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The wallet cannot pay for it.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The contract refuses it, against the rules that it was planned by; with the provider's reason.
    #[error("the contract refuses the transaction: {0}")]
    Refused(String),
    /// The provider cannot be asked.
    #[error(transparent)]
    Chain(#[from] ChainError),
}

impl DraftError {
    /// Whether it is a refusal whose reason names this output: another transaction spends it.
    #[must_use]
    pub fn names(&self, output: &TxRef) -> bool {
        matches!(self, Self::Refused(reason) if reason.contains(&output.tx.to_string()))
    }

    /// Whether the wallet has too little for it that is free.
    #[must_use]
    pub const fn lacks_funds(&self) -> bool {
        matches!(self, Self::Build(BuildError::Insufficient { .. } | BuildError::CollateralMissing { .. }))
    }

    /// Whether more of the wallet may help. It has too little free money, or only in outputs that do not fit together,
    /// such as those full of tokens.
    #[must_use]
    pub const fn wants_more_of_the_wallet(&self) -> bool {
        self.lacks_funds()
            || matches!(self, Self::Build(BuildError::TooLarge { .. } | BuildError::ScriptsTooLarge { .. }))
    }
}

impl Planner<'_> {
    /// The transaction for a step at this time, paid for by this wallet.
    ///
    /// # Errors
    /// See [`DraftError`]; nothing was reserved or sent.
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

    /// The transaction for a plan.
    ///
    /// # Errors
    /// As [`Planner::draft`].
    pub async fn draft_of(
        &self,
        provider: &impl Evaluate,
        plan: TxPlan,
        wallet: &Wallet<'_>,
    ) -> Result<UnsignedTx, DraftError> {
        self.draft_chained(provider, plan, wallet, &[]).await
    }

    /// The transaction for a plan that spends outputs of transactions that no block has yet.
    ///
    /// # Errors
    /// As [`Planner::draft`].
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
