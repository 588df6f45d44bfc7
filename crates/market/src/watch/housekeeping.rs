//! Deletes rows that are no longer needed, a bounded number per run of the watcher. This happens before the run writes
//! anything else, so that a full database has room again. Runs with even numbers delete data of agents, and all others
//! delete data of the market, because Workers' free plan allows 50 statements per run.

use cardano::{chain::Tip, slots::Millis};
use outbox::{Kind, MAX_LAG_MS, NOT_OUR_SUBMISSION, give_up_expired};
use sql::{Database, Write};

use super::{ArbiterClient, Keys, Ledger, Watch, context::Tick};
use crate::{contents::Contents, event, limits::DAY_MS};

/// Maximum depth of a rollback in blocks (the network's security parameter).
const SECURITY_BLOCKS: u64 = 2_160;
/// Maximum number of rows deleted per statement. More rows are seldom written between two runs of the watcher.
const MAX_ROWS: u32 = 5_000;
/// Maximum number of challenge claims deleted per statement. It is the number of sign-ins that fifty client networks
/// can make in a minute. Claims are deleted an hour after they were made.
const MAX_CLAIMS: u32 = 30_000;
const DAY_SLOTS: u64 = 24 * 60 * 60;
/// Lifetime of a payment identifier in ms.
const IDENTIFIER_MS: Millis = 30 * DAY_MS;

/// Number of slots for which a failed payment stays stored after its validity has ended, so that it is found if a block
/// includes it after all.
const FAILED_SLOTS: u64 = 30 * DAY_SLOTS;

/// Number of slots for which a settlement for another server is stored after its transaction has expired. After that,
/// no record is needed: the transaction is refused because it has expired or because a block includes it.
const SETTLEMENT_SLOTS: u64 = 30 * DAY_SLOTS;

/// SQL condition that holds for payments and locks without a purchase. Queries must also exclude transactions that
/// somebody else submitted and a block includes, because their payers may still claim them with a signature.
const PAYMENTS: &str = "kind IN ('payment', 'lock') AND NOT EXISTS (SELECT 1 FROM purchases WHERE id = outbox.tx_id)";

/// SQL condition that holds for actions on escrows. Once such an action has ended, its entry can be deleted, because
/// the chain shows the action's effects.
const ACTIONS: &str = "kind IN ('result', 'collect', 'refund', 'dispute', 'release')";

/// Time in ms for which an agent's expired grant stays stored. It is much longer than the grant's tokens are valid.
const GRANT_MS: Millis = 100 * DAY_MS;

/// Time in ms for which a client's cached metadata document stays stored after it has become stale, for use while it
/// cannot be fetched again.
const DOCUMENT_MS: Millis = 30 * DAY_MS;

impl<D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Tick<'_, D, C, K, S, A> {
    /// Deletes rows that are no longer needed. If a statement fails, the failure is noted, and the rest of the run
    /// continues.
    pub(super) async fn clean_up(&mut self) {
        let Watch { number, now, .. } = *self.ports;
        let statements = if number.is_multiple_of(2) { agents(now) } else { market(now, &self.view.tip) };
        self.write_each(statements.into_iter().map(|statement| vec![statement]).collect()).await;
    }
}

/// Builds the statements that give up expired transactions and delete old outbox entries, sessions, events and blocks,
/// and counts of earlier days.
fn market(now: Millis, tip: &Tip) -> Vec<Write> {
    let long_ago = tip.slot.saturating_sub(MAX_LAG_MS / 1_000);
    vec![
        give_up_expired(Kind::Payment, long_ago, MAX_ROWS),
        give_up_expired(Kind::Settlement, long_ago, MAX_ROWS),
        remove_entries(
            &format!("reason IS NOT '{NOT_OUR_SUBMISSION}' AND {PAYMENTS}"),
            tip.slot.saturating_sub(FAILED_SLOTS),
        ),
        remove_settlements(tip.slot.saturating_sub(SETTLEMENT_SLOTS)),
        remove_entries(ACTIONS, tip.slot.saturating_sub(DAY_SLOTS)),
        sql::write!(
            "DELETE FROM payment_identifiers WHERE (listing_id, identifier) IN (SELECT listing_id, identifier \
             FROM payment_identifiers WHERE created_at_ms < ?1 ORDER BY created_at_ms LIMIT {MAX_ROWS})",
            now.saturating_sub(IDENTIFIER_MS)
        ),
        remove_older("sessions", "token_hash", "expires_at_ms", now),
        remove_oldest("challenge_claims", "digest", "expires_at_ms", now, MAX_CLAIMS),
        event::remove_old(now),
        remove_older("chain_unread", "tx_id", "listed_at_ms", now.saturating_sub(DAY_MS)),
        remove_older("daily_listing_usage", "rowid", "day", now / DAY_MS),
        remove_older("granted_days", "rowid", "day", now / DAY_MS),
        remove_older("registered_days", "rowid", "day", now / DAY_MS),
        sql::write!("DELETE FROM chain_blocks WHERE height < ?1", tip.height.saturating_sub(SECURITY_BLOCKS)),
    ]
}

