//! Progress of earlier runs of the watcher: reading position, newest block, and open entries.

use cardano::{
    TxHash,
    chain::Tip,
    history::{AddressTransaction, Place},
    slots::Millis,
};
use outbox::{Entry, Kind, open_of_kinds};
use serde::Deserialize;
use sql::{Database, DatabaseError, One, Read, Write};

use super::restore;
use crate::platform;

/// Maximum number of transactions that a run of the watcher reads again because the provider did not return them
/// before.
const MAX_AGAIN: u32 = 3;
/// Maximum number of open actions checked per run of the watcher, those that expire first.
///
/// Payments are counted separately, because anyone can submit payments that are never included.
const MAX_ACTIONS: u32 = 12;
/// Maximum number of open locks checked per run of the watcher, before other payments.
const MAX_LOCKS: u32 = 16;
const MAX_PAYMENTS: u32 = 4;
const MAX_WITHDRAWALS: u32 = 2;
/// Maximum number of open settlements for other servers that are checked per run of the watcher, after the shop's own
/// transactions.
const MAX_SETTLEMENTS: u32 = 4;
/// Position within a block that is higher than that of any transaction.
const END_OF_BLOCK: i64 = 1_000_000;

/// A block that an earlier run of the watcher saw on the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct SeenBlock {
    pub height: u64,
    pub hash: TxHash,
}

/// A transaction in the history of the contract's address whose bytes the provider did not return.
#[derive(Clone, Copy, Debug, Deserialize)]
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

/// Stored progress of the watcher's earlier runs.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    /// Number of rollbacks recorded so far.
    pub rollbacks: u64,
    /// Position at which to go on reading the history of the escrow contract's address; `None` before the first
    /// transaction.
    pub next: Option<Place>,
    /// Newest block that an earlier run of the watcher saw.
    pub newest: Option<SeenBlock>,
    /// Height of the newest block that an earlier run of the watcher saw. After a rollback, the height of the newest
    /// such block that is still on the chain. 0 if no block is known.
    pub known_to: u64,
    /// Transactions of the contract's address whose bytes the provider did not return.
    pub unread: Vec<UnreadTransaction>,
    /// Whether the database was restored and some wallets' transactions since the backup have not been read yet.
    pub has_unread_wallets: bool,
    /// Outbox entries of open actions on escrows.
    pub actions: Vec<Entry>,
    /// Open outbox entries of payments, locks and withdrawals, followed by those of settlements for other servers.
    pub open: Vec<Entry>,
}

/// The stored row of `chain_reading`: how far the history of the contract's address has been read.
#[derive(Deserialize)]
struct Progress {
    rollbacks: u64,
    height: u64,
    position: i64,
}

impl Stored {
    pub async fn load(database: &impl Database) -> Result<Self, DatabaseError> {
        let progress: Read<One<Progress>> = sql::read!("SELECT rollbacks, height, position FROM chain_reading");
        let newest: Read<Option<SeenBlock>> =
            sql::read!("SELECT height, hash FROM chain_blocks ORDER BY height DESC LIMIT 1");
        let statements = (
            progress,
            newest,
            unread(),
            restore::has_unread_wallets(),
            open_of_kinds(
                &[Kind::Result, Kind::Collect, Kind::Refund, Kind::Dispute, Kind::Release, Kind::Payout, Kind::Split],
                MAX_ACTIONS,
            ),
            vec![
                open_of_kinds(&[Kind::Lock], MAX_LOCKS),
                open_of_kinds(&[Kind::Payment], MAX_PAYMENTS),
                open_of_kinds(&[Kind::Withdrawal], MAX_WITHDRAWALS),
                open_of_kinds(&[Kind::Settlement], MAX_SETTLEMENTS),
            ],
        );
        let (One(progress), newest, unread, unread_wallets, actions, open) = database.batch(statements).await?;
        let Progress { rollbacks, height, position } = progress;
        Ok(Self {
            rollbacks,
            next: next_of(height, position),
            newest,
            known_to: newest.map_or(0, |newest| newest.height),
            unread,
            has_unread_wallets: unread_wallets.is_some(),
            actions,
            open: open.concat(),
        })
    }

    /// Returns the height up to which the address's history has been read.
    pub fn read_to(&self) -> u64 {
        self.next.map_or(0, |next| next.height)
    }

    /// Returns whether the watcher checks the platform's wallet in this run, although no action needs it. `tip` is the
    /// height of the newest block.
    pub fn checks_wallet(&self, tip: u64) -> bool {
        platform::is_wallet_check_due(self.newest.map(|newest| newest.height), tip)
    }

    /// Builds the statement that records a rollback, and moves the reading position of the history back to the end of
    /// the block at `height`. The statement returns a row unless a concurrent run of the watcher has already recorded
    /// the rollback.
    pub fn go_back(&mut self, height: u64) -> Write<Option<String>> {
        let statement = sql::write!(
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

/// Builds the statement that reads the [`UnreadTransaction`]s.
pub(super) fn unread() -> Read<Vec<UnreadTransaction>> {
    sql::read!(
        "SELECT tx_id AS tx, height, position, at_ms FROM chain_unread \
         ORDER BY tried_at_ms LIMIT {MAX_AGAIN}"
    )
}

/// Builds the statement that advances the reading position in the history of the contract's address.
pub(super) fn advance(to: Place, rollbacks: u64) -> Write {
    sql::write!(
        "UPDATE chain_reading SET height = ?2, position = ?3 WHERE rollbacks = ?1 \
         AND (height < ?2 OR height = ?2 AND position < ?3)",
        rollbacks,
        to.height,
        to.position
    )
}

/// Builds the statement that stores the newest block.
///
/// Returns no row if a concurrent run of the watcher has undone a rollback, or has seen a different block above the
/// newest known one. This run's records may then belong to another chain.
pub(super) fn note_block(tip: &Tip, stored: &Stored) -> Write<Option<TxHash>> {
    sql::write!(
        "INSERT INTO chain_blocks (height, hash) SELECT ?1, ?2 WHERE (SELECT rollbacks FROM chain_reading) = ?3 \
         AND NOT EXISTS (SELECT 1 FROM chain_blocks WHERE height > ?4 AND hash <> ?2) \
         ON CONFLICT (height) DO UPDATE SET hash = excluded.hash RETURNING hash",
        tip.height,
        tip.hash,
        stored.rollbacks,
        stored.known_to
    )
}
