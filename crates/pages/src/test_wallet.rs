//! The test wallet. Pages of a shop on a local ledger include it, so that a purchase needs no browser extension.
//!
//! The wallet uses the ledger's HTTP API, which has another origin. Only the content security policy of these pages
//! allows that.

use maud::html;
use url::Url;

use crate::{HEADERS, POLICY, asset::TEST_WALLET};

/// Adds the test wallet to a page's HTML. `ledger` is the address of the local ledger's HTTP API.
#[must_use]
pub fn inside(page: &str, ledger: &Url) -> String {
    let script = html! {
        script type="module" src=(TEST_WALLET) data-ledger=(ledger.origin().ascii_serialization()) {}
    };
    // Before the page's script, which looks for wallets. Sellers' texts are escaped, so this finds the page's own tag.
    page.replacen("<script", &format!("{}<script", script.into_string()), 1)
}

/// Returns the content security policy of pages with the test wallet. `ledger` is the address of the local ledger's
/// HTTP API.
#[must_use]
pub fn policy(ledger: &Url) -> String {
    let usual = HEADERS.iter().find(|(name, _)| *name == POLICY).map_or("", |(_, policy)| policy);
    let asked = format!("connect-src 'self' {}", ledger.origin().ascii_serialization());
    usual.replacen("connect-src 'self'", &asked, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_wallet_loads_first_and_may_call_the_local_ledger_alone() {
        let ledger = Url::parse("http://127.0.0.1:8990/api/v0").unwrap();
        let page = inside(&crate::sell::page("http://127.0.0.1:8787"), &ledger);
        let (wallet, script) =
            (page.find(&TEST_WALLET.to_string()).unwrap(), page.find(&crate::asset::SELL.to_string()).unwrap());
        assert!(wallet < script && page.contains("data-ledger=\"http://127.0.0.1:8990\""), "{page}");
        assert!(policy(&ledger).contains("; connect-src 'self' http://127.0.0.1:8990; "));
    }
}
