//! Client networks (IPv4 addresses or IPv6 prefixes), as quotas and the database use them.

use std::{borrow::Cow, net::Ipv6Addr};

use cardano::{ContentHash, slots::Millis};

use crate::limits::day;

/// Network name for a request without a client address, as on a local stack.
pub const UNKNOWN: &str = "unknown";

/// Returns the network that shares a quota. For an IPv6 /64 this is its /48, because one customer may have a whole /48
/// (RFC 6177).
#[must_use]
pub fn quota_prefix(network: &str) -> Cow<'_, str> {
    let address = network.strip_suffix("/64").and_then(|address| address.parse::<Ipv6Addr>().ok());
    address.map_or(network.into(), |address| match address.segments() {
        [a, b, c, ..] => format!("{}/48", Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)).into(),
    })
}

/// Returns a digest of a client's network (its address prefix) and the day. The digest is different every day, so that
/// stored rows cannot be traced to the network later.
#[must_use]
pub fn daily_digest(network: &str, now: Millis) -> ContentHash {
    ContentHash::of(format!("{}\n{}", day(now), quota_prefix(network)).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_share_belongs_to_a_site() {
        for (network, whose) in [
            ("203.0.113.7", "203.0.113.7"),
            ("2001:db8:1:2::/64", "2001:db8:1::/48"),
            ("2001:db8:1:ffff::/64", "2001:db8:1::/48"),
            ("2001:db8:2:2::/64", "2001:db8:2::/48"),
            ("worker example.com", "worker example.com"),
            (UNKNOWN, UNKNOWN),
        ] {
            assert_eq!(quota_prefix(network), whose);
        }
    }
}
