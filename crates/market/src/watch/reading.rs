//! What is stored of earlier ticks: how far the chain was read, which blocks were seen, what of ours is open.

use cardano::{TxHash, chain::Tip, history::Place, slots::Millis};
use serde::Deserialize;
use sql::{Database, DatabaseError, Statement, exactly, statement};

use super::rollback::{self, Held};
use crate::listing::DeliveryMode;

/// Actions of ours that one tick looks after at most, those that expire first.
const MAX_ACTIONS: u32 = 6;
/// Payments of buyers, likewise. Anyone can hand in many that never get into a block: they must not keep actions waiting.
const MAX_PAYMENTS: u32 = 4;

/// A block as it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Seen {
    pub height: u64,
    pub hash: TxHash,
}

/// A transaction of ours whose end is not known.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Open {
    pub tx: TxHash,
    pub cbor: String,
    pub mode: Option<DeliveryMode>,
    pub state: String,
    pub valid_until: u64,
    pub attempts: u32,
    pub attempted_at_ms: Millis,
}

#[derive(Deserialize)]
struct Progress {
    version: u64,
    height: u64,
    position: i64,
    behind: bool,
}

/// What is stored.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    /// Grows with every reading that is written.
    pub version: u64,
    /// The place of the next transaction to read; `None` for the first of all.
    pub next: Option<Place>,
    /// Whether a tick may have left something to read up to the newest block that it saw.
    pub behind: bool,
    /// The newest block that a tick saw.
    pub newest: Option<Seen>,
    /// Newer blocks that have transactions of ours, as whoever found these saw them; newest first.
    pub unseen: Vec<Seen>,
    /// Transactions of ours that are open.
    pub open: Vec<Open>,
    /// Transactions of ours that a rollback put in doubt.
    pub doubted: Vec<Held>,
}

pub(super) const OPEN_JSON: &str = "json_object('tx', tx_id, 'cbor', cbor, 'mode', mode, 'state', state, \
    'validUntil', valid_until_slot, 'attempts', attempts, 'attemptedAtMs', attempted_at_ms)";

/// The statement that reads transactions of ours whose end is not known, those that expire first.
fn open(which: &str, most: u32) -> Statement {
    statement!(format!(
        "SELECT {OPEN_JSON} FROM settlements WHERE state IN ('claimed', 'submitted') AND {which} \
         ORDER BY valid_until_slot LIMIT {most}"
    ))
}

impl Reading {
    pub async fn load(database: &impl Database) -> Result<Self, DatabaseError> {
        let [progress, newest, actions, payments, doubted, unseen] = exactly(
            database
                .batch(vec![
                    statement!(
                        "SELECT json_object('version', version, 'height', height, 'position', position, \
                           'behind', json(iif(behind, 'true', 'false'))) FROM chain_reading"
                    ),
                    statement!(
                        "SELECT json_object('height', height, 'hash', hash) FROM chain_blocks ORDER BY height DESC LIMIT 1"
                    ),
                    open("action IS NOT NULL", MAX_ACTIONS),
                    open("action IS NULL", MAX_PAYMENTS),
                    rollback::doubted(),
                    rollback::unseen(),
                ])
                .await?,
        )?;
        let progress: Progress =
            progress.first_json()?.ok_or_else(|| DatabaseError("chain_reading is empty".into()))?;
        Ok(Self {
            version: progress.version,
            next: next_of(progress.height, progress.position),
            behind: progress.behind,
            newest: newest.first_json()?,
            unseen: unseen.all_json()?,
            open: actions.all_json::<Open>()?.into_iter().chain(payments.all_json()?).collect(),
            doubted: doubted.all_json()?,
        })
    }

    /// The statement that moves the reading to this place; it fails, and the batch with it, if another tick was first.
    pub fn advance(&mut self, to: Place) -> Statement {
        let position = i64::try_from(to.position).unwrap_or(i64::MAX);
        let statement = statement!(
            "UPDATE chain_reading SET version = iif(version = ?1, version + 1, NULL), height = ?2, position = ?3",
            self.version,
            to.height,
            position
        );
        self.version = self.version.saturating_add(1);
        self.next = next_of(to.height, position);
        statement
    }

    /// The statement that notes whether something may be left to read.
    pub fn note_behind(&mut self, behind: bool) -> Statement {
        self.behind = behind;
        statement!("UPDATE chain_reading SET behind = ?1 WHERE behind <> ?1", behind)
    }

    /// The statement that goes back to the end of this block, if it was read further.
    pub fn go_back(&mut self, height: u64) -> Statement {
        let statement = statement!(
            "UPDATE chain_reading SET version = iif(version = ?1, version + 1, NULL), height = min(height, ?2), \
             position = iif(height > ?2, ?3, position)",
            self.version,
            height,
            END_OF_BLOCK
        );
        self.version = self.version.saturating_add(1);
        if self.next.is_some_and(|next| next.height > height) {
            self.next = next_of(height, END_OF_BLOCK);
        }
        statement
    }
}

/// A place after all transactions of a block: no block has a million.
const END_OF_BLOCK: i64 = 1_000_000;

fn next_of(height: u64, position: i64) -> Option<Place> {
    let position = u64::try_from(position).ok()?.saturating_add(1);
    Some(Place { height, position })
}

/// The statement that notes the newest block.
pub(super) fn note_block(tip: &Tip) -> Statement {
    statement!(
        "INSERT INTO chain_blocks (height, hash) VALUES (?1, ?2) ON CONFLICT (height) DO UPDATE SET hash = excluded.hash",
        tip.height,
        tip.hash.to_string()
    )
}
