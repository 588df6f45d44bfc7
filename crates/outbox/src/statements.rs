//! SQL statements of the outbox. No other statements write the states of its entries.

use std::collections::BTreeMap;

use cardano::{Address, TxHash, chain::Inclusion, slots::Millis};
use sql::{Read, Write};

use crate::{
    decide::{Decision, EXPIRY_GRACE_SLOTS},
    entry::{ENTRY, Entry, Kind, NewEntry},
    wallet::{MAX_LAG_MS, MAX_LATE_MS},
};

/// Maximum number of inputs reserved for an external payment. The limit bounds the number of rows that one request
/// writes. If two payments share an input that is not reserved, the ledger still accepts only one of them.
const MAX_RESERVED: usize = 32;

/// Maximum number of recent transactions for one purpose that were refused or expired. If there are more, no further
/// transaction is sent for the purpose. Queries read one more than this number to detect that.
pub const MAX_GIVEN_UP: usize = 32;
/// Maximum number of entries that [`overdue`] returns.
const MAX_OVERDUE: u32 = 3;
/// Maximum number of slots by which the provider's view of the chain lags: [`MAX_LAG_MS`] in slots.
const MAX_LAG_SLOTS: u64 = MAX_LAG_MS / 1_000;
/// Maximum number of open entries that are read for one wallet and kind of transaction.
const MAX_OPEN: u32 = 3;

/// Returns the outputs that an entry reserves, as a JSON object. Each key is an output's reference, and its value is 1
/// if the output is only collateral, otherwise 0. For an external payer's transaction, the keys begin with `payer:`, so
/// that a stranger cannot reserve an output of the service.
fn reserves(new: &NewEntry) -> String {
    let put_up = new.collateral.iter().map(|output| (output.to_string(), 1));
    // An output that is both input and collateral counts as an input.
    let names: BTreeMap<String, u8> = match new.wallet {
        Some(_) => put_up.chain(new.spends.iter().map(|output| (output.to_string(), 0))).collect(),
        None => new.spends.iter().take(MAX_RESERVED).map(|output| (format!("payer:{output}"), 0)).collect(),
    };
    serde_json::json!(names).to_string()
}

/// Builds the statement that stores a transaction as an entry with its first attempt, and returns the entry.
///
/// Nothing is stored if an open or included entry has the same purpose, an output is reserved, or the guard fails.
/// Triggers write the reservations and the dependent rows. A refused transaction of a wallet can be recorded again by
/// that wallet. A refused external payment can be recorded again for the same purpose, and for another purpose only if
/// its payer sent the request.
pub fn write_down(new: &NewEntry, now: Millis) -> Write<Option<Entry>> {
    let (blocked_by, facts) =
        new.guard.as_ref().map_or(("SELECT NULL", String::new()), |it| (it.blocked_by, it.facts.to_string()));
    sql::write!(
        format!(include_str!("write_down.sql"), blocked_by = blocked_by, entry = ENTRY),
        facts,
        new.tx,
        new.kind.name(),
        new.purpose.as_str(),
        new.wallet,
        hex::encode(&new.cbor),
        new.valid_until,
        now,
        reserves(new),
        new.provenance.name(),
        serde_json::json!(new.acts_on).to_string(),
    )
}

/// Builds the query for the entry of a transaction.
pub fn by_id(tx: &TxHash) -> Read<Option<Entry>> {
    sql::read!("SELECT {ENTRY} FROM outbox WHERE tx_id = ?1", tx)
}

/// Builds the query for the outbox entry with this purpose that is open or included.
pub fn live_for(purpose: &str) -> Read<Option<Entry>> {
    sql::read!("SELECT {ENTRY} FROM outbox WHERE purpose = ?1 AND phase <> 'given_up' LIMIT 1", purpose)
}

/// Builds the query for the recently refused or expired entries of a purpose ([`crate::Replacement`]), oldest first.
pub fn given_up_for(purpose: &str, now: Millis) -> Read<Vec<Entry>> {
    sql::read!(
        "SELECT {ENTRY} FROM outbox WHERE purpose = ?1 AND phase = 'given_up' \
         AND created_at_ms > ?2 ORDER BY created_at_ms LIMIT {MAX_GIVEN_UP} + 1",
        purpose,
        now.saturating_sub(MAX_LATE_MS)
    )
}

