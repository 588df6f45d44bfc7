//! Networks that clients ask from, as far as they are kept.

use std::{borrow::Cow, net::Ipv6Addr};

use cardano::{ContentHash, slots::Millis};

use crate::limits::day;

/// The network of a request without a client's address: on a local stack, of all.
pub const UNKNOWN: &str = "unknown";

/// The network whose quota share a client uses. For an IPv6 /64 it is the site's /48, which one customer may have as a
/// whole (RFC 6177) and tunnels give away.
#[must_use]
pub fn quota_prefix(network: &str) -> Cow<'_, str> {
    let address = network.strip_suffix("/64").and_then(|address| address.parse::<Ipv6Addr>().ok());
    address.map_or(network.into(), |address| match address.segments() {
        [a, b, c, ..] => format!("{}/48", Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)).into(),
    })
}

/// A client's site as it is kept: the same for a day, and not traceable afterwards.
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
