//! Networks that clients ask from, as far as they are kept.

use cardano::{ContentHash, slots::Millis};

use crate::account::day;

/// Where a request comes from that nobody says of: on a local stack everybody's.
pub const UNKNOWN: &str = "unknown";

/// A client's network as it is kept: the same for a day, and then nobody can tell who it was.
pub(crate) fn kept(network: &str, now: Millis) -> ContentHash {
    ContentHash::of(format!("{}\n{network}", day(now)).as_bytes())
}
