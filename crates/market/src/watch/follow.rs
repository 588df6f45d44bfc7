//! Escrows of ours are followed by their own outputs: what spent this one, and into what. Nothing that others put at the
//! escrow's address comes between.

use cardano::{
    TxHash, TxRef,
    chain::{Chain, ChainError},
    evaluation::Evaluate,
    history::History,
    slots::Millis,
    tx::TransactionUtxos,
};
use outbox::{Entry, by_id};
use sql::Database;

use super::{
    Report, TickError, TickView, Watch,
    due::{self, Due},
    steps::Found,
};
use crate::contents::Contents;

/// Outside calls that following one step takes.
const CALLS_PER_STEP: u32 = 3;
/// When an escrow is looked at that this tick did not come to.
const SOON_MS: Millis = 60_000;
/// After so many in a row that the provider said nothing about, the rest is left for the next tick.
const MAX_UNSERVED: u32 = 3;

/// What became of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is there.
    Unspent,
    /// It was spent, by this transaction, and that is recorded.
    Spent(TxHash),
    /// The provider does not say, or not yet.
    Unknown,
}

impl<D: Database, C: Chain + History + Evaluate, K: Contents> Watch<'_, D, C, K> {
    /// Looks what became of escrows on which there is nothing to do before the time that stands with each.
    pub(super) async fn follow_all(
        &self,
        waiting: Vec<(Due, Millis)>,
        view: &TickView,
        report: &mut Report,
    ) -> Result<(), TickError> {
        let mut unserved = 0_u32;
        let (mut later, mut statements) = (vec![], vec![]);
        for (due, until) in waiting {
            if (self.calls_left)() < CALLS_PER_STEP || unserved >= MAX_UNSERVED {
                later.push((due, view.clock.saturating_add(SOON_MS)));
                continue;
            }
            let followed = self.follow(&due.utxo, view, report).await;
            if followed.is_ok() {
                unserved = 0;
            }
            match followed {
                Ok(Fate::Unspent) => later.push((due, until)),
                Ok(Fate::Spent(_)) => {}
                Ok(Fate::Unknown) => statements.push(due::put_off(&due, view.clock)),
                Err(error) => {
                    let too_long = matches!(error, TickError::Chain(ChainError::TooLong));
                    unserved = unserved.saturating_add(u32::from(!too_long));
                    report.note(&due.purchase, &error);
                    statements.push(due::put_off(&due, view.clock));
                }
            }
        }
        statements.extend((!later.is_empty()).then(|| due::look_again(&later)));
        if !statements.is_empty() {
            self.database.batch(statements).await?;
        }
        Ok(())
    }

    /// Follows an escrow from the output that it was last known to be, by one step. What came after that is due at once, and is
    /// not read here: a buyer makes as long a step as they like.
    pub(super) async fn follow(&self, from: &TxRef, view: &TickView, report: &mut Report) -> Result<Fate, TickError> {
        let outputs = self.chain.outputs_of(&from.tx).await?.unwrap_or_default();
        let output = outputs.into_iter().find(|output| output.utxo.reference == *from);
        let Some(output) = output else { return Ok(Fate::Unknown) };
        let Some(by) = output.spent_by else { return Ok(Fate::Unspent) };
        let Some(found) = self.found(&by, view, report).await? else { return Ok(Fate::Unknown) };
        // A ledger to come may let a transaction spend in a field that is not read here.
        if !found.utxos.spent.contains(from) {
            report.alarms.push(unread(&by, &"it is not seen to spend it"));
            return Ok(Fate::Unknown);
        }
        self.record(vec![found], view, report).await?;
        Ok(Fate::Spent(by))
    }

    /// What a transaction in a block did that spent an escrow; `None` where the provider does not know it, or it cannot be read,
    /// as none should be that a ledger has taken.
    pub(super) async fn found(
        &self,
        tx: &TxHash,
        view: &TickView,
        report: &mut Report,
    ) -> Result<Option<Found>, TickError> {
        let own = Entry::first(&self.database.run(by_id(tx)).await?)?;
        let cbor = match own {
            Some(entry) if !entry.cbor.is_empty() => entry.cbor,
            _ => match self.chain.transaction(tx).await? {
                Some(cbor) => cbor,
                None => return Ok(None),
            },
        };
        let utxos = match TransactionUtxos::read(&cbor) {
            Ok(utxos) => utxos,
            Err(error) => {
                report.skipped = report.skipped.saturating_add(1);
                report.alarms.push(unread(tx, &error));
                return Ok(None);
            }
        };
        let block = self.chain.inclusion_of(tx).await?.filter(|block| block.valid && view.knows(block));
        Ok(block.map(|block| Found { utxos, height: block.height, time_ms: block.time_ms }))
    }
}

fn unread(by: &TxHash, why: &dyn std::fmt::Display) -> String {
    format!("what became of an escrow cannot be read: {by}: {why}")
}
