//! Checks every dependency in the lock file, for all platforms and features: its licence must be permissive, and its
//! source the public registry.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]
#![allow(clippy::disallowed_types, reason = "asks Cargo")]

use std::process::Command;

use serde_json::Value;

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
/// Allowed licences by their SPDX names.
const LICENCES: [&str; 10] = [
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BlueOak-1.0.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Zlib",
];
/// A dependency with another licence that is allowed: root certificates, which are data, and used only by command-line
/// tools.
const EXCEPTION: (&str, &str) = ("webpki-roots", "CDLA-Permissive-2.0");

fn packages() -> Vec<Value> {
    let mut metadata = Command::new(env!("CARGO"));
    metadata.args(["metadata", "--format-version=1", "--all-features", "--locked"]);
    let answer = metadata.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    let metadata: Value = serde_json::from_slice(&answer.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// Returns whether an SPDX expression can be satisfied by allowed licences. `/` is an old notation for `OR`.
fn is_allowed(expression: &str, allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let value = any_of(&mut rest, allowed);
    assert!(rest.is_empty(), "not an SPDX expression: {expression}");
    value
}

fn any_of(words: &mut &[&str], allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut value = all_of(words, allowed);
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        value |= all_of(words, allowed);
    }
    value
}

fn all_of(words: &mut &[&str], allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut value = one(words, allowed);
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        value &= one(words, allowed);
    }
    value
}

fn one(words: &mut &[&str], allowed: &dyn Fn(&str) -> bool) -> bool {
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let value = any_of(words, allowed);
            let [")", rest @ ..] = *words else { panic!("an open parenthesis") };
            *words = rest;
            value
        }
        [name, "WITH", exception, rest @ ..] => {
            *words = rest;
            allowed(&format!("{name} WITH {exception}"))
        }
        [name, rest @ ..] => {
            *words = rest;
            allowed(name)
        }
        [] => panic!("an expression that ends early"),
    }
}

#[test]
fn every_dependency_has_a_permissive_licence() {
    let mut refused = vec![];
    for package in packages().iter().filter(|package| !package["source"].is_null()) {
        let (name, licence) = (package["name"].as_str().unwrap(), package["license"].as_str().unwrap_or_default());
        let allowed = |one: &str| LICENCES.contains(&one) || (name, one) == EXCEPTION;
        if licence.is_empty() || !is_allowed(licence, &allowed) {
            refused.push(format!("{name}: {licence}"));
        }
    }
    assert!(refused.is_empty(), "{refused:?}");
}

#[test]
fn every_dependency_is_of_the_public_registry() {
    let packages = packages();
    let (theirs, ours): (Vec<_>, Vec<_>) = packages.iter().partition(|package| !package["source"].is_null());
    assert!(theirs.len() > 100, "{} packages", theirs.len());
    for package in theirs {
        assert_eq!(package["source"], REGISTRY, "{}", package["name"]);
    }
    for member in ours {
        for asked in member["dependencies"].as_array().unwrap() {
            assert!(asked["req"] != "*" || !asked["path"].is_null(), "{}: any {}", member["name"], asked["name"]);
        }
    }
}

#[test]
fn a_licence_expression_is_allowed_where_one_choice_is() {
    let mit = |name: &str| name == "MIT";
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("(GPL-3.0 OR MIT) AND MIT", true),
        ("MIT OR GPL-3.0 AND Zlib", true),
        ("MIT WITH an-exception", false),
    ] {
        assert_eq!(is_allowed(expression, &mit), expected, "{expression}");
    }
}
