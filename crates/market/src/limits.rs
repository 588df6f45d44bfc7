//! What an account may spend: per purchase, per UTC day, and by whose authorization.

use cardano::Lovelace;
use serde::Deserialize;
use sql::{Statement, statement};

/// A UTC day, in ms: daily budgets begin anew at midnight UTC.
pub const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// The UTC day of a time in POSIX ms: days since 1970-01-01.
#[must_use]
pub const fn day(now_ms: u64) -> u64 {
    now_ms / DAY_MS
}

/// What lets a request use an account. After its end the account pays no more.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
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

/// Why an account does not pay. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
pub enum SpendRefused {
    #[error("signed out, or removed by the owner, meanwhile: nothing was paid")]
    SignedOut,
    #[error("over the limit of {} per purchase: raise it on your account page, under Spending limits", limit.display_tada())]
    PerPayment { limit: Lovelace },
    #[error(
        "over the daily limit: {} of {} are spent today (UTC); raise it on your account page, under Spending limits, or try again tomorrow",
        spent.display_tada(), limit.display_tada()
    )]
    Daily { limit: Lovelace, spent: Lovelace },
    /// The agent's owner has to approve it first ([`crate::purchase_request`]).
    #[error("the owner approves purchases at this price one by one, and did not approve this one: nothing was paid")]
    Unapproved,
}

/// SQL for what an account has spent on a day, in lovelace, over SQL for its owner and for the day. Payments that were
/// refused or expired do not count.
pub(crate) fn spent_on(owner: &str, day: &str) -> String {
    format!(
        "coalesce((SELECT sum(p.amount_lovelace) FROM payments p JOIN outbox o ON o.tx_id = p.tx_id \
         WHERE p.owner = {owner} AND p.day = {day} AND o.state IN ('claimed', 'submitted', 'included')), 0)"
    )
}

/// The statement that reads what an account has spent today, in lovelace, as a JSON string.
pub fn spent_today(owner: &str, now_ms: u64) -> Statement {
    statement!(format!("SELECT json_quote(CAST({} AS TEXT))", spent_on("?1", "?2")), owner, day(now_ms))
}
