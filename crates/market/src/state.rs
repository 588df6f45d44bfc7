//! The state of the shop in one row: what a reader may know for a moment without asking.

use cardano::slots::Millis;
use sql::{DatabaseError, Rows, Statement, statement};

/// Which state of the catalogue is shown, and the chain's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShopState {
    /// The catalogue's version: it grows with every change that the catalogue shows, hidden listings among them.
    pub version: i64,
    /// The newest known block's time, POSIX ms; 0 where none is known.
    pub block_ms: Millis,
}

/// The statement that reads it.
pub fn read() -> Statement {
    statement!("SELECT json_array(version, coalesce((SELECT tip_time_ms FROM chain_state), 0)) FROM catalogue_version")
}

/// What that statement read.
///
/// # Errors
/// The row is not there, or not what it should be.
pub fn of(rows: &Rows) -> Result<ShopState, DatabaseError> {
    let row: Option<(i64, Millis)> = rows.first_json()?;
    let (version, block_ms) = row.ok_or_else(|| DatabaseError("no catalogue version".into()))?;
    Ok(ShopState { version, block_ms })
}
