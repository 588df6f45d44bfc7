//! Traces an escrow back to its lock: the transaction that created it in the state in which a purchase locks it.
//!
//! ```text
//! lock ──> FundsLocked ──> ResultSubmitted ──> Disputed
//!           created by anyone     <── traced back, each step one that the contract allows
//! ```
//!
//! The contract does not run when an output is created, so anyone can create an output that claims to be `Disputed`. An
//! escrow that descends from a fresh `FundsLocked` by the contract's steps, however, was disputed by its buyer. No step
//! leads to `FundsLocked`, so the first such output on the way back is the lock.
//!
//! The transactions on the way back may come from an attacker. They are decoded from their bytes, whose size the ledger
//! limits. A transaction that spends outputs of many other transactions only makes the trace take more requests.

use std::collections::BTreeSet;

use cardano::{
    TxHash, TxRef,
    chain::{Chain, ChainError},
    evaluation::Evaluate,
    tx::TransactionUtxos,
};
use escrow::{Action, Datum, Deployment, State, plan::Escrow, rules::Rule};
use outbox::Sleep;
use sql::Database;

use crate::{
    Arbiter, ResolveError,
    statements::{Trace, store_trace},
};

/// Maximum number of earlier transactions that one request reads. Reading a transaction takes a call to the provider,
/// and the number of calls in a request is limited. The next request continues where this one stopped.
const MAX_READS: u32 = 16;

impl<D: Database, C: Chain + Evaluate, Z: Sleep> Arbiter<'_, D, C, Z> {
    /// Traces a disputed escrow back to its lock, and returns the id of the lock's transaction. `progress` is the
    /// stored progress of an earlier request.
    pub(crate) async fn lock_of(&self, own: &TxRef, progress: Option<Trace>) -> Result<TxHash, ResolveError> {
        if let Some(lock) = progress.and_then(|trace| trace.lock) {
            return Ok(lock);
        }
        if progress.is_none() {
            // A transaction whose scripts failed created none of its outputs. Earlier outputs need no check, because
            // they were spent later.
            let included = self.chain.inclusion_of(&own.tx).await?.ok_or(ResolveError::Lagging)?;
            if !included.valid {
                return Err(ResolveError::Unknown);
            }
        }
        let mut trace = progress.unwrap_or(Trace { reached: *own, ruled_out: 0, lock: None });
        let mut utxos = self.utxos_of(&trace.reached.tx).await?;
        let reached = utxos.created.iter().find(|made| made.reference == trace.reached);
        let mut current = Escrow::read(reached.ok_or(ResolveError::Lagging)?.clone(), self.deployment)?;
        for _ in 0..MAX_READS {
            if current.datum.state == State::FundsLocked {
                let lock = lock_in(&current)?;
                self.database.execute(store_trace(own, &Trace { lock: Some(lock), ..trace })).await?;
                return Ok(lock);
            }
            let spent_from: BTreeSet<TxHash> = utxos.spent_by_script.iter().map(|input| input.tx).collect();
            let next =
                usize::try_from(trace.ruled_out).ok().and_then(|ruled_out| spent_from.into_iter().nth(ruled_out));
            let earlier = match self.utxos_of(&next.ok_or(ResolveError::NeverLocked)?).await {
                Ok(earlier) => earlier,
                Err(error) => {
                    self.database.execute(store_trace(own, &trace)).await?;
                    return Err(error);
                }
            };
            match before(&current, &utxos, &earlier, self.deployment) {
                Some(escrow) => {
                    trace = Trace { reached: escrow.utxo.reference, ruled_out: 0, lock: None };
                    (current, utxos) = (escrow, earlier);
                }
                None => trace.ruled_out = trace.ruled_out.saturating_add(1),
            }
        }
        self.database.execute(store_trace(own, &trace)).await?;
        Err(ResolveError::StillTracing)
    }

    /// Returns the outputs that an included transaction spent and created.
    pub(crate) async fn utxos_of(&self, tx: &TxHash) -> Result<TransactionUtxos, ResolveError> {
        let cbor = self.chain.transaction(tx).await?.ok_or(ResolveError::Lagging)?;
        TransactionUtxos::read(&cbor).map_err(|error| ChainError::Malformed(error.to_string()).into())
    }
}

/// Returns the id of the transaction that created the escrow output `first`.
///
/// # Errors
/// Returns [`ResolveError::NeverLocked`] if the datum contains a result or a cooldown, so that no purchase created the
/// output.
fn lock_in(first: &Escrow) -> Result<TxHash, ResolveError> {
    let datum = &first.datum;
    let fresh = !datum.has_result() && datum.seller_cooldown == 0 && datum.buyer_cooldown == 0;
    if fresh { Ok(first.utxo.reference.tx) } else { Err(ResolveError::NeverLocked) }
}

/// Finds the previous output of the escrow `current`, which the transaction `earlier` created and the transaction
/// `later` spent. There is at most one, because the contract rejects two inputs at its address with the same reference
/// signature (`inputs_are_distinct`).
fn before(
    current: &Escrow,
    later: &TransactionUtxos,
    earlier: &TransactionUtxos,
    deployment: &Deployment,
) -> Option<Escrow> {
    let released = earlier.created.iter().filter(|made| later.spent_by_script.contains(&made.reference));
    let mut escrows = released.filter_map(|made| Escrow::read(made.clone(), deployment).ok());
    escrows.find(|escrow| may_become(&escrow.datum, &current.datum))
}

/// Returns `true` if some action of the contract turns the datum `old` into `new`. The new cooldown's length is not
/// compared, because the contract has checked it.
fn may_become(old: &Datum, new: &Datum) -> bool {
    let mut rules = Action::ALL.into_iter().filter_map(|action| Rule::find(action, old));
    rules.any(|rule| rule.continues(old, new, 0, 0))
}
