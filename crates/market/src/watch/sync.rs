//! First part of a run of the watcher: reads the newest block, and handles a possible rollback.
//!
//! A rollback is detected by a known block that is no longer at its height, and undone down to the newest known block
//! that is still on the chain. Escrow steps above it are deleted and found again. Own entries in removed blocks are
//! looked up again ([`super::reconcile`]), as are entries in blocks that no run has seen.

use api_types::{Alarm, AlarmName};
use cardano::{
    chain::{ChainError, Tip},
    history::MAX_BLOCKS,
};
use outbox::recheck;
use sql::{Database, Write};

use super::{
    ArbiterClient, Keys, Ledger,
    context::Tick,
    due,
    foreign_steps::{self, RecheckedStep},
    reconcile::blocks_to_recheck,
    stored::{SeenBlock, Stored, note_block},
};
use crate::{
    chain_state::{self, SETTLED_DEPTH},
    contents::Contents,
    port_error::PortError,
};

/// Maximum number of known blocks that are checked, at growing distances, to find one that is still on the chain.
const MAX_FORK_CHECKS: usize = 8;

/// The watcher's stored progress, as read after the newest block was stored.
pub(super) struct Synced {
    pub stored: Stored,
    /// Blocks that include the service's transactions and may have been removed by a rollback.
    pub blocks: Vec<SeenBlock>,
    /// Transactions of other parties on escrows. They must be looked up again, because the provider may have shown them
    /// from another fork.
    pub steps: Vec<RecheckedStep>,
}

