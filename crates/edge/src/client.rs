//! Identifies the client of a request, for rate limits.

use std::net::{IpAddr, Ipv6Addr};

use market::network::UNKNOWN;
use worker::Result;

use crate::serve::Request;

/// Network from which Workers of all Cloudflare customers send their requests. The header `CF-Worker` names a Worker's
/// owner.
const WORKERS: &str = "2a06:98c0:3600::/64";

/// Returns an identifier of the client of a request: an IPv4 address, an IPv6 /64, or the owner of the Worker that sent
/// the request.
///
/// # Errors
/// Returns an error if the runtime cannot read the request's headers.
pub fn client(request: &Request) -> Result<String> {
    let header = |name| Ok::<_, worker::Error>(request.headers().get(name)?.unwrap_or_default());
    let network = network(&header("cf-connecting-ip")?).unwrap_or_else(|| UNKNOWN.to_owned());
    Ok(if network == WORKERS { format!("worker {}", header("cf-worker")?) } else { network })
}

/// Returns the network of an address: an IPv4 address itself, or the /64 of an IPv6 address, which belongs to one
/// customer. `None` for a loopback address, which all clients of a local stack share.
fn network(address: &str) -> Option<String> {
    const HOST: u128 = u64::MAX as u128;
    match address.trim().parse::<IpAddr>().ok()?.to_canonical() {
        address if address.is_loopback() => None,
        IpAddr::V4(address) => Some(address.to_string()),
        IpAddr::V6(address) => Some(format!("{}/64", Ipv6Addr::from_bits(address.to_bits() & !HOST))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_address_counts_for_its_prefix() {
        for (address, counted) in [
            ("203.0.113.7", Some("203.0.113.7")),
            (" 203.0.113.7 ", Some("203.0.113.7")),
            ("::ffff:203.0.113.7", Some("203.0.113.7")),
            ("2001:db8:1:2:3:4:5:6", Some("2001:db8:1:2::/64")),
            ("2001:db8:1:2::1", Some("2001:db8:1:2::/64")),
            ("2001:db8:1:3::1", Some("2001:db8:1:3::/64")),
            ("2a06:98c0:3600::103", Some(WORKERS)),
            ("127.0.0.1", None),
            ("::1", None),
            ("", None),
            ("nowhere", None),
        ] {
            assert_eq!(network(address).as_deref(), counted, "{address}");
        }
    }
}
