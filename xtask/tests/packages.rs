//! Checks the packages of the libraries that are published, without a network.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]
#![allow(clippy::disallowed_types, reason = "asks Cargo")]

use std::{path::Path, process::Command};

use serde_json::Value;

/// Names of the published packages in the order of publication.
const PUBLISHED: [&str; 3] = ["surety-cardano", "surety-escrow", "x402-cardano"];

fn cargo(args: &[&str]) -> String {
    let answer = Command::new(env!("CARGO")).args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(answer.status.success(), "{args:?}: {}", String::from_utf8_lossy(&answer.stderr));
    String::from_utf8(answer.stdout).unwrap()
}

fn members() -> Vec<Value> {
    let told: Value =
        serde_json::from_str(&cargo(&["metadata", "--format-version=1", "--no-deps", "--offline", "--locked"]))
            .unwrap();
    told["packages"].as_array().unwrap().clone()
}

#[test]
fn exactly_the_listed_crates_are_published() {
    // `publish = false` appears as an empty list of registries.
    let members = members();
    let mut names: Vec<_> =
        members.iter().filter(|one| one["publish"].is_null()).map(|one| one["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    let mut expected = PUBLISHED;
    expected.sort_unstable();
    assert_eq!(names, expected);
}

#[test]
fn dependencies_of_published_crates_are_on_the_registry_or_published_first() {
    for member in members() {
        let Some(place) = PUBLISHED.iter().position(|name| member["name"] == *name) else { continue };
        for dependency in member["dependencies"].as_array().unwrap() {
            let ours = !dependency["path"].is_null() && dependency["kind"] != "dev";
            let name = dependency["name"].as_str().unwrap();
            assert!(!ours || PUBLISHED[..place].contains(&name), "{}: {name}", member["name"]);
            assert!(!ours || dependency["req"] == format!("^{}", env!("CARGO_PKG_VERSION")), "{name}");
        }
    }
}

#[test]
fn each_published_crate_has_a_description_and_a_licence() {
    for member in members().iter().filter(|member| PUBLISHED.iter().any(|name| member["name"] == *name)) {
        for field in ["description", "license", "readme", "rust_version"] {
            assert!(member[field].as_str().is_some_and(|text| !text.is_empty()), "{}: {field}", member["name"]);
        }
        assert!(member["keywords"].as_array().unwrap().len() <= 5, "the registry's limit");
    }
}

#[test]
fn each_published_crate_packages_all_its_files() {
    let folder = std::env::temp_dir().join(format!("surety-packages-{}", std::process::id()));
    let target = folder.to_str().unwrap();
    let mut args = vec!["package", "--offline", "--locked", "--no-verify", "--allow-dirty", "--target-dir", target];
    args.extend(PUBLISHED.iter().flat_map(|name| ["--package", name]));
    cargo(&args);
    for name in PUBLISHED {
        let file = Path::new(target).join(format!("package/{name}-{}.crate", env!("CARGO_PKG_VERSION")));
        // The registry's maximum is 10 MiB.
        assert!((1..10 << 20).contains(&file.metadata().unwrap().len()), "{name}");
        let listed = cargo(&["package", "--offline", "--locked", "--list", "--allow-dirty", "--package", name]);
        for wanted in ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "src/lib.rs"] {
            assert!(listed.lines().any(|line| line == wanted), "{name}: {wanted}");
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