impl<D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Tick<'_, D, C, K, S, A> {
    /// Undoes a rollback and stores the newest block, before anything that depends on it is written. Returns `None` if
    /// this run of the watcher must not continue.
    pub(super) async fn sync(&mut self, mut stored: Stored) -> Result<Option<Stored>, PortError> {
        let tip = self.view.tip;
        if self.view.clock < tip.time_ms {
            let ahead = tip.time_ms.saturating_sub(self.ports.now) / 1_000;
            let message = format!("the provider's newest block is {ahead} s ahead of the clock, so it is ignored");
            self.report.alarms.push(Alarm::new(AlarmName::FutureBlock, message));
            return Ok(None);
        }
        if !self.is_known_chain(&mut stored, &tip).await? {
            return Ok(None);
        }
        (self.view.rollbacks, self.view.read_to) = (stored.rollbacks, stored.read_to());
        Ok(Some(stored))
    }

    /// Stores the newest block. Returns `None` if a concurrent run of the watcher has undone a rollback, or has seen
    /// another block.
    pub(super) async fn note_tip(&mut self, stored: Stored) -> Result<Option<Synced>, PortError> {
        let tip = self.view.tip;
        let seller = self.view.seller.map(|seller| seller.to_string()).unwrap_or_default();
        let [check_later, signers] = due::signers_changed(&format!("{seller} {}", self.ports.keys.versions()));
        // A node on another fork may have shown a block of a known height, and a slower run or a request may have
        // stored it since. So all recent entries are marked for a check, and then the marks of entries in the new block
        // and in known blocks are cleared.
        let statements = (
            recheck(stored.known_to.saturating_sub(SETTLED_DEPTH), tip.height),
            note_block(&tip, &stored),
            clear_recheck(tip.height.saturating_sub(SETTLED_DEPTH)),
            blocks_to_recheck(),
            foreign_steps::to_recheck(tip.height),
            check_later,
            signers,
            chain_state::note(&tip),
        );
        let answers = self.ports.database.batch(statements).await?;
        let (_, noted, _, blocks, steps, ..) = answers;
        if noted.is_none() {
            self.report.notes.push("another tick undid a rollback, or saw another block, meanwhile".into());
            return Ok(None);
        }
        Ok(Some(Synced { stored, blocks, steps }))
    }

    /// Undoes a rollback if it removed the newest known block. Returns whether the newest known block is now on the
    /// chain. Returns `false` while the provider lags behind one of its earlier responses.
    async fn is_known_chain(&mut self, stored: &mut Stored, tip: &Tip) -> Result<bool, PortError> {
        let Some(newest) = stored.newest else { return Ok(true) };
        if tip.hash == newest.hash {
            return Ok(true);
        }
        if tip.height < newest.height {
            self.report.notes.push(format!("the provider is behind: {} after {}", tip.height, newest.height));
            return Ok(false);
        }
        self.read_chain(&newest, tip).await;
        if self.is_on_chain(&newest, tip).await? {
            return Ok(true);
        }
        let Some(fork) = self.fork_height(&newest, tip).await? else {
            let message = "the provider has none of the known blocks: it shows another chain, and nothing is done";
            self.report.alarms.push(Alarm::new(AlarmName::OtherChain, message));
            return Ok(false);
        };
        self.report.notes.push(format!("rollback to block {fork}"));
        self.report.rolled_back = self.roll_back(fork, stored).await?;
        Ok(self.report.rolled_back)
    }

    /// Reads the blocks of the chain from the newest one down to the newest known one, and further down to the oldest
    /// block in which entries of this service are to be checked. A single call reads all of them. If it fails, each
    /// block is looked up by itself.
    async fn read_chain(&mut self, newest: &SeenBlock, tip: &Tip) {
        let depth = tip.height.saturating_sub(newest.height.saturating_sub(SETTLED_DEPTH));
        let count = usize::try_from(depth).unwrap_or(MAX_BLOCKS).min(MAX_BLOCKS);
        match self.ports.chain.blocks_before(&tip.hash, count).await {
            Ok(blocks) => {
                self.chain = blocks.unwrap_or_default().into_iter().map(|block| (block.height, block.hash)).collect();
            }
            Err(error) => self.report.note(&"the newest blocks", &error),
        }
    }

    /// Returns whether the chain has this block. Returns `false` if the provider shows another block at this height,
    /// and an error if the provider shows no block at this height, because it lags.
    pub(super) async fn is_on_chain(&self, seen: &SeenBlock, tip: &Tip) -> Result<bool, PortError> {
        if seen.height == tip.height {
            return Ok(seen.hash == tip.hash);
        }
        if let Some(hash) = self.chain.get(&seen.height) {
            return Ok(seen.hash == *hash);
        }
        let shown = self.ports.chain.block_at(seen.height).await?;
        let behind = || ChainError::Unavailable(format!("a node is behind: it has no block {}", seen.height));
        Ok(shown.ok_or_else(behind)?.hash == seen.hash)
    }

    /// Returns the height of the newest known block on the chain; 0 if only a few blocks are known and none of them is
    /// on the chain. `None` if more blocks are gone than a rollback can remove.
    async fn fork_height(&self, newest: &SeenBlock, tip: &Tip) -> Result<Option<u64>, PortError> {
        let known = sql::read!(
            "SELECT height, hash FROM chain_blocks WHERE height < ?1 \
             ORDER BY height DESC LIMIT 256",
            newest.height
        );
        let known: Vec<SeenBlock> = self.ports.database.fetch(known).await?;
        let mut step = 0_usize;
        for _ in 0..MAX_FORK_CHECKS {
            let Some(seen) = known.get(step) else { return Ok(Some(0)) };
            if self.is_on_chain(seen, tip).await? {
                return Ok(Some(seen.height));
            }
            step = step.saturating_mul(2).saturating_add(1);
        }
        Ok(None)
    }

    /// Undoes the recorded effects of all blocks above the height `fork`. Returns `false` if a concurrent run of the
    /// watcher is already undoing them. The stored progress is reset first, so that a concurrent run can no longer
    /// write steps that it read from the abandoned blocks.
    async fn roll_back(&self, fork: u64, stored: &mut Stored) -> Result<bool, PortError> {
        if self.ports.database.execute(stored.go_back(fork)).await?.is_none() {
            return Ok(false);
        }
        let own = |sql: &'static str| sql::write!(sql, fork, stored.rollbacks);
        let undone = vec![
            own(
                "DELETE FROM escrow_steps INDEXED BY escrow_steps_by_height WHERE height > ?1 AND tx_id <> purchase_id \
                 AND (SELECT rollbacks FROM chain_reading) = ?2",
            ),
            own("DELETE FROM chain_unread WHERE height > ?1 AND (SELECT rollbacks FROM chain_reading) = ?2"),
            own("DELETE FROM chain_blocks WHERE height > ?1 AND (SELECT rollbacks FROM chain_reading) = ?2"),
            recheck(fork, u64::MAX),
        ];
        self.ports.database.batch(undone).await?;
        stored.known_to = fork;
        stored.unread.retain(|unread| unread.height <= fork);
        Ok(true)
    }
}

/// Builds the statement that clears the mark `recheck` of entries whose blocks the watcher has stored: the watcher
/// notices by itself if one of these blocks is rolled back. Entries in blocks at or below the height `deep` keep the
/// mark until they have been looked up once more.
pub(super) fn clear_recheck(deep: u64) -> Write {
    sql::write!(
        "UPDATE outbox SET recheck = 0 WHERE recheck = 1 AND block_height > ?1 \
         AND block_hash = (SELECT hash FROM chain_blocks WHERE height = outbox.block_height)",
        deep
    )
}
