//! What earlier ticks stored: how far the chain was read, the newest block, and entries whose end is not known.

use cardano::{
    TxHash,
    chain::Tip,
    history::{AddressTransaction, Place},
    slots::Millis,
};
use outbox::{Entry, Kind, open_of_kinds};
use serde::Deserialize;
use sql::{Database, DatabaseError, Statement, exactly, statement};

use super::restore;
use crate::platform;

/// Transactions that the provider did not hand out that one tick asks for again.
const MAX_AGAIN: u32 = 3;
/// Entries of each sort whose end is not known that one tick looks after, those that expire first. Anyone can submit
/// payments that never get into a block: they must not delay actions.
const MAX_ACTIONS: u32 = 12;
/// Locks come before other payments: a lock whose client has gone is watched from here on.
const MAX_LOCKS: u32 = 16;
const MAX_PAYMENTS: u32 = 4;
const MAX_WITHDRAWALS: u32 = 2;
/// A place after all transactions of a block: no block has a million.
const END_OF_BLOCK: i64 = 1_000_000;

/// A block as it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct SeenBlock {
    pub height: u64,
    pub hash: TxHash,
}

/// A transaction that the provider listed and did not hand out.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UnreadTransaction {
    tx: TxHash,
    pub height: u64,
    position: u64,
    at_ms: Millis,
}

impl From<UnreadTransaction> for AddressTransaction {
    fn from(UnreadTransaction { tx, height, position, at_ms }: UnreadTransaction) -> Self {
        Self { tx, place: Place { height, position }, time_ms: at_ms }
    }
}

/// What is stored.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    /// Rollbacks that were undone so far.
    pub rollbacks: u64,
    /// The place of the next transaction of the escrow address to read; `None` for the first of all.
    pub next: Option<Place>,
    /// The newest block that a tick saw.
    pub newest: Option<SeenBlock>,
    /// Its height, or that of the block to which a rollback was undone.
    pub known_to: u64,
    /// Transactions of the escrow address that the provider did not hand out.
    pub unread: Vec<UnreadTransaction>,
    /// Whether wallets are to be read since a restore.
    pub has_unread_wallets: bool,
    /// Actions whose end is not known.
    pub actions: Vec<Entry>,
    /// Payments and withdrawals whose end is not known.
    pub open: Vec<Entry>,
}

impl Stored {
    pub async fn load(database: &impl Database) -> Result<Self, DatabaseError> {
        let statements = vec![
            statement!("SELECT json_array(rollbacks, height, position) FROM chain_reading"),
            statement!(
                "SELECT json_object('height', height, 'hash', hash) FROM chain_blocks ORDER BY height DESC LIMIT 1"
            ),
            unread(),
            restore::has_unread_wallets(),
            open_of_kinds(
                &[Kind::Result, Kind::Collect, Kind::Refund, Kind::Dispute, Kind::Payout, Kind::Split],
                MAX_ACTIONS,
            ),
            open_of_kinds(&[Kind::Lock], MAX_LOCKS),
            open_of_kinds(&[Kind::Payment], MAX_PAYMENTS),
            open_of_kinds(&[Kind::Withdrawal], MAX_WITHDRAWALS),
        ];
        let [progress, newest, unread, unread_wallets, actions, locks, payments, withdrawals] =
            exactly(database.batch(statements).await?)?;
        let progress: Option<(u64, u64, i64)> = progress.first_json()?;
        let (rollbacks, height, position) = progress.ok_or_else(|| DatabaseError("chain_reading is empty".into()))?;
        let open = [Entry::all(&locks)?, Entry::all(&payments)?, Entry::all(&withdrawals)?];
        let newest: Option<SeenBlock> = newest.first_json()?;
        Ok(Self {
            rollbacks,
            next: next_of(height, position),
            newest,
            known_to: newest.map_or(0, |newest| newest.height),
            unread: unread.all_json()?,
            has_unread_wallets: unread_wallets.first().is_some(),
            actions: Entry::all(&actions)?,
            open: open.concat(),
        })
    }

    /// The block up to which the address's history was read.
    pub fn read_to(&self) -> u64 {
        self.next.map_or(0, |next| next.height)
    }

    /// Whether a tick that sees a block of this height as the newest looks at the platform's wallet in any case.
    pub fn checks_wallet(&self, tip: u64) -> bool {
        platform::is_wallet_check_due(self.newest.map(|newest| newest.height), tip)
    }

    /// The statement that goes back to the end of this block, if it was read further; it answers if no other tick went back
    /// meanwhile.
    pub fn go_back(&mut self, height: u64) -> Statement {
        let statement = statement!(
            "UPDATE chain_reading SET rollbacks = rollbacks + 1, height = min(height, ?2), \
             position = iif(height > ?2, ?3, position) WHERE rollbacks = ?1 RETURNING 'gone back'",
            self.rollbacks,
            height,
            END_OF_BLOCK
        );
        self.rollbacks = self.rollbacks.saturating_add(1);
        if self.next.is_some_and(|next| next.height > height) {
            self.next = next_of(height, END_OF_BLOCK);
        }
        statement
    }
}

fn next_of(height: u64, position: i64) -> Option<Place> {
    let position = u64::try_from(position).ok()?.saturating_add(1);
    Some(Place { height, position })
}

/// The statement that reads what the provider did not hand out before, as [`UnreadTransaction`].
pub(super) fn unread() -> Statement {
    statement!(
        "SELECT json_object('tx', tx_id, 'height', height, 'position', position, 'atMs', at_ms) FROM chain_unread \
         ORDER BY tried_at_ms LIMIT {MAX_AGAIN}"
    )
}

/// The statement that moves the reading of the address's history forward to this place.
pub(super) fn advance(to: Place, rollbacks: u64) -> Statement {
    statement!(
        "UPDATE chain_reading SET height = ?2, position = ?3 WHERE rollbacks = ?1 \
         AND (height < ?2 OR height = ?2 AND position < ?3)",
        rollbacks,
        to.height,
        to.position
    )
}

/// The statement that stores the newest block. It answers only if no other tick undid a rollback meanwhile, nor saw
/// another block above the newest known one. Otherwise this tick's records may belong to another chain.
pub(super) fn note_block(tip: &Tip, stored: &Stored) -> Statement {
    statement!(
        "INSERT INTO chain_blocks (height, hash) SELECT ?1, ?2 WHERE (SELECT rollbacks FROM chain_reading) = ?3 \
         AND NOT EXISTS (SELECT 1 FROM chain_blocks WHERE height > ?4 AND hash <> ?2) \
         ON CONFLICT (height) DO UPDATE SET hash = excluded.hash RETURNING hash",
        tip.height,
        tip.hash,
        stored.rollbacks,
        stored.known_to
    )
}
