//! Minifies scripts and the stylesheet with esbuild. The files in `web/` contain comments and spaces for their readers.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a build script reads the environment and runs esbuild"
)]

use std::{env, error::Error, path::Path, process::Command};

/// Files of `web/` that are minified before they are served.
const FILES: [&str; 8] =
    ["account.js", "common.js", "consent.js", "paywall.js", "purchase.js", "sell.js", "surety.css", "test-wallet.js"];
const ESBUILD: &str = "../../node_modules/.bin/esbuild";

fn main() -> Result<(), Box<dyn Error>> {
    let out = env::var("OUT_DIR")?;
    for file in FILES {
        let path = format!("../../web/{file}");
        println!("cargo::rerun-if-changed={path}");
        let to = format!("--outfile={}", Path::new(&out).join(file).display());
        let arguments = [path.as_str(), "--minify", "--charset=utf8", "--target=es2022", "--log-level=warning", &to];
        let ended = Command::new(ESBUILD).args(arguments).status();
        let ended = ended.map_err(|error| format!("{ESBUILD}: {error}; `npm ci` installs it"))?;
        if !ended.success() {
            return Err(format!("{path} cannot be made small").into());
        }
    }
    Ok(())
}