/// Builds the query for the open entries of the wallet that built the transaction `tx`.
pub(crate) fn open_of_same_wallet(tx: &TxHash) -> Read<Vec<Entry>> {
    sql::read!(
        "SELECT {ENTRY} FROM outbox INDEXED BY outbox_not_included \
         WHERE wallet = (SELECT wallet FROM outbox WHERE tx_id = ?1) AND state <> 'included' \
         AND phase = 'open'",
        tx
    )
}

/// Builds the query for at most `most` open entries of these kinds, in the order in which they expire.
pub fn open_of_kinds(kinds: &[Kind], most: u32) -> Read<Vec<Entry>> {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    sql::read!(format!(
        "SELECT {ENTRY} FROM outbox WHERE kind IN ('{}') AND phase = 'open' \
             ORDER BY valid_until_slot LIMIT {most}",
        names.join("', '")
    ))
}

/// Builds the statement that marks the included entries in blocks above the height `above`, up to and including
/// `up_to`. After a rollback, marked entries are looked up on the chain again.
pub fn recheck(above: u64, up_to: u64) -> Write {
    sql::write!(
        "UPDATE outbox SET recheck = 1 WHERE state = 'included' AND block_height > ?1 AND block_height <= ?2 AND recheck = 0",
        above,
        up_to
    )
}

/// Builds the query for at most `most` entries that [`recheck`] has marked and that these blocks included. Payments
/// that the facilitator settles for other servers come last.
pub fn to_recheck(blocks: &[TxHash], most: u32) -> Read<Vec<Entry>> {
    sql::read!(
        "SELECT {ENTRY} FROM outbox WHERE recheck = 1 AND block_hash IN (SELECT value FROM json_each(?1)) \
         ORDER BY kind = 'settlement', block_height LIMIT {most}",
        serde_json::json!(blocks).to_string()
    )
}

/// Builds the statement that removes the mark of [`recheck`] from entries in a block that is still on the chain.
pub fn clear_recheck_of_block(height: u64, block: &TxHash) -> Write {
    sql::write!(
        "UPDATE outbox SET recheck = 0 WHERE recheck = 1 AND block_height = ?1 AND block_hash = ?2",
        height,
        block
    )
}

/// Builds the query for a wallet's open entries that expired before this slot, and for the newest refused or expired
/// entries whose validity ended within the last hour. A block may include a refused or expired entry after all; then
/// its inputs are spent.
pub fn overdue(wallet: &Address, slot: u64) -> Read<Vec<Entry>> {
    sql::read!(
        "SELECT {ENTRY} FROM outbox INDEXED BY outbox_not_included WHERE wallet = ?1 AND state <> 'included' \
         AND (phase = 'open' AND valid_until_slot < ?2 \
           OR phase = 'given_up' AND valid_until_slot > ?3) \
         ORDER BY phase = 'given_up', created_at_ms DESC LIMIT {MAX_OVERDUE}",
        wallet,
        slot.saturating_sub(EXPIRY_GRACE_SLOTS),
        slot.saturating_sub(MAX_LAG_SLOTS),
    )
}

/// Builds the query for a wallet's open entries of a kind, oldest first.
pub fn open(wallet: &Address, kind: Kind) -> Read<Vec<Entry>> {
    sql::read!(
        "SELECT {ENTRY} FROM outbox INDEXED BY outbox_not_included WHERE wallet = ?1 AND state <> 'included' \
         AND kind = ?2 AND phase = 'open' ORDER BY created_at_ms LIMIT {MAX_OPEN}",
        wallet,
        kind.name(),
    )
}

/// Builds the statement that removes the mark of [`recheck`] from an entry whose block has not changed.
pub fn clear_recheck(tx: &TxHash) -> Write {
    sql::write!("UPDATE outbox SET recheck = 0 WHERE tx_id = ?1", tx)
}

/// Builds the statement that records another attempt to submit an entry, and returns the entry. Changes nothing if
/// another attempt began since `entry` was read.
pub(crate) fn begin_attempt(entry: &Entry, now: Millis) -> Write<Option<Entry>> {
    sql::write!(
        "UPDATE outbox SET attempts = attempts + 1, attempted_at_ms = ?4 WHERE tx_id = ?1 AND attempts = ?2 \
         AND attempted_at_ms = ?3 AND phase = 'open' RETURNING {ENTRY}",
        entry.tx,
        entry.attempts,
        entry.attempted_at_ms,
        now,
    )
}

