//! Rollbacks: found by a block that is not where it was, undone down to the newest block that is.
//!
//! Steps of escrows above it are deleted and found again. Blocks above it that have entries of ours are looked for, some in
//! each tick, and the entries of those that are gone asked for again: one that is in a block keeps its purchase, one that is
//! in none is open again, and its purchase waits for it. So are blocks that no tick saw: they may have come and gone between
//! two ticks.

use cardano::{
    chain::{Chain, ChainError, Tip},
    evaluation::Evaluate,
    history::History,
};
use outbox::{Entry, block_is_there, recheck, to_recheck};
use sql::{Database, Statement, exactly, statement};

use super::{
    CALLS_KEPT, Report, TickError, Watch,
    reading::{Reading, SeenBlock},
};
use crate::{contents::Contents, purchase::escrows_follow_steps};

/// Blocks that are looked at, going back in growing steps, to find one that is still there.
const MAX_LOOKS: usize = 8;
/// Blocks with entries of ours that a rollback may have removed that are looked at in one tick, and entries in those that
/// are gone.
const MAX_DOUBTFUL: u32 = 12;
const MAX_RECHECKED: u32 = 12;

impl<D: Database, C: Chain + History + Evaluate, K: Contents> Watch<'_, D, C, K> {
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
                .alarms
                .push("the provider has none of the known blocks: it shows another chain, and nothing is done".into());
            return Ok(false);
        };
        report.notes.push(format!("rollback to block {fork}"));
        report.rolled_back = self.undo(fork, reading).await?;
        Ok(report.rolled_back)
    }

    /// Whether the chain has a block: not where a node shows another of its height. One that shows none is behind.
    async fn is_there(&self, seen: &SeenBlock, tip: &Tip) -> Result<bool, TickError> {
        if seen.height == tip.height {
            return Ok(seen.hash == tip.hash);
        }
        let shown = self.chain.block_at(seen.height).await?;
        let behind = || ChainError::Unavailable(format!("a node is behind: it has no block {}", seen.height));
        Ok(shown.ok_or_else(behind)?.hash == seen.hash)
    }

    /// The height of the newest known block that is still there: 0 where there are but few known ones, `None` where so
    /// many are gone that it cannot be a rollback.
    async fn fork(&self, newest: &SeenBlock, tip: &Tip) -> Result<Option<u64>, TickError> {
        let known = statement!(
            "SELECT json_object('height', height, 'hash', hash) FROM chain_blocks WHERE height < ?1 \
             ORDER BY height DESC LIMIT 256",
            newest.height
        );
        let known: Vec<SeenBlock> = self.database.run(known).await?.all_json()?;
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

    /// Goes back to the end of a block; `false` where another tick does so. First the reading, so that nothing is written
    /// any more that was found before; then what came after the block.
    async fn undo(&self, fork: u64, reading: &mut Reading) -> Result<bool, TickError> {
        let affected = statement!(
            "SELECT json_group_array(DISTINCT purchase_id) FROM escrow_steps \
             INDEXED BY escrow_steps_by_height WHERE height > ?1 AND tx_id <> purchase_id",
            fork
        );
        let [gone_back, affected] = exactly(self.database.batch(vec![reading.go_back(fork), affected]).await?)?;
        if gone_back.first().is_none() {
            return Ok(false);
        }
        let own = |sql: &'static str| statement!(sql, fork, reading.rollbacks);
        let mut undone = vec![own("DELETE FROM escrow_steps WHERE height > ?1 AND tx_id <> purchase_id \
             AND (SELECT rollbacks FROM chain_reading) = ?2")];
        undone.extend(escrows_follow_steps("SELECT value FROM json_each(?1)", affected.first().unwrap_or("[]")));
        undone.extend([
            own("DELETE FROM chain_unread WHERE height > ?1 AND (SELECT rollbacks FROM chain_reading) = ?2"),
            own("DELETE FROM chain_blocks WHERE height > ?1 AND (SELECT rollbacks FROM chain_reading) = ?2"),
            recheck(fork, u64::MAX),
        ]);
        self.database.batch(undone).await?;
        reading.known_to = fork;
        reading.unread.retain(|unread| unread.height <= fork);
        Ok(true)
    }

    /// The entries of ours in those of these blocks that are gone. What is in the others is where it was.
    pub(super) async fn gone_with(
        &self,
        blocks: Vec<SeenBlock>,
        tip: &Tip,
        report: &mut Report,
    ) -> Result<Vec<Entry>, TickError> {
        let (mut statements, mut gone) = (vec![], vec![]);
        for block in blocks {
            if (self.calls_left)() <= CALLS_KEPT {
                break;
            }
            match self.is_there(&block, tip).await {
                Ok(true) => statements.push(block_is_there(block.height, &block.hash)),
                Ok(false) => gone.push(block.hash),
                Err(error) => {
                    report.note(&block.hash, &error);
                    break;
                }
            }
        }
        if !gone.is_empty() {
            report.notes.push(format!("{} blocks with entries of ours are gone", gone.len()));
        }
        if gone.is_empty() && statements.is_empty() {
            return Ok(vec![]);
        }
        statements.push(to_recheck(&gone, MAX_RECHECKED));
        let done = self.database.batch(statements).await?;
        Ok(done.last().map(Entry::all).transpose()?.unwrap_or_default())
    }
}

/// The statement that notes that entries are where they were whose blocks ticks saw: one of these that is gone is found by
/// itself, with what is in it. But for those that are deep now: two nodes on two forks may have shown the newest block of one
/// and that it is still there, so each is asked for once more when all agree.
pub(super) fn seen(deep: u64) -> Statement {
    statement!(
        "UPDATE outbox SET recheck = 0 WHERE recheck = 1 AND block_height > ?1 \
         AND block_hash = (SELECT hash FROM chain_blocks WHERE height = outbox.block_height)",
        deep
    )
}

/// The statement that reads the lowest blocks with entries of ours that a rollback may have removed.
pub(super) fn doubtful() -> Statement {
    statement!(format!(
        "SELECT json_object('height', block_height, 'hash', block_hash) FROM outbox WHERE recheck = 1 \
         GROUP BY block_height, block_hash ORDER BY block_height LIMIT {MAX_DOUBTFUL}"
    ))
}
