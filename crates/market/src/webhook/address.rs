//! Addresses of webhooks, which strangers choose and the watcher calls.

use api_types::{Error, ErrorCode};
use url::{Host, Url};

use crate::public_host::is_public_name;

/// Maximum length of an address in bytes.
pub const MAX_ADDRESS: usize = 512;

/// An address that the watcher may call: https, on a public host name and the default port, without user name and
/// fragment. On a local ledger, any http or https address on loopback as well.
///
/// Addresses of hosts as numbers are rejected in all spellings, such as `https://2130706433/` and `https://[::1]/`,
/// because the parser turns each into an IP address. A public name that resolves to a private address is not
/// recognised: workers cannot resolve names, and their platform does not route to private networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookUrl(Url);

impl WebhookUrl {
    /// Parses an address.
    ///
    /// # Errors
    /// Returns an error that states the rule for addresses if `text` breaks it.
    pub fn parse(text: &str, on_local_ledger: bool) -> Result<Self, Error> {
        let url = Url::parse(text).ok().filter(|url| text.len() <= MAX_ADDRESS && url.as_str().len() <= MAX_ADDRESS);
        let url = url.filter(|url| is_bare(url) && (is_public(url) || (on_local_ledger && is_loopback(url))));
        url.map(Self).ok_or_else(|| {
            let rule = format_args!(
                "must be an https address on a public host name and the default port, without user name and fragment, \
                 at most {MAX_ADDRESS} bytes"
            );
            Error::of_field(ErrorCode::InvalidValue, "url", rule)
        })
    }

    /// Returns the address in its normal spelling.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

fn is_bare(url: &Url) -> bool {
    url.username().is_empty() && url.password().is_none() && url.fragment().is_none()
}

fn is_public(url: &Url) -> bool {
    let public_name = matches!(url.host(), Some(Host::Domain(host)) if is_public_name(host));
    url.scheme() == "https" && url.port().is_none() && public_name
}

fn is_loopback(url: &Url) -> bool {
    let loopback = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(host)) => host == "localhost",
        None => false,
    };
    matches!(url.scheme(), "http" | "https") && loopback
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_public_https_in_whatever_way_a_private_one_is_spelled() {
        for (text, normal) in [
            ("https://hooks.example.com", "https://hooks.example.com/"),
            ("https://hooks.example.com/a?token=b", "https://hooks.example.com/a?token=b"),
            ("https://HOOKS.example.com:443/", "https://hooks.example.com/"),
        ] {
            assert_eq!(WebhookUrl::parse(text, false).unwrap().as_str(), normal);
        }
        let long = format!("https://hooks.example.com/{}", "a".repeat(MAX_ADDRESS));
        for text in [
            "",
            "hooks.example.com",
            "http://hooks.example.com/",
            "ftp://hooks.example.com/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "https://",
            "https://user@hooks.example.com/",
            "https://user:word@hooks.example.com/",
            "https://hooks.example.com/#a",
            "https://hooks.example.com:8443/",
            "https://hooks.example.com:22/",
            &long,
            // Loopback, private, link-local, shared and unspecified addresses, and the metadata of clouds.
            "https://127.0.0.1/",
            "https://127.1/",
            "https://2130706433/",
            "https://0x7f000001/",
            "https://0177.0.0.1/",
            "https://0/",
            "https://10.0.0.1/",
            "https://172.16.0.1/",
            "https://192.168.1.1/",
            "https://100.64.0.1/",
            "https://169.254.169.254/latest/meta-data/",
            "https://[::1]/",
            "https://[::]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[fe80::1]/",
            "https://[fd00::1]/",
            "https://[64:ff9b::7f00:1]/",
            // Other public addresses as numbers: a certificate for them is rare.
            "https://93.184.216.34/",
            "https://[2606:2800:220:1::1]/",
            // Names that only a local resolver knows.
            "https://localhost/",
            "https://localhost./",
            "https://a.localhost/",
            "https://printer.local/",
            "https://metadata.google.internal/",
            "https://1.0.0.127.in-addr.arpa/",
            "https://intranet/",
            "https://hooks.example.com./",
        ] {
            let refused = WebhookUrl::parse(text, false).expect_err(text);
            assert_eq!((refused.code, refused.field.as_deref()), (ErrorCode::InvalidValue, Some("url")), "{text}");
        }
    }

    #[test]
    fn a_local_ledger_adds_loopback_and_nothing_else() {
        for text in [
            "http://127.0.0.1:4000/hook",
            "http://localhost:4000/",
            "http://[::1]:4000/",
            "https://127.0.0.1/",
            "http://2130706433:1/",
        ] {
            assert!(WebhookUrl::parse(text, true).is_ok(), "{text}");
            assert!(WebhookUrl::parse(text, false).is_err(), "{text}");
        }
        for text in [
            "http://10.0.0.1/",
            "http://169.254.169.254/",
            "http://hooks.example.com/",
            "http://user@localhost/",
            "http://[::ffff:127.0.0.1]/",
        ] {
            assert!(WebhookUrl::parse(text, true).is_err(), "{text}");
        }
    }
}
