//! Steps that others made, once more: a node on another fork may have shown one that never comes into a block of the chain
//! that stays. Own entries are asked for again by themselves; these, when their block is deep enough that all nodes agree.
//! One that is in none is taken back, with what came after it, and the escrow followed from where it was before.

use std::collections::BTreeMap;

use cardano::TxHash;
use serde::Deserialize;
use serde_json::json;
use sql::{Database, Statement, statement};

use super::{
    ArbiterClient, Keys, Ledger,
    context::{CALLS_KEPT, Tick},
};
use crate::{contents::Contents, purchase::escrows_follow_steps};

/// How many blocks are on top of one when the steps in it are asked for again: some two minutes.
const DEEP: u64 = 6;
/// Transactions that are asked for in one tick: each may be the step of several escrows.
const MAX_ASKED: usize = 8;
/// Steps that are read.
const MAX_READ: u32 = 64;

/// A step that others made.
#[derive(Debug, Deserialize)]
pub(super) struct Unsure {
    purchase: TxHash,
    tx: TxHash,
    height: u64,
}

/// The statement that reads steps to be asked for again, the lowest first.
pub(super) fn unsure(tip: u64) -> Statement {
    statement!(
        format!(
            "SELECT json_object('purchase', purchase_id, 'tx', tx_id, 'height', height) \
             FROM escrow_steps INDEXED BY escrow_steps_unsure WHERE unsure = 1 AND height <= ?1 \
             ORDER BY height LIMIT {MAX_READ}"
        ),
        tip.saturating_sub(DEEP)
    )
}

impl<D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Tick<'_, D, C, K, S, A> {
    /// Asks for steps again.
    pub(super) async fn make_sure(&mut self, steps: Vec<Unsure>) {
        let mut changes = vec![];
        let mut asked = BTreeMap::new();
        for Unsure { purchase, tx, height } in steps {
            let answer = match asked.get(&tx) {
                Some(block) => Ok(*block),
                None if asked.len() >= MAX_ASKED || self.calls_left() <= CALLS_KEPT => break,
                None => self.ports.chain.inclusion_of(&tx).await,
            };
            if let Ok(block) = answer {
                asked.insert(tx, block);
            }
            match answer {
                Ok(Some(block)) => changes.push(vec![statement!(
                    "UPDATE escrow_steps SET unsure = ?3 > ?4, height = ?3 WHERE purchase_id = ?1 AND tx_id = ?2 \
                     AND (SELECT rollbacks FROM chain_reading) = ?5",
                    purchase,
                    tx,
                    block.height,
                    self.view.tip.height.saturating_sub(DEEP),
                    self.view.rollbacks
                )]),
                Ok(None) => {
                    self.report.note(
                        &purchase,
                        &format_args!("no block has its step {tx}, which one at {height} had: taken back"),
                    );
                    let mut back = vec![taken_back(&purchase, &tx, self.view.rollbacks)];
                    back.extend(escrows_follow_steps(
                        "SELECT value FROM json_each(?1)",
                        &json!([purchase]).to_string(),
                    ));
                    changes.push(back);
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

/// The statement that removes a step and what came after it.
fn taken_back(purchase: &TxHash, tx: &TxHash, rollbacks: u64) -> Statement {
    statement!(
        "DELETE FROM escrow_steps WHERE purchase_id = ?1 AND (SELECT rollbacks FROM chain_reading) = ?3 \
         AND position >= (SELECT position FROM escrow_steps WHERE purchase_id = ?1 AND tx_id = ?2)",
        purchase,
        tx,
        rollbacks
    )
}
