//! Rollbacks: found by a block that is not where it was, undone down to the newest block that is.
//!
//! Steps of escrows above it are deleted and read again. Payments and actions above it are in doubt until each was asked
//! for, some in each tick: one that is in a block again keeps its purchase, one that is in none is open again, and its
//! purchase waits for it. Blocks that came and went between two ticks are noticed by the payments that were seen in them.

use cardano::{
    TxHash,
    chain::{Chain, Inclusion, Tip},
    history::History,
};
use serde::Deserialize;
use sql::{Database, Rows, Statement, statement};

use super::{
    CALLS_KEPT, Report, TickError, Watch,
    reading::{Reading, Seen},
};

/// Blocks that are looked at, going back in growing steps, to find one that is still there.
const MAX_LOOKS: usize = 8;
/// Blocks with payments of ours, newer than any that a tick saw, that are looked at in one tick.
const MAX_UNSEEN: u32 = 12;
/// Transactions of ours in doubt that are asked for in one tick.
const MAX_ASKED: u32 = 12;

/// A transaction of ours, and the block that it was last seen in.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Held {
    tx: TxHash,
    block: TxHash,
}

impl<D: Database, C: Chain + History> Watch<'_, D, C> {
    /// Whether this tick may go on: the newest known block is still on the chain, or what came after it was undone.
    /// A provider that is behind what was seen before is not believed until it has caught up.
    pub(super) async fn still_there(
        &self,
        reading: &mut Reading,
        tip: &Tip,
        report: &mut Report,
    ) -> Result<bool, TickError> {
        let Some(newest) = reading.newest else { return Ok(true) };
        if tip.hash == newest.hash {
            return Ok(true);
        }
        if tip.height < newest.height {
            report.notes.push(format!("the provider is behind: {} after {}", tip.height, newest.height));
            return Ok(false);
        }
        if self.is_there(&newest, tip).await? {
            return Ok(true);
        }
        let Some(fork) = self.fork(&newest, tip).await? else {
            report
                .notes
                .push("the provider has none of the known blocks: it shows another chain, and nothing is done".into());
            return Ok(false);
        };
        self.undo(fork, reading).await?;
        report.rolled_back = true;
        report.notes.push(format!("rollback to block {fork}"));
        Ok(true)
    }

    async fn is_there(&self, seen: &Seen, tip: &Tip) -> Result<bool, TickError> {
        if seen.height == tip.height {
            return Ok(seen.hash == tip.hash);
        }
        Ok(self.chain.block_at(seen.height).await?.is_some_and(|block| block.hash == seen.hash))
    }

    /// The height of the newest known block that is still there: 0 where there are but few known ones, `None` where so
    /// many are gone that it cannot be a rollback.
    async fn fork(&self, newest: &Seen, tip: &Tip) -> Result<Option<u64>, TickError> {
        let known = statement!(
            "SELECT json_object('height', height, 'hash', hash) FROM chain_blocks WHERE height < ?1 \
             ORDER BY height DESC LIMIT 256",
            newest.height
        );
        let known: Vec<Seen> = self.database.run(known).await?.all_json()?;
        let mut step = 0_usize;
        for _ in 0..MAX_LOOKS {
            let Some(seen) = known.get(step) else { return Ok(Some(0)) };
            if self.is_there(seen, tip).await? {
                return Ok(Some(seen.height));
            }
            step = step.saturating_mul(2).saturating_add(1);
        }
        Ok(None)
    }

    /// Puts in doubt what is in blocks that no tick saw and that are gone.
    pub(super) async fn doubt_unseen(
        &self,
        reading: &mut Reading,
        tip: &Tip,
        report: &mut Report,
    ) -> Result<(), TickError> {
        let mut statements = Vec::new();
        for seen in &reading.unseen {
            // Of a block that the provider has not reached nothing can be said yet.
            if seen.height > tip.height || (self.calls_left)() <= CALLS_KEPT || self.is_there(seen, tip).await? {
                continue;
            }
            report.notes.push(format!("block {} is gone", seen.height));
            statements.push(statement!(
                "UPDATE settlements SET doubted = 1 WHERE state = 'included' AND block_height = ?1 AND block_hash = ?2",
                seen.height,
                seen.hash.to_string()
            ));
        }
        if statements.is_empty() {
            return Ok(());
        }
        statements.push(doubted());
        let done = self.database.batch(statements).await?;
        reading.doubted = done.last().map(Rows::all_json).transpose()?.unwrap_or_default();
        Ok(())
    }

    async fn undo(&self, fork: u64, reading: &mut Reading) -> Result<(), TickError> {
        let undone = vec![
            reading.go_back(fork),
            statement!("DELETE FROM escrow_steps WHERE height > ?1 AND tx_id <> purchase_id", fork),
            statement!("UPDATE settlements SET doubted = 1 WHERE state = 'included' AND block_height > ?1", fork),
            statement!("DELETE FROM chain_blocks WHERE height > ?1", fork),
            doubted(),
        ];
        let undone = self.database.batch(undone).await?;
        reading.newest = None;
        reading.unseen.clear();
        reading.doubted = undone.last().map(Rows::all_json).transpose()?.unwrap_or_default();
        Ok(())
    }

    /// Asks for transactions of ours that a rollback put in doubt.
    pub(super) async fn ask_again(&self, reading: &Reading) -> Result<(), TickError> {
        let mut statements = Vec::new();
        for Held { tx, block } in &reading.doubted {
            if (self.calls_left)() <= CALLS_KEPT {
                break;
            }
            match self.chain.inclusion_of(tx).await? {
                Some(inclusion) if inclusion.block == *block => {}
                Some(inclusion) => statements.extend(moved(tx, &inclusion)),
                None => statements.extend(gone(tx)),
            }
            statements.push(statement!("UPDATE settlements SET doubted = 0 WHERE tx_id = ?1", tx.to_string()));
        }
        if !statements.is_empty() {
            self.database.batch(statements).await?;
        }
        Ok(())
    }
}

