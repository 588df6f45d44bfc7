//! Version of the shop's data. A cached response is valid as long as the version is unchanged.

use cardano::slots::Millis;
use serde::Deserialize;
use sql::{One, Read};

/// The catalogue's version and the chain's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct ShopState {
    /// Version of the catalogue. Every visible change of the catalogue increases it, including the hiding of a listing.
    pub version: i64,
    /// Time of the newest known block, POSIX ms; 0 if none is known.
    pub block_ms: Millis,
}

/// Builds the query that reads the [`ShopState`].
pub fn read() -> Read<One<ShopState>> {
    sql::read!("SELECT version, coalesce((SELECT tip_time_ms FROM chain_state), 0) AS block_ms FROM catalogue_version")
}
