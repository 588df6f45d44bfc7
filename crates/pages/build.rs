//! Makes scripts and the stylesheet small: comments and spaces are for their readers in `web/`.

#![allow(clippy::disallowed_methods, reason = "Cargo says by the environment where to write")]

use std::{env, error::Error, fs, path::Path};

/// The scripts of `web/`.
const SCRIPTS: [&str; 6] = ["account", "common", "consent", "paywall", "purchase", "sell"];

fn main() -> Result<(), Box<dyn Error>> {
    for name in SCRIPTS {
        make_small(&format!("{name}.js"), |script| Ok(minifier::js::minify(script)?.to_string()))?;
    }
    make_small("surety.css", |style| Ok(minifier::css::minify(style)?.to_string().trim().to_owned()))
}

fn make_small(file: &str, small: impl Fn(&str) -> Result<String, Box<dyn Error>>) -> Result<(), Box<dyn Error>> {
    let path = format!("../../web/{file}");
    println!("cargo::rerun-if-changed={path}");
    let in_file = |error: Box<dyn Error>| format!("{path}: {error}");
    let text = fs::read_to_string(&path).map_err(|error| in_file(error.into()))?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join(file), small(&text).map_err(in_file)?)?;
    Ok(())
}
