//! Makes the scripts small: comments and spaces are for their readers in `web/`.

#![allow(clippy::disallowed_methods, reason = "Cargo says by the environment where to write")]

use std::{env, error::Error, fs, path::Path};

/// The scripts of `web/`.
const SCRIPTS: [&str; 6] = ["account", "common", "consent", "paywall", "purchase", "sell"];

fn main() -> Result<(), Box<dyn Error>> {
    let out = env::var("OUT_DIR")?;
    for name in SCRIPTS {
        let path = format!("../../web/{name}.js");
        println!("cargo::rerun-if-changed={path}");
        let script = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let small = minifier::js::minify(&script).map_err(|error| format!("{path}: {error}"))?;
        fs::write(Path::new(&out).join(format!("{name}.js")), small.to_string())?;
    }
    Ok(())
}
