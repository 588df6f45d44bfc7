//! Back to the lock: the transaction that made the escrow in the state in which a purchase locks it.
//!
//! ```text
//! lock ──> FundsLocked ──> ResultSubmitted ──> Disputed
//!           fresh: made by anybody     <── walked back, each step one that the contract allows
//! ```
//!
//! The contract does not run when an output is made, so an output that says `Disputed` shows nothing. One that goes back
//! by the contract's steps to a fresh `FundsLocked` was disputed by its buyer. No step leads to `FundsLocked`, so the
//! first one met is the lock.

use std::collections::BTreeSet;

use cardano::{
    TxHash,
    chain::{Chain, ChainError, Utxo},
    evaluation::Evaluate,
    tx::TransactionEffects,
};
use escrow::{Action, Datum, Deployment, State, plan::Escrow, rules::Rule};
use market::arbiter::{self as store, Walk};
use sql::Database;
use x402_cardano::settlement::Sleep;

use crate::{Arbiter, ResolveError};

/// Steps back that one request takes: each is two calls to the provider, and others are needed for the payout. A party can
/// lengthen the way by one step in each cooldown; the next request goes on where this one stopped.
const MAX_STEPS: usize = 10;

impl<D: Database, C: Chain + Evaluate, Z: Sleep> Arbiter<'_, D, C, Z> {
    /// The lock of an escrow.
    pub(crate) async fn lock_of(&self, escrow: &Escrow, noted: Option<Walk>) -> Result<TxHash, ResolveError> {
        if let Some(lock) = noted.and_then(|walk| walk.lock) {
            return Ok(lock);
        }
        let own = escrow.utxo.reference;
        let mut current = match noted {
            None => escrow.clone(),
            Some(walk) => self.arrive(&walk).await?,
        };
        if noted.is_none() {
            // A transaction whose scripts failed made none of the outputs that it names; later ones were spent since.
            let included = self.chain.inclusion_of(&own.tx).await?.ok_or(ResolveError::Lagging)?;
            if !included.valid {
                return Err(ResolveError::Unknown);
            }
        }
        for _ in 0..MAX_STEPS {
            if current.datum.state == State::FundsLocked {
                let lock = lock_in(&current)?;
                self.note(escrow, &current, Some(lock)).await?;
                return Ok(lock);
            }
            let released = self.released_by(&current.utxo.reference.tx).await?;
            current = before(&current, &released, self.deployment).ok_or(ResolveError::NeverLocked)?;
        }
        self.note(escrow, &current, None).await?;
        Err(ResolveError::StillTracing)
    }

    /// Where an earlier walk stopped.
    async fn arrive(&self, walk: &Walk) -> Result<Escrow, ResolveError> {
        let outputs = self.chain.outputs_of(&walk.reached.tx).await?.ok_or(ResolveError::Lagging)?;
        let reached = outputs.into_iter().find(|output| output.utxo.reference == walk.reached);
        let reached = reached.ok_or(ResolveError::Lagging)?;
        Ok(Escrow::read(reached.utxo, self.deployment)?)
    }

    /// The outputs that scripts released to a transaction: escrows are among them, whatever else it spent.
    async fn released_by(&self, tx: &TxHash) -> Result<Vec<Utxo>, ResolveError> {
        let cbor = self.chain.transaction(tx).await?.ok_or(ResolveError::Lagging)?;
        let effects = TransactionEffects::read(&cbor).map_err(|error| ChainError::Malformed(error.to_string()))?;
        let made_by: BTreeSet<TxHash> = effects.by_script.iter().map(|input| input.tx).collect();
        let mut released = Vec::new();
        for tx in &made_by {
            let outputs = self.chain.outputs_of(tx).await?.ok_or(ResolveError::Lagging)?;
            let utxos = outputs.into_iter().map(|output| output.utxo);
            released.extend(utxos.filter(|utxo| effects.by_script.contains(&utxo.reference)));
        }
        Ok(released)
    }

    async fn note(&self, escrow: &Escrow, reached: &Escrow, lock: Option<TxHash>) -> Result<(), ResolveError> {
        let walk = Walk { reached: reached.utxo.reference, lock };
        self.database.run(store::note_walk(&escrow.utxo.reference, &walk)).await?;
        Ok(())
    }
}

/// The transaction that locked this, if it looks as a lock does.
fn lock_in(first: &Escrow) -> Result<TxHash, ResolveError> {
    let datum = &first.datum;
    let fresh = !datum.has_result() && datum.seller_cooldown == 0 && datum.buyer_cooldown == 0;
    if fresh { Ok(first.utxo.reference.tx) } else { Err(ResolveError::NeverLocked) }
}

/// The escrow that continues as `current`, among what the transaction of `current` spent.
fn before(current: &Escrow, inputs: &[Utxo], deployment: &Deployment) -> Option<Escrow> {
    let escrows = inputs.iter().filter_map(|input| Escrow::read(input.clone(), deployment).ok());
    escrows.into_iter().find(|earlier| may_become(&earlier.datum, &current.datum))
}

/// Whether some action makes `new` of `old`. How long the new cooldown is the contract has seen to.
fn may_become(old: &Datum, new: &Datum) -> bool {
    let rules = Action::ALL.into_iter().filter_map(|action| Rule::find(action, old));
    rules.into_iter().any(|rule| rule.continues(old, new, 0, 0))
}
