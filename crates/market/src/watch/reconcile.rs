//! Second part of a run of the watcher: looks up open outbox entries, and entries whose block may have been rolled
//! back, and submits, confirms or closes them.

use cardano::{TxHash, chain::Inclusion, tx::TransactionUtxos};
use outbox::{Decision, Entry, EntryState, Trust, by_id, clear_recheck, clear_recheck_of_block, to_recheck};
use sql::{Database, DatabaseError, Read};

use super::{
    ArbiterClient, Keys, Ledger,
    context::{MAX_PROVIDER_FAILURES, RESERVED_CALLS, Tick},
    foreign_steps::RecheckedStep,
    stored::SeenBlock,
};
use crate::{
    contents::Contents,
    escrow_steps::{IncludedTx, Spending, knows},
    port_error::PortError,
    transitions::acts_on_escrows,
};

/// Maximum number of blocks that one run of the watcher checks for rollbacks. Only blocks that include the service's
/// transactions are checked.
const MAX_BLOCKS: u32 = 12;
const MAX_RECHECKED: u32 = 12;

impl<D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Tick<'_, D, C, K, S, A> {
    /// Looks up the service's open transactions on the chain. The service's own escrow actions come first, because
    /// anyone can submit payments, which could otherwise use up the provider calls.
    pub(super) async fn reconcile(
        &mut self,
        actions: Vec<Entry>,
        blocks: Vec<SeenBlock>,
        steps: Vec<RecheckedStep>,
        open: Vec<Entry>,
    ) -> Result<(), PortError> {
        self.reconcile_entries(actions).await?;
        self.recheck_steps(steps).await;
        let gone = self.entries_of_removed_blocks(blocks).await?;
        self.reconcile_entries(gone).await?;
        self.reconcile_entries(open).await
    }

    /// Checks which of these blocks a rollback has removed, and returns the outbox entries that were in them.
    async fn entries_of_removed_blocks(&mut self, blocks: Vec<SeenBlock>) -> Result<Vec<Entry>, PortError> {
        let (mut statements, mut gone) = (vec![], vec![]);
        for block in blocks {
            if self.calls_left() <= RESERVED_CALLS {
                break;
            }
            match self.is_on_chain(&block, &self.view.tip).await {
                Ok(true) => statements.push(clear_recheck_of_block(block.height, &block.hash)),
                Ok(false) => gone.push(block.hash),
                Err(error) => {
                    self.report.note(&block.hash, &error);
                    break;
                }
            }
        }
        if gone.is_empty() {
            self.write(statements).await?;
            return Ok(vec![]);
        }
        self.report.notes.push(format!("{} blocks with own transactions were rolled back", gone.len()));
        let (_, entries) = self.ports.database.batch((statements, to_recheck(&gone, MAX_RECHECKED))).await?;
        Ok(entries)
    }

    /// Compares these outbox entries with the chain. An entry that fails does not delay the others.
    async fn reconcile_entries(&mut self, mut entries: Vec<Entry>) -> Result<(), PortError> {
        let mut found = Vec::new();
        let mut provider_failures = 0_u32;
        for entry in &mut entries {
            if self.calls_left() <= RESERVED_CALLS || provider_failures >= MAX_PROVIDER_FAILURES {
                break;
            }
            let tx = entry.tx;
            match self.reconcile_entry(entry).await {
                Ok(did) => found.extend(did),
                Err(error) => {
                    provider_failures = provider_failures.saturating_add(u32::from(error.is_provider_down()));
                    self.report.note(&tx, &error);
                }
            }
        }
        self.record(found).await
    }

    /// Compares an outbox entry with the chain, and returns its effects on escrows if a block includes it. An
    /// unconfirmed action that conflicts with a block is not submitted again.
    async fn reconcile_entry(&mut self, entry: &mut Entry) -> Result<Option<IncludedTx>, PortError> {
        let (decision, found) = self.observe(entry).await?;
        if entry.state.is_open() && acts_on_escrows(entry.kind) {
            match self.is_superseded(&entry.tx).await {
                Ok(true) => return Ok(None),
                Ok(false) => {}
                Err(error @ PortError::Database(_)) => return Err(error),
                // The provider failed, but nodes may still accept the action.
                Err(error) => self.report.note(&entry.tx, &error),
            }
        }
        if decision == Decision::Submit {
            self.outbox().submit_again(entry, Trust::Unproven, self.ports.now).await?;
        }
        Ok(found)
    }

    /// Returns whether another included transaction spent an escrow of the unconfirmed action `tx`. If so, records that
    /// transaction and marks the action as rejected, so that it does not reserve its other escrows until it expires.
    async fn is_superseded(&mut self, tx: &TxHash) -> Result<bool, PortError> {
        // A conflict that was found before may have given up this entry too.
        let entry = self.ports.database.fetch(by_id(tx)).await?;
        let Some(entry) = entry.filter(|entry| entry.state.is_open()) else { return Ok(false) };
        let mut provider_failures = None;
        for escrow in read(&entry)?.spent_by_script {
            if self.calls_left() <= RESERVED_CALLS {
                break;
            }
            match self.follow(&escrow).await {
                Ok(Spending::SpentBy(by)) => {
                    // Repeated, in case an earlier run was interrupted before it recorded the conflict.
                    self.outbox().give_up_conflicting(&entry.tx, &by).await?;
                    return Ok(true);
                }
                Ok(Spending::Unspent | Spending::Unknown) => {}
                // The other escrows are followed anyway.
                Err(error @ PortError::Chain(_)) => provider_failures = Some(error),
                Err(error) => return Err(error),
            }
        }
        provider_failures.map_or(Ok(false), Err)
    }

    /// Looks up an outbox entry's transaction without submitting it. Returns the decision, and the effects on escrows
    /// if a block includes the transaction.
    pub(super) async fn observe(&mut self, entry: &mut Entry) -> Result<(Decision, Option<IncludedTx>), PortError> {
        let was = entry.state;
        let decision = self.outbox().observe(entry, Some(&self.view.tip), Trust::Unproven, self.ports.now).await?;
        match &decision {
            Decision::Include(_) => self.report.confirmed = self.report.confirmed.saturating_add(1),
            Decision::Wait if was == EntryState::Included => {
                self.ports.database.execute(clear_recheck(&entry.tx)).await?
            }
            Decision::Expire => self.report.note(&entry.tx, &"expired"),
            Decision::Refuse(reason) => self.report.note(&entry.tx, reason),
            _ => {}
        }
        // If the transaction was not found, its stored block does not count: if two runs notice this, only one of them
        // records it.
        let block = entry.block.filter(|_| decision != Decision::Reopen);
        let block = block.filter(|block| entry.state == EntryState::Included && knows(&self.view.tip, block));
        let found = block.map(|block| found_in(entry, &block)).transpose()?.flatten();
        Ok((decision, found))
    }
}

/// Builds the query that reads the lowest blocks whose entries are to be checked again. Blocks with only settlements
/// for other servers come last.
pub(super) fn blocks_to_recheck() -> Read<Vec<SeenBlock>> {
    sql::read!(
        "SELECT block_height AS height, block_hash AS hash FROM outbox WHERE recheck = 1 \
         GROUP BY block_height, block_hash ORDER BY min(kind = 'settlement'), block_height LIMIT {MAX_BLOCKS}"
    )
}

/// Returns the effects of an included action; `None` if it touches no escrow.
pub(super) fn found_in(entry: &Entry, block: &Inclusion) -> Result<Option<IncludedTx>, PortError> {
    if !acts_on_escrows(entry.kind) {
        return Ok(None);
    }
    Ok(Some(IncludedTx { utxos: read(entry)?, height: block.height, time_ms: block.time_ms }))
}

fn read(entry: &Entry) -> Result<TransactionUtxos, DatabaseError> {
    let broken = |error| DatabaseError(format!("the transaction {} cannot be read: {error}", entry.tx));
    TransactionUtxos::read(&entry.cbor).map_err(broken)
}
