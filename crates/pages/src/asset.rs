//! Stylesheet, icon and scripts, which the platform serves (`scripts/build-web.sh`).

use std::fmt;

/// Name of the folder with the files: a hash of their contents, so that browsers can cache them forever.
/// `scripts/build-web.sh` prints the name, and the build of the worker gets it as an environment variable.
const FOLDER: &str = match option_env!("ASSETS_FOLDER") {
    Some(folder) => folder,
    None => "unbuilt",
};

/// A static file, identified by its name. `Display` writes the path under which the file is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asset(&'static str);

impl fmt::Display for Asset {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "/assets/{FOLDER}/{}", self.0)
    }
}

/// The stylesheet of all pages.
pub const STYLE: Asset = Asset("surety.css");
/// The stylesheet of the API reference.
pub const DOCS_STYLE: Asset = Asset("docs.css");
/// The site's icon.
pub const ICON: Asset = Asset("surety.svg");
/// Functions used by all scripts: wallets, requests, error messages, copying.
pub const COMMON: Asset = Asset("common.js");
/// Script of the consent page.
pub const CONSENT: Asset = Asset("consent.js");
/// Script of the account's page.
pub const ACCOUNT: Asset = Asset("account.js");
/// Script of the page on which sellers offer listings.
pub const SELL: Asset = Asset("sell.js");
/// Script of a purchase's page.
pub const PURCHASE: Asset = Asset("purchase.js");
/// Script of the paywall.
pub const PAYWALL: Asset = Asset("paywall.js");
/// Script of the test wallet (module `test_wallet`), which exists only on a local ledger: the worker serves it, and the
/// files of a deployment do not include it.
pub const TEST_WALLET: Asset = Asset("test-wallet.js");
