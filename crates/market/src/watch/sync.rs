//! The first part of a tick: the newest block, and the rollback that it may show.
//!
//! A rollback is found by a block that is not where it was. The rollback is applied down to the newest known block that
//! still exists. Steps of escrows above it are deleted and found again, and own entries in its blocks are read again
//! ([`super::reconcile`]). So are entries in blocks that no tick saw: they may have come and gone between two ticks.

use cardano::chain::{ChainError, Tip};
use outbox::recheck;
use sql::{Database, DatabaseError, Statement, statement};

use super::{
    ArbiterClient, Keys, Ledger,
    context::Tick,
    due,
    foreign_steps::{self, RecheckedStep},
    housekeeping,
    reconcile::blocks_to_recheck,
    stored::{SeenBlock, Stored, note_block},
};
use crate::{chain_state, contents::Contents, port_error::PortError};

/// Blocks that are checked, going back in growing steps, to find one that is still on the chain.
const MAX_FORK_CHECKS: usize = 8;
/// Blocks below the newest one of an earlier tick whose entries are read once more. A node on another fork may have
/// shown one of that height, and a slower tick or a request may have stored it since.
const RECHECKED_BLOCKS: u64 = 6;

/// What is stored once the newest block is noted.
pub(super) struct Synced {
    pub stored: Stored,
    /// Blocks whose entries are to be checked again.
    pub blocks: Vec<SeenBlock>,
    /// Steps of others to be checked again: they may be on another fork.
    pub steps: Vec<RecheckedStep>,
}

impl<D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Tick<'_, D, C, K, S, A> {
    /// Undoes a rollback and notes the newest block, before anything is written that depends on it. `None` where this tick
    /// must not go on.
    pub(super) async fn sync(&mut self, mut stored: Stored) -> Result<Option<Synced>, PortError> {
        let tip = self.view.tip;
        if self.view.clock < tip.time_ms {
            let ahead = tip.time_ms.saturating_sub(self.ports.now) / 1_000;
            let alarm = format!("the provider's newest block is {ahead} s ahead of the clock: it is not believed");
            self.report.alarms.push(alarm);
            return Ok(None);
        }
        if !self.is_known_chain(&mut stored, &tip).await? {
            return Ok(None);
        }
        (self.view.rollbacks, self.view.read_to) = (stored.rollbacks, stored.read_to());
        self.note_tip(stored).await
    }

    /// Notes the newest block; `None` where another tick undid a rollback, or saw another block, meanwhile.
    async fn note_tip(&mut self, stored: Stored) -> Result<Option<Synced>, PortError> {
        let tip = self.view.tip;
        let seller = self.view.seller.map(|seller| seller.to_string()).unwrap_or_default();
        let [check_later, signers] = due::signers_changed(&format!("{seller} {}", self.ports.keys.versions()));
        // In this order: entries in the new block and in known ones need no check.
        let statements = vec![
            recheck(stored.known_to.saturating_sub(RECHECKED_BLOCKS), tip.height),
            note_block(&tip, &stored),
            clear_recheck(tip.height.saturating_sub(RECHECKED_BLOCKS)),
            blocks_to_recheck(),
            foreign_steps::to_recheck(tip.height),
            check_later,
            signers,
            chain_state::note(&tip),
        ];
        let clearing = housekeeping::statements(self.ports.now, &tip);
        let answers = match self.ports.database.batch([statements.as_slice(), &clearing].concat()).await {
            Ok(answers) => answers,
            // A clean-up that fails must not stop the tick; and where the database is full, each is tried by itself.
            Err(_) => {
                self.write_each(clearing.into_iter().map(|statement| vec![statement]).collect()).await;
                self.ports.database.batch(statements).await?
            }
        };
        let [_, noted, _, blocks, steps, ..] = answers.as_slice() else {
            return Err(DatabaseError("a batch answered too little".into()).into());
        };
        if noted.first().is_none() {
            self.report.notes.push("another tick undid a rollback, or saw another block, meanwhile".into());
            return Ok(None);
        }
        Ok(Some(Synced { stored, blocks: blocks.all_json()?, steps: steps.all_json()? }))
    }

    /// Whether this tick may go on: the newest known block is still on the chain, or what came after it was undone.
    /// A provider that is behind what was seen before is not believed until it has caught up.
    async fn is_known_chain(&mut self, stored: &mut Stored, tip: &Tip) -> Result<bool, PortError> {
        let Some(newest) = stored.newest else { return Ok(true) };
        if tip.hash == newest.hash {
            return Ok(true);
        }
        if tip.height < newest.height {
            self.report.notes.push(format!("the provider is behind: {} after {}", tip.height, newest.height));
            return Ok(false);
        }
        if self.is_on_chain(&newest, tip).await? {
            return Ok(true);
        }
        let Some(fork) = self.fork_height(&newest, tip).await? else {
            let alarm = "the provider has none of the known blocks: it shows another chain, and nothing is done";
            self.report.alarms.push(alarm.into());
            return Ok(false);
        };
        self.report.notes.push(format!("rollback to block {fork}"));
        self.report.rolled_back = self.roll_back(fork, stored).await?;
        Ok(self.report.rolled_back)
    }

    /// Whether the chain has a block: not where a node shows another of its height. One that shows none is behind.
    pub(super) async fn is_on_chain(&self, seen: &SeenBlock, tip: &Tip) -> Result<bool, PortError> {
        if seen.height == tip.height {
            return Ok(seen.hash == tip.hash);
        }
        let shown = self.ports.chain.block_at(seen.height).await?;
        let behind = || ChainError::Unavailable(format!("a node is behind: it has no block {}", seen.height));
        Ok(shown.ok_or_else(behind)?.hash == seen.hash)
    }

    /// The height of the newest known block that still exists. It is 0 where few are known, and `None` where so many
    /// are gone that it cannot be a rollback.
    async fn fork_height(&self, newest: &SeenBlock, tip: &Tip) -> Result<Option<u64>, PortError> {
        let known = statement!(
            "SELECT json_object('height', height, 'hash', hash) FROM chain_blocks WHERE height < ?1 \
             ORDER BY height DESC LIMIT 256",
            newest.height
        );
        let known: Vec<SeenBlock> = self.ports.database.run(known).await?.all_json()?;
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

    /// Undoes what came after a block; `false` where another tick does so. The stored progress is set back first, so that
    /// nothing found before is written any more.
    async fn roll_back(&self, fork: u64, stored: &mut Stored) -> Result<bool, PortError> {
        if self.ports.database.run(stored.go_back(fork)).await?.first().is_none() {
            return Ok(false);
        }
        let own = |sql: &'static str| statement!(sql, fork, stored.rollbacks);
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

/// The statement that clears `recheck` of entries in blocks that a tick saw: a rollback of such a block is found by itself.
/// Entries at or below `deep` are asked for once more, when the nodes of all forks agree.
pub(super) fn clear_recheck(deep: u64) -> Statement {
    statement!(
        "UPDATE outbox SET recheck = 0 WHERE recheck = 1 AND block_height > ?1 \
         AND block_hash = (SELECT hash FROM chain_blocks WHERE height = outbox.block_height)",
        deep
    )
}
