//! Verifies steps of escrows that other parties made, once their blocks have many newer blocks.
//!
//! A node on another fork may have shown a step that is not on the final chain. Such a step is removed, with all later
//! steps of the escrow, and the escrow is followed again from the output before it. ([`super::reconcile`] verifies our
//! own entries.)

use std::collections::BTreeMap;

use cardano::TxHash;
use serde::Deserialize;
use sql::{Database, Read, Write};

use super::{
    ArbiterClient, Keys, Ledger,
    context::{RESERVED_CALLS, Tick},
};
use crate::{chain_state::SETTLED_DEPTH, contents::Contents};

/// Maximum number of transactions verified per run of the watcher. Each may have steps of several escrows.
const MAX_ASKED: usize = 8;
/// Maximum number of steps read per run of the watcher.
const MAX_READ: u32 = 64;

/// A recorded step of an escrow that has yet to be verified on the chain.
#[derive(Debug, Deserialize)]
pub(super) struct RecheckedStep {
    purchase: TxHash,
    tx: TxHash,
    height: u64,
}

/// Builds the query that reads the steps to verify when the newest block has the height `tip`, lowest block first.
pub(super) fn to_recheck(tip: u64) -> Read<Vec<RecheckedStep>> {
    sql::read!(
        "SELECT purchase_id AS purchase, tx_id AS tx, height \
         FROM escrow_steps INDEXED BY escrow_steps_recheck WHERE recheck = 1 AND height <= ?1 \
         ORDER BY height LIMIT {MAX_READ}",
        tip.saturating_sub(SETTLED_DEPTH)
    )
}

impl<D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Tick<'_, D, C, K, S, A> {
    pub(super) async fn recheck_steps(&mut self, steps: Vec<RecheckedStep>) {
        let mut changes = vec![];
        let mut asked = BTreeMap::new();
        for RecheckedStep { purchase, tx, height } in steps {
            let answer = match asked.get(&tx) {
                Some(block) => Ok(*block),
                None if asked.len() >= MAX_ASKED || self.calls_left() <= RESERVED_CALLS => break,
                None => self.ports.chain.inclusion_of(&tx).await,
            };
            if let Ok(block) = answer {
                asked.insert(tx, block);
            }
            match answer {
                Ok(Some(block)) => changes.push(vec![sql::write!(
                    "UPDATE escrow_steps SET recheck = ?3 > ?4, height = ?3, at_ms = ?6 \
                     WHERE purchase_id = ?1 AND tx_id = ?2 AND (SELECT rollbacks FROM chain_reading) = ?5",
                    purchase,
                    tx,
                    block.height,
                    self.view.tip.height.saturating_sub(SETTLED_DEPTH),
                    self.view.rollbacks,
                    block.time_ms
                )]),
                Ok(None) => {
                    self.report.note(
                        &purchase,
                        &format_args!("no block has its step {tx}, which one at {height} had: taken back"),
                    );
                    changes.push(vec![remove_from_step(&purchase, &tx, self.view.rollbacks)]);
                }
                Err(error) => {
                    self.report.note(&tx, &error);
                    break;
                }
            }
        }
        self.write_each(changes).await;
    }
}

/// Builds the statement that deletes a step of an escrow and all later steps of the same escrow.
fn remove_from_step(purchase: &TxHash, tx: &TxHash, rollbacks: u64) -> Write {
    sql::write!(
        "DELETE FROM escrow_steps WHERE purchase_id = ?1 AND (SELECT rollbacks FROM chain_reading) = ?3 \
         AND position >= (SELECT position FROM escrow_steps WHERE purchase_id = ?1 AND tx_id = ?2)",
        purchase,
        tx,
        rollbacks
    )
}