/// Builds the statement that gives up external transactions of this kind that are still open although their validity
/// ended before the slot `before`, at most `most`, without looking them up on the chain. If a block includes such a
/// transaction, a later request of its payer or of the other server finds the block. A payment that its payer may still
/// claim by a signature becomes refused; others become expired.
pub fn give_up_expired(kind: Kind, before: u64, most: u32) -> Write {
    let kind = kind.name();
    sql::write!(
        "UPDATE outbox SET \
           state = iif(state = 'claimed' AND provenance = 'unknown' AND kind <> 'settlement', 'refused', 'expired'), \
           provenance = iif(provenance = 'unknown', 'foreign', provenance), \
           reason = 'no block had it in time', cbor = '' \
         WHERE tx_id IN (SELECT tx_id FROM outbox WHERE kind = '{kind}' AND phase = 'open' AND wallet IS NULL \
           AND valid_until_slot < ?1 ORDER BY valid_until_slot LIMIT {most})",
        before
    )
}

/// Builds the statement that excludes refused or expired entries from further lookups, because no block has included
/// them long after their expiry.
pub fn mark_never_included(txs: &[TxHash]) -> Write {
    sql::write!(
        "UPDATE outbox SET never_included = 1 WHERE phase = 'given_up' AND tx_id IN (SELECT value FROM json_each(?1))",
        serde_json::json!(txs).to_string()
    )
}

/// Builds the statement that subtracts an entry's last attempt from the number of attempts, because the attempt reached
/// no node. Changes nothing if another attempt began since `entry` was read.
pub(crate) fn attempt_not_sent(entry: &Entry) -> Write {
    sql::write!(
        "UPDATE outbox SET attempts = attempts - 1 WHERE tx_id = ?1 AND attempts = ?2 AND attempted_at_ms = ?3 \
         AND attempts > 0",
        entry.tx,
        entry.attempts,
        entry.attempted_at_ms
    )
}

/// Builds the statement that restores the deleted CBOR of a transaction, because a block includes the transaction after
/// all.
pub(crate) fn restore_cbor(entry: &Entry) -> Write {
    sql::write!("UPDATE outbox SET cbor = ?2 WHERE tx_id = ?1 AND cbor = ''", entry.tx, hex::encode(&entry.cbor))
}

/// Builds the statement that records a decision and returns the changed entry, or `None` if the decision changes
/// nothing. Triggers update the reservations.
#[must_use]
pub fn change(entry: &Entry, decision: &Decision) -> Option<Write<Option<Entry>>> {
    let update = |set: &str, condition: &str| {
        format!("UPDATE outbox SET {set} WHERE tx_id = ?1 AND {condition} RETURNING {ENTRY}")
    };
    let in_block = |block: &Inclusion, condition: &str| {
        let set = "state = 'included', reason = NULL, recheck = 0, block_hash = ?2, block_height = ?3, block_slot = ?4, \
            block_time_ms = ?5, cbor = iif(cbor = '', ?6, cbor)";
        let Inclusion { block, height, slot, time_ms, .. } = *block;
        sql::write!(update(set, condition), entry.tx, block, height, slot, time_ms, hex::encode(&entry.cbor))
    };
    Some(match decision {
        Decision::Wait | Decision::Submit => return None,
        Decision::Accept => {
            // A node rejects a transaction that it already has, so nobody else had submitted this one before.
            sql::write!(update("state = 'submitted', provenance = 'ours'", "state = 'claimed'"), entry.tx)
        }
        // Another request may have given up the entry, and deleted its bytes, since it was read.
        Decision::Include(block) => in_block(block, "state <> 'included'"),
        Decision::ChangeBlock(block) => in_block(block, "state = 'included'"),
        Decision::Reopen => {
            let set = "state = 'submitted', block_hash = NULL, block_height = NULL, block_slot = NULL, block_time_ms = NULL, \
                attempted_at_ms = 0, recheck = 0";
            sql::write!(update(set, "state = 'included'"), entry.tx)
        }
        Decision::Refuse(reason) => {
            let set = "state = 'refused', provenance = iif(provenance = 'unknown', 'foreign', provenance), \
                reason = substr(?4, 1, 300), cbor = iif(wallet IS NULL, '', cbor)";
            let condition = "phase = 'open' AND attempts = ?2 AND attempted_at_ms = ?3";
            sql::write!(update(set, condition), entry.tx, entry.attempts, entry.attempted_at_ms, reason.as_str())
        }
        Decision::Expire => {
            let set = "state = 'expired', reason = 'no block had it in time', cbor = iif(wallet IS NULL, '', cbor)";
            sql::write!(update(set, "phase = 'open'"), entry.tx)
        }
    })
}
