//! Version of the shop's data, which caches are keyed by.

use cardano::slots::Millis;
use sql::{DatabaseError, Rows, Statement, statement};

/// The catalogue's version and the chain's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShopState {
    /// Version of the catalogue, which grows with every visible change, including hidden listings.
    pub version: i64,
    /// Time of the newest known block, POSIX ms; 0 if none is known.
    pub block_ms: Millis,
}

/// Statement that reads the [`ShopState`].
pub fn read() -> Statement {
    statement!("SELECT json_array(version, coalesce((SELECT tip_time_ms FROM chain_state), 0)) FROM catalogue_version")
}

/// Parses the row of [`read`].
///
/// # Errors
/// The row is missing or malformed.
pub fn of(rows: &Rows) -> Result<ShopState, DatabaseError> {
    let row: Option<(i64, Millis)> = rows.first_json()?;
    let (version, block_ms) = row.ok_or_else(|| DatabaseError("no catalogue version".into()))?;
    Ok(ShopState { version, block_ms })
}
