//! Stylesheet and scripts. They are part of the program, and their paths contain a hash of the contents, so that
//! browsers can cache them forever.
//!
//! Scripts are modules that import `./common.js`. In the served scripts, the import has the hashed name, and the code
//! is minified (`build.rs`).

use std::{borrow::Cow, sync::LazyLock};

use cardano::ContentHash;

/// A static file.
#[derive(Debug)]
pub struct Asset {
    /// Path under which the file is served.
    pub path: String,
    /// Media type of the file.
    pub kind: &'static str,
    /// Contents of the file.
    pub text: Cow<'static, str>,
}

/// Number of characters of the hash in a file's name.
const HASH_CHARS: usize = 12;
const SCRIPT: &str = "text/javascript; charset=utf-8";

impl Asset {
    fn new(name: &str, ending: &str, kind: &'static str, text: Cow<'static, str>) -> Self {
        let hash = ContentHash::of(text.as_bytes()).to_string();
        Self { path: format!("/assets/{name}.{hash:.HASH_CHARS$}.{ending}"), kind, text }
    }

    fn script(name: &str, text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(name, "js", SCRIPT, text.into())
    }

    /// Creates a script that imports the common script.
    fn module(name: &str, text: &str) -> Self {
        let common = COMMON.path.rsplit('/').next().unwrap_or_default();
        Self::script(name, text.replace("./common.js", &format!("./{common}")))
    }
}

/// Includes a file of `web/`, as minified by the build script.
macro_rules! small {
    ($file:literal) => {
        include_str!(concat!(env!("OUT_DIR"), "/", $file))
    };
}

/// The stylesheet of all pages.
pub static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("surety", "css", "text/css; charset=utf-8", small!("surety.css").into()));
/// The site's icon.
pub static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("surety", "svg", "image/svg+xml", include_str!("../../../web/surety.svg").into()));
/// Functions used by all scripts: wallets, requests, error messages, copying.
pub static COMMON: LazyLock<Asset> = LazyLock::new(|| Asset::script("common", small!("common.js")));
/// Script of the consent page.
pub static CONSENT: LazyLock<Asset> = LazyLock::new(|| Asset::module("consent", small!("consent.js")));
/// Script of the account's page.
pub static ACCOUNT: LazyLock<Asset> = LazyLock::new(|| Asset::module("account", small!("account.js")));
/// Script of the page on which sellers offer listings.
pub static SELL: LazyLock<Asset> = LazyLock::new(|| Asset::module("sell", small!("sell.js")));
/// Script of a purchase's page.
pub static PURCHASE: LazyLock<Asset> = LazyLock::new(|| Asset::module("purchase", small!("purchase.js")));
/// Script of the paywall.
pub static PAYWALL: LazyLock<Asset> = LazyLock::new(|| Asset::module("paywall", small!("paywall.js")));
/// Script of the test wallet for shops on a local ledger (`test_wallet`). Public deployments do not serve it.
pub static TEST_WALLET: LazyLock<Asset> = LazyLock::new(|| Asset::module("test-wallet", small!("test-wallet.js")));

/// Returns all files that public deployments serve.
fn all() -> [&'static LazyLock<Asset>; 8] {
    [&STYLE, &ICON, &COMMON, &CONSENT, &PAYWALL, &ACCOUNT, &SELL, &PURCHASE]
}

/// Returns the file that is served under a path, or `None`.
#[must_use]
pub fn at(path: &str) -> Option<&'static Asset> {
    all().into_iter().map(LazyLock::force).find(|asset| asset.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum total size of all scripts in bytes, because of slow phones.
    const MAX_SCRIPTS: usize = 31_000;

    #[test]
    fn an_asset_is_found_by_its_name_and_hash_alone() {
        for asset in all() {
            assert_eq!(at(&asset.path).map(|found| &found.text), Some(&asset.text));
        }
        assert!(at("/assets/surety.css").is_none() && at("/assets/").is_none());
    }

    #[test]
    fn every_import_of_a_module_is_a_served_asset() {
        for asset in all().into_iter().filter(|asset| asset.kind == SCRIPT) {
            for imported in asset.text.split("from\"./").skip(1) {
                let file = imported.split('"').next().unwrap();
                assert!(at(&format!("/assets/{file}")).is_some(), "{} imports {file}", asset.path);
            }
        }
    }

    #[test]
    fn a_public_deployment_does_not_serve_the_test_wallet() {
        assert!(at(&TEST_WALLET.path).is_none());
        assert!(TEST_WALLET.text.contains(COMMON.path.trim_start_matches("/assets/")));
    }

    #[test]
    fn scripts_stay_small() {
        let scripts = all().into_iter().filter(|asset| asset.kind == SCRIPT);
        let bytes: usize = scripts.map(|asset| asset.text.len()).sum();
        assert!(bytes < MAX_SCRIPTS, "{bytes} bytes");
    }
}
