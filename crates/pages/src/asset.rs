//! Stylesheet and scripts, in the program itself: named by their hash, so that a browser may keep each for ever.
//!
//! Scripts are modules that import from `./common.js`; what is served names the hashed file instead.

use std::{borrow::Cow, sync::LazyLock};

use cardano::ContentHash;

/// A file of the pages.
#[derive(Debug)]
pub struct Asset {
    /// Where it is served.
    pub path: String,
    /// Its media type.
    pub kind: &'static str,
    /// What it holds.
    pub text: Cow<'static, str>,
}

/// Characters of a hash in a name: enough that no two files of ours ever have the same.
const HASH_CHARS: usize = 12;
const SCRIPT: &str = "text/javascript; charset=utf-8";

impl Asset {
    fn new(name: &str, ending: &str, kind: &'static str, text: Cow<'static, str>) -> Self {
        let hash = ContentHash::of(text.as_bytes()).to_string();
        Self { path: format!("/assets/{name}.{hash:.HASH_CHARS$}.{ending}"), kind, text }
    }

    fn script(name: &str, text: &str) -> Self {
        Self::new(name, "js", SCRIPT, lean(text).into())
    }

    /// A module that imports from the common one.
    fn module(name: &str, text: &str) -> Self {
        let common = COMMON.path.rsplit('/').next().unwrap_or_default();
        Self::script(name, &text.replace("./common.js", &format!("./{common}")))
    }
}

/// A script without what only its readers need: lines that are comments, and indentation. No text of ours goes over several
/// lines, which a test holds.
fn lean(text: &str) -> String {
    // A type in a comment may have code after it.
    let whole = |line: &str| line.split_once("*/").is_none_or(|(_, code)| code.is_empty());
    let comment =
        |line: &&str| line.starts_with("//") || ((line.starts_with("/*") || line.starts_with('*')) && whole(line));
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !comment(line));
    lines.flat_map(|line| [line, "\n"]).collect()
}

macro_rules! web {
    ($file:literal) => {
        include_str!(concat!("../../../web/", $file))
    };
}

/// The stylesheet of all pages.
pub static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("surety", "css", "text/css; charset=utf-8", web!("surety.css").into()));
/// The sign of the site.
pub static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("surety", "svg", "image/svg+xml", web!("surety.svg").into()));
/// What every page's script begins with: wallets, requests, words for what went wrong; and copying.
pub static COMMON: LazyLock<Asset> = LazyLock::new(|| Asset::script("common", web!("common.js")));
/// Of the consent page.
pub static CONSENT: LazyLock<Asset> = LazyLock::new(|| Asset::module("consent", web!("consent.js")));
/// Of the account's page.
pub static ACCOUNT: LazyLock<Asset> = LazyLock::new(|| Asset::module("account", web!("account.js")));
/// Of the page to sell.
pub static SELL: LazyLock<Asset> = LazyLock::new(|| Asset::module("sell", web!("sell.js")));
/// Of a purchase's page.
pub static PURCHASE: LazyLock<Asset> = LazyLock::new(|| Asset::module("purchase", web!("purchase.js")));
/// Of the paywall.
pub static PAYWALL: LazyLock<Asset> = LazyLock::new(|| Asset::module("paywall", web!("paywall.js")));

/// Every file.
fn all() -> [&'static LazyLock<Asset>; 8] {
    [&STYLE, &ICON, &COMMON, &CONSENT, &PAYWALL, &ACCOUNT, &SELL, &PURCHASE]
}

/// The file at this path.
#[must_use]
pub fn at(path: &str) -> Option<&'static Asset> {
    all().into_iter().map(LazyLock::force).find(|asset| asset.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of all scripts together: what an old phone reads at once.
    const MAX_SCRIPTS: usize = 20_000;

    #[test]
    fn a_file_is_found_by_its_name_and_hash_alone() {
        for asset in all() {
            assert_eq!(at(&asset.path).map(|found| &found.text), Some(&asset.text));
        }
        assert!(at("/assets/surety.css").is_none() && at("/assets/").is_none());
    }

    #[test]
    fn a_module_imports_what_is_served() {
        for asset in all().into_iter().filter(|asset| asset.kind == SCRIPT) {
            for line in asset.text.lines().filter(|line| line.contains(" from \"./")) {
                let file = line.split("\"./").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
                assert!(at(&format!("/assets/{file}")).is_some(), "{} imports {file}", asset.path);
            }
        }
    }

    #[test]
    fn what_is_cut_of_a_script_is_comments_alone() {
        let script = "// a\n/**\n * b\n * @param {C} c\n */\n  /** @type {D} */ (d).e = 1;\n/** f */\n\n  g();\n";
        assert_eq!(lean(script), "/** @type {D} */ (d).e = 1;\ng();\n");
    }

    #[test]
    fn no_text_of_a_script_goes_over_several_lines() {
        for asset in all().into_iter().filter(|asset| asset.kind == SCRIPT) {
            for line in asset.text.lines() {
                assert!(line.matches('`').count() % 2 == 0, "{}: {line}", asset.path);
            }
        }
    }

    #[test]
    fn scripts_stay_small() {
        let scripts = all().into_iter().filter(|asset| asset.kind == SCRIPT);
        let bytes: usize = scripts.map(|asset| asset.text.len()).sum();
        assert!(bytes < MAX_SCRIPTS, "{bytes} bytes");
    }
}