/// The statement that reads which transactions of ours are in doubt, those of the lowest blocks first.
pub(super) fn doubted() -> Statement {
    statement!(format!(
        "SELECT json_object('tx', tx_id, 'block', block_hash) FROM settlements WHERE doubted = 1 \
         ORDER BY block_height LIMIT {MAX_ASKED}"
    ))
}

/// The statement that reads the blocks with transactions of ours that are newer than any that a tick saw, newest first.
pub(super) fn unseen() -> Statement {
    statement!(format!(
        "SELECT json_object('height', block_height, 'hash', block_hash) FROM settlements \
         WHERE state = 'included' AND block_height > (SELECT coalesce(max(height), 0) FROM chain_blocks) \
         GROUP BY block_height, block_hash ORDER BY block_height DESC LIMIT {MAX_UNSEEN}"
    ))
}

/// It is in another block now.
fn moved(tx: &TxHash, inclusion: &Inclusion) -> [Statement; 4] {
    let id = tx.to_string();
    [
        statement!(
            "UPDATE settlements SET block_hash = ?2, block_height = ?3, block_slot = ?4, block_time_ms = ?5 WHERE tx_id = ?1",
            id.as_str(),
            inclusion.block.to_string(),
            inclusion.height,
            inclusion.slot,
            inclusion.time_ms
        ),
        statement!("UPDATE purchases SET bought_at_ms = ?2 WHERE id = ?1", id.as_str(), inclusion.time_ms),
        statement!(
            "UPDATE purchase_events SET at_ms = ?2 WHERE tx_hash = ?1 AND purchase_id IN \
             (SELECT ?1 UNION ALL SELECT purchase_id FROM settlement_purchases WHERE tx_id = ?1)",
            id.as_str(),
            inclusion.time_ms
        ),
        statement!(
            "UPDATE escrow_steps SET height = ?2, at_ms = ?3 WHERE purchase_id = ?1 AND tx_id = ?1",
            id.as_str(),
            inclusion.height,
            inclusion.time_ms
        ),
    ]
}

/// It is in no block any more: open again, without a purchase until it is.
fn gone(tx: &TxHash) -> [Statement; 6] {
    let of = |sql: &'static str| statement!(sql, tx.to_string());
    [
        // Each step shows the one before again; the lock is the last that can be shown.
        of("DELETE FROM escrow_steps WHERE purchase_id = ?1 AND tx_id <> ?1"),
        of("DELETE FROM escrow_steps WHERE purchase_id = ?1"),
        of("DELETE FROM escrows WHERE purchase_id = ?1"),
        of("DELETE FROM purchase_events WHERE purchase_id = ?1"),
        of("DELETE FROM purchases WHERE id = ?1"),
        of("UPDATE settlements SET state = 'submitted', block_hash = NULL, block_height = NULL, block_slot = NULL, \
            block_time_ms = NULL, attempted_at_ms = 0 WHERE tx_id = ?1 AND state = 'included'"),
    ]
}
