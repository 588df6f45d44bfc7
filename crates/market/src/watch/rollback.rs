//! Rollbacks: found by a block that is not where it was, undone down to the newest block that is.
//!
//! Steps of escrows above it are deleted and found again. Entries above it are asked for again, some in each tick: one that
//! is in a block keeps its purchase, one that is in none is open again, and its purchase waits for it. Blocks that came and
//! went between two ticks are noticed by the entries that were seen in them.

use cardano::{
    chain::{Chain, Tip},
    evaluation::Evaluate,
    history::History,
};
use outbox::recheck;
use sql::{Database, Statement, exactly, statement};

use super::{
    CALLS_KEPT, Report, TickError, Watch,
    reading::{Reading, SeenBlock},
};
use crate::{contents::Contents, purchase::escrows_follow_steps};

/// Blocks that are looked at, going back in growing steps, to find one that is still there.
const MAX_LOOKS: usize = 8;
/// Blocks with entries of ours, newer than any that a tick saw, that are looked at in one tick.
const MAX_UNSEEN: u32 = 12;

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

    async fn is_there(&self, seen: &SeenBlock, tip: &Tip) -> Result<bool, TickError> {
        if seen.height == tip.height {
            return Ok(seen.hash == tip.hash);
        }
        Ok(self.chain.block_at(seen.height).await?.is_some_and(|block| block.hash == seen.hash))
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
            "SELECT json_group_array(DISTINCT purchase_id) FROM escrow_steps WHERE height > ?1 AND tx_id <> purchase_id",
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
            recheck(fork, u64::MAX, &[]),
        ]);
        self.database.batch(undone).await?;
        reading.known_to = fork;
        reading.unseen.clear();
        reading.unread.retain(|unread| unread.height <= fork);
        Ok(true)
    }

    /// The statement that has entries asked for again that are in blocks that no tick saw, unless these are there now. Of
    /// blocks that the provider has not reached nothing can be said yet.
    pub(super) async fn recheck_unseen(&self, reading: &Reading, tip: &Tip) -> Result<Statement, TickError> {
        let mut there = Vec::new();
        for seen in reading.unseen.iter().filter(|seen| seen.height <= tip.height) {
            if (self.calls_left)() > CALLS_KEPT && self.is_there(seen, tip).await.is_ok_and(|there| there) {
                there.push(seen.hash);
            }
        }
        Ok(recheck(reading.known_to, tip.height, &there))
    }
}

/// The statement that reads the blocks with entries of ours that are newer than any that a tick saw, newest first.
pub(super) fn unseen() -> Statement {
    statement!(format!(
        "SELECT json_object('height', block_height, 'hash', block_hash) FROM outbox \
         WHERE state = 'included' AND block_height > (SELECT coalesce(max(height), 0) FROM chain_blocks) \
         GROUP BY block_height, block_hash ORDER BY block_height DESC LIMIT {MAX_UNSEEN}"
    ))
}
