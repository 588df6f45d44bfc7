//! Spending limits of an account: per purchase, per UTC day, and per authorization.

use cardano::Lovelace;
use sql::{One, Read};

/// Length of a UTC day in ms. Daily budgets reset at midnight UTC.
pub const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Returns the UTC day of a time in POSIX ms, in days since 1970-01-01.
#[must_use]
pub const fn day(now_ms: u64) -> u64 {
    now_ms / DAY_MS
}

/// Authorization by which a request uses an account: the owner's session or an agent's grant. A request can no longer
/// pay from the account once its authorization has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authorization {
    /// A session, by its token's hash.
    Session(String),
    /// An agent's grant, by its id.
    Grant(String),
}

impl Authorization {
    pub(crate) fn session(&self) -> Option<&str> {
        if let Self::Session(hash) = self { Some(hash) } else { None }
    }

    pub(crate) fn grant(&self) -> Option<&str> {
        if let Self::Grant(id) = self { Some(id) } else { None }
    }
}

/// Reason why a payment from an account was not allowed. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpendRefused {
    #[error("the session or the agent's access has ended in the meantime: nothing was paid")]
    SignedOut,
    #[error(
        "the owner has paused all agents: nothing was paid. The owner resumes them on the account page, under Agents"
    )]
    Paused,
    #[error(
        "the owner lets agents buy with protection only: nothing was paid. Buy in mode protected; the owner can change the \
         rule on the account page, under Rules for agents"
    )]
    ProtectedOnly,
    #[error(
        "the owner lets agents buy only from sellers with a reputation of at least {least}: nothing was paid. Choose \
         another seller; the owner can change the rule on the account page, under Rules for agents"
    )]
    Reputation {
        /// Minimum reputation of the seller, 1 to 100.
        least: u8,
    },
    #[error("over the limit of {} per purchase: raise it on your account page, under Spending limits", limit.display_tada())]
    PerPayment { limit: Lovelace },
    #[error(
        "over the daily limit: {} of {} are spent today (UTC); raise it on your account page, under Spending limits, or try again tomorrow",
        spent.display_tada(), limit.display_tada()
    )]
    Daily { limit: Lovelace, spent: Lovelace },
    /// The owner of the agent must approve this purchase first ([`crate::purchase_request`]).
    #[error("the owner must approve each purchase at this price, and has not approved this one: nothing was paid")]
    Unapproved,
}

/// Returns the SQL for the amount in lovelace that an account has spent on a day. `owner` and `day` are SQL
/// expressions. Rejected and expired payments do not count.
pub(crate) fn spent_on(owner: &str, day: &str) -> String {
    format!(
        "coalesce((SELECT sum(p.amount_lovelace) FROM payments p JOIN outbox o ON o.tx_id = p.tx_id \
         WHERE p.owner = {owner} AND p.day = {day} AND o.phase <> 'given_up'), 0)"
    )
}

/// Builds the query that reads the amount that an account has spent today, in lovelace.
pub fn spent_today(owner: &str, now_ms: u64) -> Read<One<Lovelace>> {
    let spent = spent_on("?1", "?2");
    sql::read!("SELECT CAST({spent} AS TEXT)", owner, day(now_ms))
}
