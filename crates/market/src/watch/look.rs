//! Entries of ours whose end is not known, or that a rollback may have removed: each is asked for, sent again, closed.

use cardano::{
    TxHash,
    chain::{Chain, ChainError, Inclusion},
    evaluation::Evaluate,
    history::History,
    tx::TransactionUtxos,
};
use outbox::{Decision, Entry, EntryState, Kind, Trust, by_id, rechecked};
use sql::{Database, DatabaseError};

use super::{CALLS_KEPT, Report, TickError, TickView, Watch};
use crate::{
    contents::Contents,
    escrow_steps::{Found, Spending},
};

/// After so many that the provider said nothing about, the rest is left for the next tick.
const MAX_UNSERVED: u32 = 3;

impl<D: Database, C: Chain + History + Evaluate, K: Contents> Watch<'_, D, C, K> {
    /// Looks after entries that may have been removed, or whose end is not known. Whether anything changed. One entry that cannot
    /// be asked for, or not be changed, keeps no other waiting: anyone can hand in payments.
    pub(super) async fn look_after(
        &self,
        mut entries: Vec<Entry>,
        view: &TickView,
        report: &mut Report,
    ) -> Result<bool, TickError> {
        let mut found = Vec::new();
        let (mut changed, mut unserved) = (false, 0_u32);
        for entry in &mut entries {
            if (self.calls_left)() <= CALLS_KEPT || unserved >= MAX_UNSERVED {
                break;
            }
            let tx = entry.tx;
            match self.look_after_one(entry, view, report).await {
                Ok((anything, did)) => {
                    changed |= anything;
                    found.extend(did);
                }
                Err(error) => {
                    let too_long = matches!(error, TickError::Chain(ChainError::TooLong));
                    unserved = unserved.saturating_add(u32::from(matches!(error, TickError::Chain(_)) && !too_long));
                    report.note(&tx, &error);
                }
            }
        }
        self.record(found, view, report).await?;
        Ok(changed)
    }

    /// One of them. An action in no block is sent again only if nobody overtook it: no node would take it. Whether anything
    /// changed, and what it did to escrows if it is in a block.
    async fn look_after_one(
        &self,
        entry: &mut Entry,
        view: &TickView,
        report: &mut Report,
    ) -> Result<(bool, Option<Found>), TickError> {
        let (step, found) = self.look(entry, view, report).await?;
        if entry.state.is_open() && acts_on_escrows(entry.kind) {
            match self.is_overtaken(&entry.tx, view, report).await {
                Ok(true) => return Ok((true, None)),
                Ok(false) => {}
                Err(error @ TickError::Database(_)) => return Err(error),
                // Where nobody says so, it may be taken.
                Err(error) => report.note(&entry.tx, &error),
            }
        }
        if step == Decision::Submit {
            self.outbox().submit_again(entry, Trust::Unproven, self.now).await?;
        }
        Ok((!matches!(step, Decision::Wait | Decision::Submit), found))
    }

    /// Whether a block has what spends an escrow on which an action of ours in no block acts: then that is recorded, and the
    /// action given up. Otherwise whoever was first would hold up, until its time is over, all escrows that it acts on.
    async fn is_overtaken(&self, tx: &TxHash, view: &TickView, report: &mut Report) -> Result<bool, TickError> {
        // One that was overtaken before may have taken this one along.
        let entry = Entry::first(&self.database.run(by_id(tx)).await?)?;
        let Some(entry) = entry.filter(|entry| entry.state.is_open()) else { return Ok(false) };
        let mut unsaid = None;
        for escrow in read(&entry)?.by_script {
            if (self.calls_left)() <= CALLS_KEPT {
                break;
            }
            match self.follow(&escrow, view, report).await {
                Ok(Spending::SpentBy(by)) => {
                    // As was done where it was recorded, unless that was cut off.
                    self.outbox().overtaken(&entry.tx, &by, self.now).await?;
                    return Ok(true);
                }
                Ok(Spending::Unspent | Spending::Unknown) => {}
                // One that cannot be followed keeps none of the others from being so.
                Err(error @ TickError::Chain(_)) => unsaid = Some(error),
                Err(error) => return Err(error),
            }
        }
        unsaid.map_or(Ok(false), Err)
    }

    /// Looks at one entry, without sending it again. What was done, and what it did to escrows if it is in a block.
    pub(super) async fn look(
        &self,
        entry: &mut Entry,
        view: &TickView,
        report: &mut Report,
    ) -> Result<(Decision, Option<Found>), TickError> {
        let was = entry.state;
        let step = self.outbox().observe(entry, Some(&view.tip), Trust::Unproven, self.now).await?;
        match &step {
            Decision::Include(_) => report.confirmed = report.confirmed.saturating_add(1),
            Decision::Wait if was == EntryState::Included => drop(self.database.run(rechecked(&entry.tx)).await?),
            Decision::Expire => report.note(&entry.tx, &"expired"),
            Decision::Refuse(reason) => report.note(&entry.tx, reason),
            _ => {}
        }
        // Not what is stored, where it was not found: of two ticks that find it gone one alone writes that down.
        let block = entry.block.filter(|_| step != Decision::Unconfirm);
        let block = block.filter(|block| entry.state == EntryState::Included && view.knows(block));
        let found = block.map(|block| found_in(entry, &block)).transpose()?.flatten();
        Ok((step, found))
    }
}

/// What an action of ours in a block did; `None` for what touches no escrow.
pub(super) fn found_in(entry: &Entry, block: &Inclusion) -> Result<Option<Found>, TickError> {
    if !acts_on_escrows(entry.kind) {
        return Ok(None);
    }
    Ok(Some(Found { utxos: read(entry)?, height: block.height, time_ms: block.time_ms }))
}

const fn acts_on_escrows(kind: Kind) -> bool {
    matches!(kind, Kind::Result | Kind::Collect | Kind::Refund | Kind::Dispute)
}

fn read(entry: &Entry) -> Result<TransactionUtxos, DatabaseError> {
    let broken = |error| DatabaseError(format!("the transaction {} cannot be read: {error}", entry.tx));
    TransactionUtxos::read(&entry.cbor).map_err(broken)
}