/// Builds the statement that deletes outbox entries whose validity ended before the slot `before`, and the rows that
/// refer to them. `which` is an SQL condition for the entries.
fn remove_entries(which: &str, before: u64) -> Write {
    sql::write!(
        "DELETE FROM outbox WHERE tx_id IN (SELECT tx_id FROM outbox WHERE phase = 'given_up' \
         AND valid_until_slot < ?1 AND {which} ORDER BY valid_until_slot LIMIT {MAX_ROWS})",
        before
    )
}

/// Builds the statement that deletes closed settlements for other servers whose validity ended before the slot
/// `before`. A settlement whose inputs are still reserved stays until a later run of the watcher.
fn remove_settlements(before: u64) -> Write {
    sql::write!(
        "DELETE FROM outbox WHERE tx_id IN (SELECT tx_id FROM outbox INDEXED BY outbox_settlements WHERE kind = 'settlement' \
         AND valid_until_slot < ?1 AND phase <> 'open' \
         AND NOT EXISTS (SELECT 1 FROM reservations WHERE tx_id = outbox.tx_id) \
         ORDER BY valid_until_slot LIMIT {MAX_ROWS})",
        before
    )
}

/// Builds the statements that delete expired data of agents: requests for approval, registrations without a grant,
/// cached documents, assertions, and grants that ended long ago, with the records of their spending.
fn agents(now: Millis) -> Vec<Write> {
    let due =
        format!("(SELECT id FROM oauth_clients WHERE kept_until_ms < ?1 ORDER BY kept_until_ms LIMIT {MAX_ROWS})");
    let named = "EXISTS (SELECT 1 FROM oauth_grants WHERE client_id = oauth_clients.id)";
    let unused = "NOT EXISTS (SELECT 1 FROM agent_spends WHERE grant_id = oauth_grants.id)";
    let ended = |column: &str| {
        sql::write!(
            "DELETE FROM oauth_grants WHERE id IN (SELECT id FROM oauth_grants WHERE {column} < ?1 AND {unused} \
             ORDER BY {column} LIMIT {MAX_ROWS})",
            now.saturating_sub(GRANT_MS)
        )
    };
    let spends = |column: &str| {
        sql::write!(
            "DELETE FROM agent_spends WHERE tx_id IN (SELECT s.tx_id FROM oauth_grants g CROSS JOIN agent_spends s \
             ON s.grant_id = g.id WHERE g.{column} < ?1 ORDER BY g.{column} LIMIT {MAX_ROWS})",
            now.saturating_sub(GRANT_MS)
        )
    };
    vec![
        remove_older("purchase_requests", "id", "expires_at_ms", now),
        sql::write!("DELETE FROM oauth_clients WHERE id IN {due} AND NOT {named}", now),
        sql::write!(
            "UPDATE oauth_clients SET kept_until_ms = ?2 WHERE id IN {due} AND {named}",
            now,
            now.saturating_add(DAY_MS)
        ),
        remove_older("oauth_documents", "url", "fresh_until_ms", now.saturating_sub(DOCUMENT_MS)),
        remove_older("oauth_assertions", "digest", "expires_at_ms", now),
        spends("revoked_at_ms"),
        ended("revoked_at_ms"),
        spends("rotated_at_ms"),
        ended("rotated_at_ms"),
    ]
}

/// Builds the statement that deletes the oldest expired rows of a table.
fn remove_older(table: &str, key: &str, column: &str, than: Millis) -> Write {
    remove_oldest(table, key, column, than, MAX_ROWS)
}

/// Builds the statement that deletes the rows of a table whose `column` is less than `than` (POSIX ms), at most `most`,
/// oldest first.
fn remove_oldest(table: &str, key: &str, column: &str, than: Millis, most: u32) -> Write {
    sql::write!(
        "DELETE FROM {table} WHERE {key} IN \
         (SELECT {key} FROM {table} WHERE {column} < ?1 ORDER BY {column} LIMIT {most})",
        than
    )
}
