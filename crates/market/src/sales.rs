//! What was sold, for its seller: each sale with what the seller gets and the transaction that paid it.

use sql::{Statement, statement};

/// Sales that are listed at most: the newest.
const MAX_LISTED: u32 = 1_000;

/// The statement that reads an address's sales as JSON, newest first: `{id, title, status, soldAt, amountLovelace, payout?}`,
/// the payout `{txHash, at}`; times in POSIX ms.
pub fn of_seller(address: &str) -> Statement {
    statement!(format!(include_str!("sales.sql"), most = MAX_LISTED), address)
}
