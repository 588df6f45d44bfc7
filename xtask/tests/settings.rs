//! Compares docs/operations.md with the settings and bindings that the workers read.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests fail by panicking, and read files")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Source folders of the crates that run on Workers and read settings.
const READERS: [&str; 4] = ["src", "crates/edge/src", "functions/watcher/src", "arbiter/src"];
/// Names in capitals that the source contains but that are not settings: names of Cargo and the currency, HTTP methods,
/// algorithms, and words of SQL and of the API's description.
const OTHER: [&str; 19] = [
    "CARGO_PKG_VERSION",
    "ADA",
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "OPTIONS",
    "QUERY",
    "TRACE",
    "RSA",
    "EC",
    "ECDSA",
    "MCP",
    "PATCH",
    "ASSETS",
    "SELECT",
    "WITH",
    "RETURNING",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Finds the Rust files below a folder and adds them to `found`.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn is_name(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    text.len() > 1 && text.starts_with(|c: char| c.is_ascii_uppercase()) && text.chars().all(inner)
}

/// Returns the settings that the code reads: names in quotation marks, outside of tests.
fn read_by_code() -> BTreeSet<String> {
    let mut found = vec![];
    READERS.iter().for_each(|folder| files(&root().join(folder), &mut found));
    let texts = found.iter().map(|file| fs::read_to_string(file).unwrap());
    let codes = texts.map(|text| text.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned());
    let names = codes.flat_map(|code| code.split('"').map(str::to_owned).collect::<Vec<_>>());
    names.filter(|name| is_name(name) && !OTHER.contains(&name.as_str())).collect()
}

/// Returns the settings that the document describes: names in the first cells of its tables.
fn documented() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("docs/operations.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let names = rows.flat_map(|cell| cell.split('`').map(str::to_owned).collect::<Vec<_>>());
    names.filter(|name| is_name(name)).collect()
}

#[test]
fn every_setting_that_the_workers_read_is_documented() {
    let (read, documented) = (read_by_code(), documented());
    assert!(read.contains("BLOCKFROST_URL") && read.len() > 20, "{read:?}");
    let missing: Vec<&String> = read.difference(&documented).collect();
    assert!(missing.is_empty(), "docs/operations.md has no row for {missing:?}");
}

#[test]
fn every_documented_setting_is_read() {
    let (read, documented) = (read_by_code(), documented());
    // Assembled from a name and a number.
    let made = |name: &&String| !name.starts_with("WALLET_MASTER_SECRET_");
    let idle: Vec<&String> = documented.difference(&read).filter(made).collect();
    assert!(idle.is_empty(), "no worker reads {idle:?}, which docs/operations.md lists");
}
