//! Decides whether a host name may belong to a public server, for addresses that strangers choose and the service calls.

/// Domain suffixes of hosts that are private or local to a network, however they resolve (RFC 6761, 6762, 8375, 7686
/// and common practice).
const PRIVATE_SUFFIXES: [&str; 14] = [
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "arpa",
    "test",
    "invalid",
    "example",
    "onion",
];

/// Returns whether a domain name may be public. The name must be in lower case, as a URL parser returns it. A public
/// name that resolves to a private address is not detected, because workers cannot resolve names; their platform does
/// not route to private networks.
#[must_use]
pub fn is_public_name(host: &str) -> bool {
    // A trailing dot would be another spelling of the same name.
    let last = host.rsplit('.').next().unwrap_or_default();
    host.contains('.') && !last.is_empty() && !PRIVATE_SUFFIXES.contains(&last)
}
